"""What the table of flags says of the flags that a recipe sets: read at all, value, home."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from ..knowledge.ranges import matches, version
from ..knowledge.rows import Flag, FlagRule, Knowledge
from ..knowledge.terms import Severity
from .pool import Pool
from .problem import Candidate, FlagCase, Rule
from .rules import GroundRule

_KINDS: Mapping[str, tuple[Severity, str | None]] = {
    "EARLY": ("error", "remove it, or use a release that reads it"),
    "LATE": ("warning", "remove it"),
    "TEXT": ("error", "remove it to turn the option off"),
    "ZERO": ("warning", "remove it"),
    "VALUE": ("error", None),
    "HOME": ("error", "remove it: envbuild derives it from the chosen module"),
}
"""What can be wrong with a flag: how bad that is, and what to do."""

TABLE_ROWS = tuple(f"FLAG-{kind}-" for kind in _KINDS)
"""How the ids begin that the table of flags gives to what it finds."""

_INTEGERS = re.compile(r"[0-9]+(,[0-9]+)*")


def flag_table(
    knowledge: Knowledge, pool: Pool, flags: Mapping[str, str], allow: Mapping[str, str]
) -> tuple[GroundRule, ...]:
    """Return the rules of all flags that are set; what no candidate can violate is left out."""
    return tuple(
        rule
        for name, value in flags.items()
        if (flag := knowledge.flags.get(name)) is not None
        for rule in _rules(name, value, flag, pool, knowledge, allow)
    )


def _rules(
    name: str,
    value: str,
    flag: Flag,
    pool: Pool,
    knowledge: Knowledge,
    allow: Mapping[str, str],
) -> Iterator[GroundRule]:
    ever = any(
        reads(flag, each.version) and takes(flag, each.version, value)
        for each in knowledge.releases.get(flag.runtime, ())
    )
    releases = pool.of(flag.runtime)
    found: dict[str, list[Candidate]] = {kind: [] for kind in _KINDS}
    for each in releases:
        for kind in _wrong(flag, each.version, value, ever):
            found[kind].append(each)
    if found["ZERO"] and _is_a_remedy(name, value, knowledge):
        # What CMake takes for not set is what setup.py asks for: HVD-132.
        found["ZERO"] = []
    others = pool.of(flag.home_of) if flag.home_of else ()
    found["HOME"] = [
        each
        for each in others
        if each.id in pool.homes and PurePosixPath(pool.homes[each.id]) != PurePosixPath(value)
    ]
    for kind, wrong in found.items():
        if wrong:
            where = (releases, wrong) if kind == "HOME" else (wrong,)
            slots = tuple(frozenset(each.id for each in those) for those in where)
            row = _row(kind, name, flag, _summary(kind, name, value, flag, wrong[0].version))
            cases = (FlagCase(kept=frozenset({name})),)
            rule = Rule(row.id, row.id, row.severity == "error", slots=slots, cases=cases)
            yield GroundRule(rule, row, reason=allow.get(row.id))


def _is_a_remedy(name: str, value: str, knowledge: Knowledge) -> bool:
    """Whether some row is lifted by this value, so that a plan sets it and its hint asks for it."""
    return any(
        (each.kind, each.name, each.value) == ("flag", name, value)
        for row in (*knowledge.advisories, *knowledge.couplings, *knowledge.flag_rules)
        for each in row.remedies
    )


def _wrong(flag: Flag, release: str, value: str, ever: bool) -> Iterator[str]:
    """Yield what is wrong with a value for a release. *ever*: some release reads and takes it."""
    read = reads(flag, release)
    if not read:
        yield "LATE" if known_yet(flag, release) else "EARLY"
    # A value that no release takes is no better where the flag is not read at all.
    if not takes(flag, release, value) if read else not ever:
        zero = "ZERO" if value == "0" else "VALUE"
        yield "TEXT" if any_text_counts(flag, release) else zero


def _summary(kind: str, name: str, value: str, flag: Flag, release: str) -> str:
    runtime = flag.runtime
    return {
        "EARLY": f"{runtime} reads {name} only from release {flag.since} on",
        "LATE": f"{runtime} ignores {name} after release {flag.until}",
        "TEXT": f"{name}={value} counts as 1: any text does up to {runtime} {flag.any_text_until}",
        "ZERO": f"{name}=0 counts as unset: only 1 has an effect",
        "VALUE": f"{name}={value} is not valid; valid: {_values(flag, release)}",
        "HOME": f"{name}={value} is not the folder of the {flag.home_of} of the stack",
    }[kind]


def _values(flag: Flag, release: str) -> str:
    """Return in words what a flag takes."""
    if flag.kind == "one":
        return "1"
    if flag.kind == "integers":
        return "whole numbers with commas between them"
    known = [each.values for each in flag.values if matches(release, each.range)]
    return " or ".join(dict.fromkeys(value for values in known for value in values)) or "none here"


def _row(kind: str, name: str, flag: Flag, summary: str) -> FlagRule:
    severity, fix = _KINDS[kind]
    # All of it was checked: with the table, with the recipe.
    return FlagRule.model_construct(
        id=f"FLAG-{kind}-{name.replace('_', '-').strip('-')}"[:40].rstrip("-"),
        severity=severity,
        summary=summary,
        fix=fix,
        evidence="derived",
        sources=flag.sources,
        runtime=flag.runtime,
    )


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
