"""What the table of flags says of the flags that a recipe sets: read at all, value, home."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from ..model.knowledge import Flag, FlagRule, Knowledge
from ..model.ranges import matches, version
from .pool import Pool
from .problem import Candidate, FlagCase, Rule
from .rules import GroundRule

TABLE_ROWS = (
    *("FLAG-EARLY-", "FLAG-LATE-"),
    *("FLAG-VALUE-", "FLAG-TEXT-", "FLAG-ZERO-"),
    "FLAG-HOME-",
)
"""How the ids begin that the table of flags gives to what it finds."""

_INTEGERS = re.compile(r"[0-9]+(,[0-9]+)*")


def flag_table(
    knowledge: Knowledge, pool: Pool, flags: Mapping[str, str], allow: Mapping[str, str]
) -> tuple[GroundRule, ...]:
    """Return the rules of all flags that are set; what no candidate can violate is left out."""
    found: list[GroundRule] = []
    for name, value in flags.items():
        flag = knowledge.flags.get(name)
        if flag is not None:
            found += _rules(name, value, flag, pool, knowledge, allow)
    return tuple(found)


def _rules(
    name: str,
    value: str,
    flag: Flag,
    pool: Pool,
    knowledge: Knowledge,
    allow: Mapping[str, str],
) -> Iterator[GroundRule]:
    releases = pool.of(flag.runtime)
    read = [each for each in releases if reads(flag, each.version)]
    takes_it = [each for each in read if takes(flag, each.version, value)]
    ever = any(
        reads(flag, each.version) and takes(flag, each.version, value)
        for each in knowledge.releases.get(flag.runtime, ())
    )
    early = [each for each in releases if each not in read and not known_yet(flag, each.version)]
    late = [each for each in releases if each not in read and each not in early]
    # A value that no release takes is no better where the flag is not read at all.
    wrong = [each for each in (read if ever else releases) if each not in takes_it]
    if early:
        said = f"{name} is read from {flag.runtime} {flag.since} on: before, it does nothing"
        yield _grounded("EARLY", name, flag, "error", said, (_ids(early),), allow)
    if late:
        said = f"{name} is read up to {flag.runtime} {flag.until}: since then it does nothing"
        yield _grounded("LATE", name, flag, "warning", said, (_ids(late),), allow)
    counting = [each for each in wrong if any_text_counts(flag, each.version)]
    unheard = [each for each in wrong if each not in counting and value == "0"]
    wrong = [each for each in wrong if each not in counting and each not in unheard]
    if counting:
        said = (
            f"{name}={value} counts as 1: up to {flag.runtime} {flag.any_text_until} any text does"
        )
        yield _grounded("TEXT", name, flag, "error", said, (_ids(counting),), allow)
    if unheard:
        said = f"{name}=0 counts as not set: only 1 does anything"
        yield _grounded("ZERO", name, flag, "warning", said, (_ids(unheard),), allow)
    if wrong:
        said = f"{name}={value} is no value of it; it takes {_values(flag, wrong[0].version)}"
        yield _grounded("VALUE", name, flag, "error", said, (_ids(wrong),), allow)
    if flag.home_of is not None:
        yield from _home(name, value, flag, flag.home_of, pool, allow)


def _ids(candidates: Sequence[Candidate]) -> frozenset[str]:
    return frozenset(each.id for each in candidates)


def _values(flag: Flag, release: str) -> str:
    """Return in words what a flag takes."""
    if flag.kind == "one":
        return "1"
    if flag.kind == "integers":
        return "whole numbers with commas between them"
    known = [each.values for each in flag.values if matches(release, each.range)]
    return " or ".join(dict.fromkeys(value for values in known for value in values)) or "none here"


def _home(
    name: str, value: str, flag: Flag, component: str, pool: Pool, allow: Mapping[str, str]
) -> Iterator[GroundRule]:
    elsewhere = frozenset(
        each.id
        for each in pool.of(component)
        if each.id in pool.homes and not same_place(pool.homes[each.id], value)
    )
    if elsewhere:
        said = f"{name}={value} is not where the {component} of the stack lies"
        running = frozenset(each.id for each in pool.of(flag.runtime))
        yield _grounded("HOME", name, flag, "error", said, (running, elsewhere), allow)


def _grounded(
    kind: str,
    name: str,
    flag: Flag,
    severity: str,
    said: str,
    slots: tuple[frozenset[str], ...],
    allow: Mapping[str, str],
) -> GroundRule:
    row = FlagRule.model_validate(
        {
            "id": f"FLAG-{kind}-{name.replace('_', '-').strip('-')}"[:40].rstrip("-"),
            "severity": severity,
            "summary": said,
            "fix": _FIXES[kind],
            "evidence": "derived",
            "sources": flag.sources,
            "runtime": flag.runtime,
        }
    )
    cases = (FlagCase(kept=frozenset({name})),)
    rule = Rule(row.id, row.id, severity == "error", slots=slots, cases=cases)
    return GroundRule(rule, row, reason=allow.get(row.id))


_FIXES = {
    "EARLY": "leave it out, or take a release that reads it",
    "LATE": "leave it out",
    "VALUE": None,
    "TEXT": "leave it out where no is meant",
    "ZERO": "leave it out",
    "HOME": "leave it out: it is derived from the module that is chosen",
}


def reads(flag: Flag, release: str) -> bool:
    """Whether a release of the runtime reads the flag at all."""
    this, until = version(release), version(flag.until) if flag.until else None
    return known_yet(flag, release) and (this is None or until is None or this <= until)


def known_yet(flag: Flag, release: str) -> bool:
    """Whether the flag is as old as the release."""
    this, since = version(release), version(flag.since) if flag.since else None
    return this is None or since is None or this >= since


def takes(flag: Flag, release: str, value: str) -> bool:
    """Whether a release of the runtime takes the value."""
    if flag.kind == "one":
        return value == "1"
    if flag.kind == "integers":
        return _INTEGERS.fullmatch(value) is not None
    if flag.kind == "choice":
        known = [each.values for each in flag.values if matches(release, each.range)]
        return not known or any(value in values for values in known)
    return True


def any_text_counts(flag: Flag, release: str) -> bool:
    """Whether a release takes any text for a yes, so that 0 is one too."""
    this, until = version(release), version(flag.any_text_until or "")
    return flag.kind == "one" and this is not None and until is not None and this <= until


def same_place(one: str, other: str) -> bool:
    """Whether two paths are written for the same folder; links are not looked at."""
    return PurePosixPath(one) == PurePosixPath(other)
