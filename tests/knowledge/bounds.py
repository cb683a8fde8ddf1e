"""Versions on both sides of a range's bounds, and an own reading of ranges to compare with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_SPECIFIER = re.compile(r"(>=|<=|==|!=|<|>)\s*([0-9][0-9.]*?)(\.\*)?(?:\.post([0-9]+))?$")
_PARTS = 6


def _key(version: str) -> tuple[int, ...]:
    """Return numbers that compare as the version does: release, then post-release or -1."""
    release, _, post = version.partition(".post")
    numbers = [int(part) for part in release.split(".")]
    return (*numbers, *(0,) * (_PARTS - len(numbers)), int(post) if post else -1)


def inside(version: str, constraint: str) -> bool:
    """Whether a plain version lies in the range, read by hand rather than by a library."""
    if constraint == "*":
        return True
    return all(_fits(_key(version), part.strip()) for part in constraint.split(","))


def _fits(key: tuple[int, ...], part: str) -> bool:
    found = _SPECIFIER.match(part)
    assert found, part
    operator, release, star, post = found.groups()
    if star:
        prefix = tuple(int(number) for number in release.split("."))
        return (key[: len(prefix)] == prefix) == (operator == "==")
    bound = _key(release + (f".post{post}" if post else ""))
    return {
        ">=": key >= bound,
        "<=": key <= bound,
        "<": key < bound,
        ">": key > bound,
        "==": key == bound,
        "!=": key != bound,
    }[operator]


def bounds(constraint: str) -> Iterator[str]:
    """Yield the version of every bound: none for '*'."""
    for part in constraint.split(","):
        found = _SPECIFIER.match(part.strip())
        if found:
            yield found[2] + (f".post{found[4]}" if found[4] else "")


def around(bound: str, existing: Iterable[str]) -> set[str]:
    """Return versions at the bound and next to it: of those that exist, and made up.

    Made up: the bound itself, the next one below it (2.7.0 -> 2.6.99), one above it within its
    series (2.7.0 -> 2.7.0.1) and the next one in its last place.
    """
    release = bound.partition(".post")[0]
    numbers = [int(part) for part in release.split(".")]
    ordered = sorted({each for each in existing if _plain(each)}, key=_key)
    below = [each for each in ordered if _key(each) < _key(bound)]
    above = [each for each in ordered if _key(each) > _key(bound)]
    made = {bound, release + ".1", _next(numbers), *_before(numbers)}
    return made | set(below[-2:]) | set(above[:2]) | ({bound} & set(ordered))


def _plain(version: str) -> bool:
    return re.fullmatch(r"[0-9]+(\.[0-9]+){0,4}(\.post[0-9]+)?", version) is not None


def _next(numbers: list[int]) -> str:
    return ".".join(map(str, [*numbers[:-1], numbers[-1] + 1]))


def _before(numbers: list[int]) -> Iterator[str]:
    kept = list(numbers)
    while kept and kept[-1] == 0:
        kept.pop()
    if kept:
        yield ".".join(map(str, [*kept[:-1], kept[-1] - 1, 99]))
