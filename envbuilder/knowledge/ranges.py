"""Version ranges, and what a component's versions are beside PEP 440.

A range is ``*`` or PEP 440 specifiers. Versions are read as far as PEP 440 knows them:
``2.3.7-fosscuda-2018b`` is 2.3.7, GCC's ``7.3.0-2.30`` is 7.3.0, ``1.7.0-3`` of WMLCE 1.7.0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from ..base import Line, checked_once

ANY_VERSION = "*"


def check_range(text: str) -> str:
    """Return *text* if it is a range, else raise ValueError that says how one is written."""
    if text == ANY_VERSION:
        return text
    try:
        parsed = SpecifierSet(text)
    except InvalidSpecifier as error:
        raise ValueError(
            f"not a version range: {text!r} (write '>=1.2,<2', '==1.14.*' or '*')"
        ) from error
    if not len(parsed):
        raise ValueError("an empty version range: write '*' for any version")
    refuse_arbitrary_equality(parsed)
    return text


def refuse_arbitrary_equality(specifiers: SpecifierSet) -> None:
    """Raise ValueError for '===': it compares text and so admits any character (PEP 440)."""
    if any(specifier.operator == "===" for specifier in specifiers):
        raise ValueError("'===' compares text, not versions: write '=='")


VersionRange = Annotated[Line, checked_once(check_range)]


@lru_cache(maxsize=65536)
def version(text: str) -> Version | None:
    """Return the version, cut before the first part that PEP 440 does not know; None: none left."""
    try:
        return Version(text.split("-", 1)[0])
    except InvalidVersion:
        return None


def sort_key(text: str) -> Version:
    """Return what versions are sorted by: one that PEP 440 does not know comes first."""
    return version(text) or _NO_VERSION


_NO_VERSION = Version("0")


@lru_cache(maxsize=8192)
def _specifiers(constraint: str) -> SpecifierSet:
    return SpecifierSet(constraint)


# Bounds of plain releases are compared as tuples: a plan asks some five thousand times, and a
# SpecifierSet answers ten times as slowly. Whatever is not plain goes to the SpecifierSet.
_Release = tuple[int, ...]
COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}


def _plain(parsed: Version) -> _Release | None:
    """Return a release without the zeros at its end; None where it is more than a release."""
    if parsed.is_prerelease or parsed.is_postrelease or parsed.local or parsed.epoch:
        return None
    release = parsed.release
    while release and release[-1] == 0:
        release = release[:-1]
    return release


@lru_cache(maxsize=8192)
def _bounds(constraint: str) -> tuple[tuple[str, _Release], ...] | None:
    """Return the bounds of a range of plain releases; None: it has others."""
    bounds = []
    for each in _specifiers(constraint):
        bound = _plain(Version(each.version)) if not each.version.endswith(".*") else None
        if bound is None or each.operator not in COMPARE:
            return None
        bounds.append((each.operator, bound))
    return tuple(bounds)


@lru_cache(maxsize=65536)
def _release(text: str) -> _Release | None:
    """Return a version as a plain release; None where it is none, or more than that."""
    parsed = version(text)
    return None if parsed is None else _plain(parsed)


@lru_cache(maxsize=65536)
def matches(text: str, constraint: str) -> bool:
    """Whether the version lies in the range; pre-releases only where the range names one."""
    if constraint == ANY_VERSION:
        return True
    bounds, release = _bounds(constraint), _release(text)
    if bounds is not None and release is not None:
        for word, bound in bounds:  # noqa: SIM110 - asked thousands of times in a plan
            if not COMPARE[word](release, bound):
                return False
        return True
    parsed = version(text)
    if parsed is None:
        return False
    specifiers = _specifiers(constraint)
    return specifiers.contains(parsed, prereleases=bool(specifiers.prereleases))


def series(text: str, parts: int) -> tuple[int, ...]:
    """Return the first *parts* numbers of a version, zeros where it has fewer."""
    parsed = version(text)
    release = parsed.release if parsed else ()
    return (*release, *(0,) * parts)[:parts]


def series_text(text: str, parts: int) -> str:
    """Return the first *parts* numbers of a version: ``3.11``."""
    return ".".join(map(str, series(text, parts)))
