"""What the table of flags says of the flags that a recipe sets: read at all, value, home."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from ..model.knowledge import Flag, FlagRule, Knowledge
from ..model.ranges import matches, version
from .pool import Pool
from .problem import FlagCase, Rule
from .rules import Grounded

_INTEGERS = re.compile(r"[0-9]+(,[0-9]+)*")


def flag_table(
    knowledge: Knowledge, pool: Pool, flags: Mapping[str, str], allow: Mapping[str, str]
) -> tuple[Grounded, ...]:
    """Return the rules of all flags that are set; what no candidate can violate is left out."""
    found: list[Grounded] = []
    for name, value in flags.items():
        flag = knowledge.flags.get(name)
        if flag is not None:
            found += _rules(name, value, flag, pool, allow)
    return tuple(found)


def _rules(
    name: str, value: str, flag: Flag, pool: Pool, allow: Mapping[str, str]
) -> Iterator[Grounded]:
    releases = pool.of(flag.runtime)
    unread = frozenset(each.id for each in releases if not reads(flag, each.version))
    wrong = frozenset(
        each.id
        for each in releases
        if reads(flag, each.version) and not takes(flag, each.version, value)
    )
    if unread:
        said = f"{name} is not read by these releases of {flag.runtime}: setting it does nothing"
        yield _grounded("UNREAD", name, flag, "warning", said, (unread,), allow)
    if wrong:
        said = f"{name}={value} is no value that these releases of {flag.runtime} take"
        yield _grounded("VALUE", name, flag, "error", said, (wrong,), allow)
    if flag.home_of is not None:
        yield from _home(name, value, flag, flag.home_of, pool, allow)


def _home(
    name: str, value: str, flag: Flag, component: str, pool: Pool, allow: Mapping[str, str]
) -> Iterator[Grounded]:
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
) -> Grounded:
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
    return Grounded(rule, row, reason=allow.get(row.id))


_FIXES = {
    "UNREAD": "leave it out, or take a release that reads it",
    "VALUE": "see envbuild advisories for what each release takes",
    "HOME": "leave it out: it is derived from the module that is chosen",
}


def reads(flag: Flag, release: str) -> bool:
    """Whether a release of the runtime reads the flag at all."""
    this = version(release)
    since, until = (version(each) if each else None for each in (flag.since, flag.until))
    if this is None:
        return True
    return (since is None or this >= since) and (until is None or this <= until)


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


def same_place(one: str, other: str) -> bool:
    """Whether two paths are written for the same folder; links are not looked at."""
    return PurePosixPath(one) == PurePosixPath(other)
