"""What a search of logs looks for: symptoms, advisories with one, and the lines of programs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..knowledge.components import Component
from ..knowledge.log_sources import LogSource
from ..knowledge.matching import rows
from ..knowledge.rows import Advisory, Coupling, Knowledge, Row
from ..knowledge.symptoms import Symptom
from ..runtimes import RUNTIMES
from ..text import counted
from .signs import Sign


@dataclass(frozen=True)
class KnownSymptom:
    """A symptom, or that of the rows ``advisories``."""

    symptom: Symptom
    advisories: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The id of its findings: a row's own."""
        return self.advisories[0] if self.advisories else self.symptom.id

    @cached_property
    def signs(self) -> tuple[Sign, ...]:
        """Its pattern, and those of lines elsewhere that it depends on."""
        symptom = self.symptom
        lines = {
            "context": symptom.context,
            "confirmed-by": symptom.confirmed_by,
            "refuted-by": symptom.refuted_by,
        }
        return (
            Sign(symptom.id, symptom.pattern),
            *(Sign(f"{symptom.id}/{name}", text, "once") for name, text in lines.items() if text),
        )


@dataclass(frozen=True)
class SymptomIndex:
    """Symptoms in the order in which they count at one place: causes, rows, then the others."""

    knowledge: Knowledge

    @property
    def sources(self) -> tuple[LogSource, ...]:
        """The programs whose lines are known."""
        return self.knowledge.log_sources

    @cached_property
    def program(self) -> LogSource:
        """The program that ran, whose errors those in a general form are."""
        return next(source for source in self.sources if source.layer == "program")

    @cached_property
    def rows(self) -> dict[str, Row]:
        """The rows with a symptom, by their ids."""
        return {row.id: row for row in rows(self.knowledge) if row.symptom}

    @cached_property
    def symptoms(self) -> tuple[KnownSymptom, ...]:
        """All that a log may show, once for each pattern."""
        by_pattern: dict[str, list[Row]] = {}
        for row in self.rows.values():
            by_pattern.setdefault(row.symptom or "", []).append(row)
        own = [KnownSymptom(symptom) for symptom in self.knowledge.symptoms]
        return (
            *(known for known in own if known.symptom.tells == "cause"),
            *(row_symptom(pattern, group) for pattern, group in by_pattern.items()),
            *(known for known in own if known.symptom.tells != "cause"),
        )

    @cached_property
    def frameworks(self) -> dict[str, Component]:
        """Runtimes and frameworks: a row about one has no symptom in a log without its name."""
        components = self.knowledge.components
        return {
            name: component
            for name, component in components.items()
            if name in RUNTIMES or component.horovod
        }

    def frameworks_of(self, row: Row) -> Iterator[str]:
        """Yield the runtimes and frameworks that a row is about."""
        if "flags.HOROVOD" in row.when:
            yield "horovod"
        if isinstance(row, Advisory):
            yield from self.frameworks.keys() & {row.component}
        elif isinstance(row, Coupling):
            yield from self.frameworks.keys() & row.given.keys()

    @cached_property
    def signs(self) -> tuple[Sign, ...]:
        """All patterns that a log is searched for."""
        return (
            *(sign for known in self.symptoms for sign in known.signs),
            *(_framework_sign(name, each) for name, each in self.frameworks.items()),
            *(sign for source in self.sources for sign in _source_signs(source)),
        )


def framework_sign(name: str) -> str:
    """Return the id of the sign of a component's name."""
    return f"{name}/name"


def _framework_sign(name: str, component: Component) -> Sign:
    names = {name, component.pip, component.conda, component.python_import}
    pattern = "|".join(sorted(re.escape(each) for each in names if each))
    return Sign(framework_sign(name), pattern, "once")


def _source_signs(source: LogSource) -> Iterator[Sign]:
    harmless = "|".join(f"(?:{text})" for text in source.harmless) or None
    errors = (source.error,) if isinstance(source.error, str) else source.error
    forms = [("error", pattern) for pattern in errors]
    for name, pattern in [*forms, ("warning", source.warning)]:
        if pattern:
            yield Sign(f"{source.id}/{name}", pattern, "distinct", harmless, any_case=False)
    if source.signature:
        yield Sign(f"{source.id}/signature", source.signature, "once")
    for number, pattern in enumerate(source.facts):
        yield Sign(f"{source.id}/facts/{number}", pattern, "distinct", any_case=False)
    lines = {"progress": source.progress, "finished": source.finished, "ended": source.ended}
    for name, pattern in lines.items():
        if pattern:
            yield Sign(f"{source.id}/{name}", pattern, "last", any_case=name == "progress")


def row_symptom(pattern: str, group: Sequence[Row]) -> KnownSymptom:
    """Return the symptom that some rows share: possible if it depends on a condition."""
    first = group[0]
    alone = len(group) == 1
    ids = tuple(row.id for row in group)
    summary = first.summary
    if not alone:
        count = counted(len(ids), "advisory", "advisories")
        summary = f"{count} have this symptom, such as: {summary}"[:400]
    decided = alone and first.when == "true"
    settle = "the installed versions: envbuild advisories check COMPONENT==VERSION..."
    return KnownSymptom(
        Symptom(
            id=first.id.lower(),
            pattern=pattern,
            cause=summary,
            hint=(alone and first.fix) or f"envbuild advisories show {first.id}",
            settle=settle if decided or not alone else f"whether {first.when}"[:400],
            confidence="likely" if decided else "possible",
            severity="error" if any(row.severity == "error" for row in group) else "warning",
        ),
        ids,
    )
