"""conda's order of versions, which is not that of PEP 440: ``7.6.5_10.2``, ``1.0.2k``, ``9e``.

As conda's documentation of MatchSpec and VersionOrder describes it. A version is an optional epoch
(``1!``), a release and an optional local part (``+cu118``). Releases are split at ``.``, ``_`` and
``-`` into parts, and each part into runs of digits and of letters; a part that begins with letters
gets a 0 before them. Runs are compared one by one: ``dev`` comes before a separator at the end,
that before all other letters, letters before numbers, ``post`` after everything; what is not there
counts as 0. So 1.1 equals 1.1.0 and comes after 1.1.dev1, 1.1a1 and 1.1rc1.

The only libraries with this order are conda itself, which no package index has, and rattler, a
compiled package of 25 MB; the tests hold this module against the order that rattler gives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cmp_to_key, lru_cache
from itertools import zip_longest

from packaging.specifiers import SpecifierSet

from .ranges import ANY_VERSION, COMPARE

_Run = tuple[int, int, str]
_Part = tuple[_Run, ...]

_RUNS = re.compile(r"[0-9]+|[a-z]+")
# Each run as (kind, number, letters): kinds are in their order.
_DEV, _UNDERSCORE, _LETTERS, _NUMBER, _POST = range(5)
_NOTHING: _Run = (_NUMBER, 0, "")


_NAMED: Mapping[str, _Run] = {"dev": (_DEV, 0, ""), "post": (_POST, 0, "")}


def _run(text: str) -> _Run:
    return (_NUMBER, int(text), "") if text.isdigit() else _NAMED.get(text, (_LETTERS, 0, text))


def _parts(text: str) -> tuple[_Part, ...]:
    parts = []
    # A separator at the end belongs to the last part: 1.0.1_ is how packages write OpenSSL's 1.0.1,
    # which its 1.0.1a follows.
    ends_open = text.endswith(("_", "-"))
    for each in re.split(r"[._-]", text[:-1] if ends_open else text):
        runs = tuple(_run(run) for run in _RUNS.findall(each))
        if runs and runs[0][0] != _NUMBER:
            runs = (_NOTHING, *runs)
        parts.append(runs or (_NOTHING,))
    if ends_open:
        parts[-1] = (*parts[-1], (_UNDERSCORE, 0, ""))
    return tuple(parts)


@lru_cache(maxsize=4096)
def _split(version: str) -> tuple[int, tuple[_Part, ...], tuple[_Part, ...]]:
    epoch, mark, rest = version.lower().rpartition("!")
    release, _, local = rest.partition("+")
    number = int(epoch) if mark and epoch.isdigit() else 0
    return number, _parts(release), _parts(local) if local else ()


def _compare_parts(one: tuple[_Part, ...], other: tuple[_Part, ...]) -> int:
    for mine, theirs in zip_longest(one, other, fillvalue=(_NOTHING,)):
        for a, b in zip_longest(mine, theirs, fillvalue=_NOTHING):
            if a != b:
                return -1 if a < b else 1
    return 0


def compare(one: str, other: str) -> int:
    """Return -1, 0 or 1: whether a version comes before another, equals it or comes after it."""
    mine, theirs = _split(one), _split(other)
    if mine[0] != theirs[0]:
        return -1 if mine[0] < theirs[0] else 1
    return _compare_parts(mine[1], theirs[1]) or _compare_parts(mine[2], theirs[2])


def _begins(version: str, prefix: str) -> bool:
    """Whether a version is of a series: 3.6.9, 3.6rc1 and 3.6a of 3.6, and 3.60 not."""
    epoch, series, _ = _split(prefix)
    mine_epoch, mine, _ = _split(version)
    *whole, last = series
    if mine_epoch != epoch or _compare_parts(mine[: len(whole)], tuple(whole)):
        return False
    own = mine[len(whole)] if len(mine) > len(whole) else ()
    return all(a == b for a, b in zip_longest(own[: len(last)], last, fillvalue=_NOTHING))


def conda_matches(version: str, constraint: str) -> bool:
    """Whether a conda package's version lies in a range, in conda's order."""
    if constraint == ANY_VERSION:
        return True
    return all(_fits(version, each.operator, each.version) for each in SpecifierSet(constraint))


_CLAUSE = re.compile(r"(>=|<=|==|!=|~=|>|<|=)?([A-Za-z0-9_.!+-]+?)(\.?\*)?")


_ENDS_IN_0 = re.compile(r"(^|[._-])0+$")


def spec_admits(version: str, text: str) -> bool | None:
    """Whether a version fits the version of a MatchSpec, ``>=1.2,<2.0a0|3.*``; None: not known.

    ``,`` binds closer than ``|``. What is rarer, such as brackets and regular expressions, is not
    read.
    """
    answers = [_all_admit(version, each) for each in text.split("|")]
    if True in answers:
        return True
    return None if None in answers else False


def _all_admit(version: str, text: str) -> bool | None:
    answers = [_clause_admits(version, each.strip()) for each in text.split(",")]
    if False in answers:
        return False
    return None if None in answers else True


def _clause_admits(version: str, text: str) -> bool | None:
    if text in ("*", "=*", "==*", ">=*"):
        return True
    found = _CLAUSE.fullmatch(text)
    if found is None:
        return None
    operator, bound, star = found[1] or "", found[2], found[3]
    series = operator == "=" or (star and operator in ("", "!="))
    # Local parts, and whether 1.2rc4 is of the series 1.2.0: conda and rattler differ in them.
    if series and ("+" in bound or (_ENDS_IN_0.search(bound) and re.search("[a-z]", version))):
        return None
    if series:
        return _begins(version, bound) != (operator == "!=")
    # What conda makes of ==1.2.* and of ~=1.2_3 changed with its releases.
    if (operator == "==" and star) or (operator == "~=" and re.search(r"[_+-]", bound)):
        return None
    if operator == "~=":
        head = bound.rpartition(".")[0]
        return _begins(version, head) and compare(version, bound) >= 0 if head else None
    # conda reads >=1.2.* as >=1.2.
    return COMPARE[operator or "=="](compare(version, bound), 0)


def _fits(version: str, operator: str, bound: str) -> bool:
    if bound.endswith(".*"):
        return _begins(version, bound[: -len(".*")]) == (operator == "==")
    if operator == "~=" and not _begins(version, bound.rpartition(".")[0]):
        return False
    return COMPARE[">=" if operator == "~=" else operator](compare(version, bound), 0)


conda_key = cmp_to_key(compare)
"""What a version is sorted by."""
