"""The verbs over knowledge: its rows listed, shown, and asked about versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from ..errors import UsageError
from ..knowledge.entries import check_choice
from ..knowledge.matching import kind, rows, subjects
from ..knowledge.rows import Knowledge, Row
from ..knowledge.terms import Arch, Severity
from ..model.outcome import CheckResult
from ..resolve.laws import LAW_ROWS
from ..resolve.name_table import NAME_ROWS
from ..resolve.pool import roles
from ..resolve.stated_facts import (
    check_component,
    stated_distributions,
    stated_facts,
    stated_versions,
    unknown_release,
)
from ..resolve.verdicts import StackFacts, match, row_match
from ..resolve.wheel_table import WHEEL_ROWS
from ..runtimes import RUNTIMES
from ..text import unknown
from ..workflow.context import Context
from ..workflow.software_list import ComponentList


def list_rows(component: str | None, severity: str | None, context: Context) -> tuple[Row, ...]:
    """Return the rows that speak of a component and have a severity; None: whatever it is.

    Raises UsageError for a component or severity that there is not.
    """
    knowledge = context.knowledge
    if component is not None:
        check_component(component, knowledge)
    check_choice("severity", severity, get_args(Severity))
    return tuple(
        row
        for row in rows(knowledge)
        if (component is None or _speaks_of(row, component, knowledge))
        and severity in (None, row.severity)
    )


def show(name: str, context: Context) -> Row:
    """Return one row. Raises UsageError with the nearest id."""
    every = {row.id: row for row in (*_rules(), *rows(context.knowledge))}
    if name not in every:
        raise UsageError(
            "advisory.unknown",
            unknown("advisory", name, every),
            "envbuild advisories list shows all advisories",
        )
    return every[name]


def _rules() -> Iterator[Row]:
    """Yield the rules over facts of wheels and names, which have ids like rows."""
    for name, summary in {**WHEEL_ROWS, **LAW_ROWS, **NAME_ROWS}.items():
        yield Row.model_construct(
            id=name,
            severity="error",
            summary=summary,
            evidence="derived",
            sources=("docs/knowledge.md",),
        )


def plain(row: Row) -> dict[str, Any]:
    """Return a row as JSON types, with what kind of row it is."""
    return {"kind": kind(row), **row.plain()}


def check(
    words: Sequence[str],
    arch: str | None,
    facts: Sequence[str],
    context: Context,
    listed: ComponentList | None = None,
    *,
    strict: bool = False,
) -> CheckResult:
    """Return what is known of these versions together. *facts*: ``NAME=VALUE``.

    *strict*: errors count also for releases that they were not confirmed for.

    Raises UsageError for a word that is no COMPONENT==VERSION, for unknown names, and if there is
    no version at all.
    """
    knowledge = context.knowledge
    words, drivers = _without_drivers(words)
    if not words and not drivers and listed is None:
        raise UsageError(
            "component.none",
            "no version is given",
            "write openmpi==3.1.3, or name a list of software with --file",
        )
    stated = stated_versions(words, knowledge)
    versions = {**(listed.versions if listed else {}), **stated}
    facts = (*facts, *drivers)
    for component, text in versions.items():
        warning = unknown_release(component, text, knowledge)
        if warning:
            context.reporter.warn(warning)
    for component in stated:
        if not any(_speaks_of(row, component, knowledge) for row in rows(knowledge)):
            context.reporter.warn(f"no advisory is recorded for {component}")
    check_choice("architecture", arch, get_args(Arch))
    about, origins = stated_facts(arch, facts, knowledge, RUNTIMES, versions)
    from_list = {
        component: origin
        for component, origin in (listed.origins if listed else {}).items()
        if component not in stated
    }
    names = {**(listed.distributions if listed else {}), **stated_distributions(words, knowledge)}
    # What a list contains was built by somebody else, without envbuild's remedies.
    stack = StackFacts(versions, about, {**from_list, **origins}, names, by_envbuild=listed is None)
    matches = match(knowledge, stack)
    return CheckResult(
        asked=(*(f"{name}=={text}" for name, text in versions.items()), *drivers),
        rows=tuple(row_match(each) for each in matches),
        bad=any(
            each.bad or (strict and each.confirmed and each.verdict == "holds") for each in matches
        ),
    )


def _without_drivers(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words about components, and the facts that ``driver==535.54`` words state."""
    drivers = tuple(word for word in words if word.startswith("driver=="))
    facts = tuple(word.replace("==", "=", 1) for word in drivers)
    return tuple(word for word in words if word not in drivers), facts


def _speaks_of(row: Row, component: str, knowledge: Knowledge) -> bool:
    return not roles(knowledge, component).isdisjoint(subjects(row))
