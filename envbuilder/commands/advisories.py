"""The verbs over knowledge: its rows listed, shown, and asked about versions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from ..errors import UsageError
from ..model.condition import FACTS, FactType, Value
from ..model.knowledge import Knowledge, Row
from ..model.matching import Given, Match, kind, match, rows, subjects
from ..model.outcome import Checked, RowMatch
from ..model.ranges import version
from ..model.recipe import Arch, Severity
from ..model.site import Origin
from ..resolve.facts import OPERATIONS, Facts
from ..text import shown, unknown
from .context import Context
from .load import folders_and_knowledge

_VERSION = re.compile(r"[0-9][A-Za-z0-9.+_-]*")


def list_rows(component: str | None, severity: str | None, context: Context) -> tuple[Row, ...]:
    """Return the rows that speak of a component and have a severity; None: whatever it is.

    Raises UsageError for a component or severity that there is not.
    """
    knowledge = _knowledge(context)
    if component is not None:
        _check_component(component, knowledge)
    _check_choice("severity", severity, get_args(Severity))
    return tuple(
        row
        for row in rows(knowledge)
        if (component is None or _speaks_of(row, component, knowledge))
        and severity in (None, row.severity)
    )


def show(name: str, context: Context) -> Row:
    """Return one row. Raises UsageError with the nearest id."""
    every = {row.id: row for row in rows(_knowledge(context))}
    if name not in every:
        raise UsageError(
            unknown("advisory", name, every), "envbuild advisories list shows all of them"
        )
    return every[name]


def plain(row: Row) -> dict[str, Any]:
    """Return a row as JSON types, with what kind of row it is."""
    return {"kind": kind(row), **row.plain()}


def check(
    words: Sequence[str], arch: str | None, facts: Sequence[str], context: Context
) -> Checked:
    """Say what is known of these versions together. *facts*: ``NAME=VALUE``.

    Raises UsageError for a word that is no COMPONENT==VERSION, and for names that there are not.
    """
    knowledge = _knowledge(context)
    versions = _versions(words, knowledge)
    for component, asked in versions.items():
        _warn_of_no_release(component, asked, knowledge, context)
    _check_choice("architecture", arch, get_args(Arch))
    stated = _stated(arch, facts, knowledge)
    origins = {name: stated.origins[name] for name in versions if name in stated.origins}
    found = match(knowledge, Given(versions, stated.lookup, origins))
    return Checked(
        asked=tuple(f"{name}=={asked}" for name, asked in versions.items()),
        rows=tuple(_row_match(each) for each in found),
        bad=any(each.bad for each in found),
    )


def _knowledge(context: Context) -> Knowledge:
    return folders_and_knowledge(context)[1].value


def _check_component(name: str, knowledge: Knowledge) -> None:
    virtuals = {each for known in knowledge.components.values() for each in known.fulfils}
    if name not in knowledge.components and name not in virtuals:
        raise UsageError(unknown("component", name, {*knowledge.components, *virtuals}))


def _check_choice(what: str, word: str | None, choices: Sequence[str]) -> None:
    if word is not None and word not in choices:
        raise UsageError(unknown(what, word, choices), f"there are: {', '.join(choices)}")


def _speaks_of(row: Row, component: str, knowledge: Knowledge) -> bool:
    known = knowledge.components.get(component)
    names = {component, *(known.fulfils if known else ())}
    return not names.isdisjoint(subjects(row))


def _versions(words: Sequence[str], knowledge: Knowledge) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        name, equals, asked = word.partition("==")
        if not equals or not _VERSION.fullmatch(asked) or len(asked) > 64:
            raise UsageError(f"'{shown(word)}' is not COMPONENT==VERSION", "write openmpi==3.1.3")
        if name not in knowledge.components:
            raise UsageError(unknown("component", name, knowledge.components))
        if found.setdefault(name, asked) != asked:
            raise UsageError(
                f"two versions of {name}: {found[name]} and {asked}",
                "only one can be there: ask about the other in a call of its own",
            )
    return found


def _warn_of_no_release(component: str, asked: str, knowledge: Knowledge, context: Context) -> None:
    """Say so where all releases of a component are recorded and this is none of them."""
    existing = knowledge.existing.get(component)
    known = [
        *(existing.versions if existing else ()),
        *(each.version for each in knowledge.releases.get(component, ())),
    ]
    parsed = sorted(each for each in map(version, known) if each is not None)
    if parsed and version(asked) not in parsed:
        context.tell.warn(f"no release {asked} of {component} is known; the newest is {parsed[-1]}")


@dataclass(frozen=True)
class _Stated:
    """What a user states. Flags are unknown until one is stated; then the others are not set."""

    facts: Mapping[str, Value]
    flags: Mapping[str, str]
    origins: Mapping[str, Origin]

    def lookup(self, name: str) -> Value | None:
        if name in self.facts:
            return self.facts[name]
        of_flags = name.partition(".")[0] in ("flags", "ops")
        return Facts(self.facts, self.flags).lookup(name) if self.flags or not of_flags else None


def _stated(arch: str | None, words: Sequence[str], knowledge: Knowledge) -> _Stated:
    facts: dict[str, Value] = {} if arch is None else {"arch": arch}
    flags: dict[str, str] = {}
    origins: dict[str, Origin] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise UsageError(f"'{shown(word)}' is not NAME=VALUE", "write network=infiniband")
        owner, _, rest = name.partition(".")
        if owner == "flags":
            _check_flag(rest, knowledge)
            flags[rest] = text
        elif rest == "origin":
            _check_component(owner, knowledge)
            origins[owner] = _origin(text)
        else:
            facts[name] = _value(name, text, knowledge)
    return _Stated(facts, flags, origins)


def _origin(text: str) -> Origin:
    known: tuple[Origin, ...] = get_args(Origin)
    _check_choice("origin", text, known)
    return next(each for each in known if each == text)


def _check_flag(name: str, knowledge: Knowledge) -> None:
    if name not in knowledge.flags:
        raise UsageError(unknown("flag", name, knowledge.flags))


def _value(name: str, text: str, knowledge: Knowledge) -> Value:
    owner, dot, operation = name.partition(".")
    if dot:
        if owner == "ops":
            _check_choice("operation", operation, OPERATIONS)
        else:
            _check_component(owner, knowledge)
        return _BOOLS.get(text, text)
    if name not in FACTS:
        hint = "COMPONENT.FACT, such as mpi.cuda_aware, and flags.NAME can be stated too"
        raise UsageError(unknown("fact", name, FACTS), hint)
    kinds: Mapping[FactType, Value | None] = {
        "set": frozenset(filter(None, text.split(","))),
        "bool": _BOOLS.get(text),
    }
    value = kinds.get(FACTS[name].type, text)
    if value is None:
        raise UsageError(f"'{shown(name)}' is true or false, not '{shown(text)}'")
    return value


_BOOLS = {"true": True, "false": False}


def _row_match(found: Match) -> RowMatch:
    row = found.row
    return RowMatch(
        id=row.id,
        kind=kind(row),
        verdict=found.verdict,
        severity=found.severity,
        summary=row.summary,
        about=found.about,
        open=found.open,
        fix=row.fix,
        link=row.sources[0],
    )
