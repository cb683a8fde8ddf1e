"""The logs of ``logs/``: each really written by a program, or a line quoted from where it is cited.

Paths, hosts and addresses are made up. What a log is of was settled when it was made, by what was
broken then; ``index.yaml`` says so. The symptoms were written with these logs in view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path

import yaml

from envbuilder import data
from envbuilder.diagnosis.conclusion import conclude
from envbuilder.diagnosis.index import KnownSymptom, SymptomIndex
from envbuilder.diagnosis.search import search
from envbuilder.diagnosis.signs import Sign
from envbuilder.diagnosis.values import Diagnosis
from envbuilder.documents.knowledge import load_knowledge

LOGS = Path(__file__).parent / "logs"
PAGE = Path(__file__).parents[2] / "docs" / "diagnosing.md"
MARK = "<!-- printed by tests/diagnosis/test_corpus.py -->\n"


@dataclass(frozen=True)
class Log:
    """``first``: the finding that is right; None: nothing is wrong. ``by``: who wrote it."""

    name: str
    first: str | None
    by: str

    @property
    def data(self) -> bytes:
        return (LOGS / f"{self.name}.log").read_bytes()

    @property
    def quoted(self) -> bool:
        return self.by.startswith("https://")


@cache
def index() -> tuple[Log, ...]:
    """Return all logs, the broken first."""
    plain = yaml.safe_load((LOGS / "index.yaml").read_text(encoding="utf-8"))
    return tuple(
        Log(name, row.get("first"), row["by"])
        for kind in ("broken", "harmless")
        for name, row in plain[kind].items()
    )


@cache
def symptom_index() -> SymptomIndex:
    return SymptomIndex(load_knowledge([data.RECIPES]).value)


def known() -> tuple[KnownSymptom, ...]:
    return symptom_index().symptoms


def signs() -> tuple[Sign, ...]:
    return symptom_index().signs


def diagnosed(*texts: bytes, names: Sequence[str] = ()) -> Diagnosis:
    """Return what logs say, those of ranks 0, 1, ... if they have no names."""
    called = list(names) or [f"rank{number}.log" for number in range(len(texts))]
    return conclude(called, [search(BytesIO(text), signs()) for text in texts], symptom_index())


@dataclass(frozen=True)
class Outcome:
    log: Log
    ids: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def right(self) -> bool:
        """The right cause first; of a harmless log: no error, there may be a warning."""
        return self.ids[:1] == (self.log.first,) if self.log.first else not self.errors


@cache
def outcomes() -> tuple[Outcome, ...]:
    found = []
    for log in index():
        findings = diagnosed(log.data).findings
        errors = tuple(each.id for each in findings if each.severity == "error")
        found.append(Outcome(log, tuple(each.id for each in findings), errors))
    return tuple(found)


def page() -> str:
    """Return the table of docs/diagnosing.md."""
    broken = [each for each in outcomes() if each.log.first]
    harmless = [each for each in outcomes() if not each.log.first]
    quoted = sum(each.log.quoted for each in outcomes())
    lines = [
        "## The development set",
        "",
        "These logs were made together with the symptoms: they show that nothing is lost, not how",
        "good `diagnose` is.",
        "",
        f"Of {len(broken)} logs of a failure, {sum(each.right for each in broken)} have the right "
        "cause first.",
        f"Of {len(harmless)} harmless logs, {sum(not each.right for each in harmless)} have an "
        "error reported.",
        f"{quoted} of all logs are quoted; the named programs wrote the others.",
        "",
        "| written by | logs | right cause first | first finding |",
        "| --- | --- | --- | --- |",
    ]
    groups: dict[str, list[Outcome]] = {}
    for each in broken:
        by = "quoted from trackers and manuals" if each.log.quoted else each.log.by
        groups.setdefault(by, []).append(each)
    for by, those in sorted(groups.items()):
        ids = sorted({each.log.first or "" for each in those if each.right})
        row = (by, len(those), sum(each.right for each in those), ", ".join(f"`{i}`" for i in ids))
        lines.append("| " + " | ".join(map(str, row)) + " |")
    missed = [each for each in broken if not each.right]
    lines += ["", "Not found first:", ""]
    lines += [
        f"- `{each.log.name}` ({each.log.by}): `{each.log.first}`; first is "
        f"{f'`{each.ids[0]}`' if each.ids else 'nothing'}"
        for each in missed
    ]
    without = sorted(
        each.symptom.id
        for each in known()
        if not each.advisories and not any(each.symptom.id in one.ids for one in outcomes())
    )
    lines += ["", "Symptoms without a log: " + ", ".join(f"`{i}`" for i in without), ""]
    return "\n".join(lines)
