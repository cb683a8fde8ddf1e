"""Public failure reports of 2017 to 2026, recreated small, with their truth."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml
from corpus import diagnosed

from envbuilder.diagnosis.values import Diagnosis

LOGS = Path(__file__).parents[1] / "field" / "logs"
GRADES = ("right", "partly", "quoted", "silent", "wrong")


class Case(NamedTuple):
    """``first``: the finding that states cause and fix; None: a harmless log."""

    name: str
    first: str | None
    result: Diagnosis

    @property
    def grade(self) -> str:
        """Return right, partly, quoted, silent or wrong; for a harmless log right or wrong."""
        errors = [finding for finding in self.result.findings if finding.severity == "error"]
        ids = [finding.id for finding in errors]
        if self.first is None:
            return "wrong" if ids else "right"
        if not ids:
            return "silent"
        if ids[0] == self.first:
            return "right"
        if self.first in ids:
            return "partly"
        return "quoted" if "unexplained" in ids[:2] else "wrong"


@cache
def cases() -> tuple[Case, ...]:
    rows = yaml.safe_load((LOGS / "index.yaml").read_text(encoding="utf-8"))
    return tuple(
        Case(name, row["first"], diagnosed((LOGS / f"{name}.log").read_bytes()))
        for name, row in rows.items()
    )


def table() -> Iterator[str]:
    """Yield the table of docs/diagnosing.md."""
    broken = [case for case in cases() if case.first]
    harmless = [case for case in cases() if not case.first]
    yield "| cases | " + " | ".join(GRADES) + " |"
    yield "| --- |" + " --- |" * len(GRADES)
    for label, group in (("failures", broken), ("harmless", harmless)):
        counts = [sum(case.grade == grade for case in group) for grade in GRADES]
        yield f"| {label}: {len(group)} | " + " | ".join(map(str, counts)) + " |"
    yield ""
    yield "| confidence of the first cause | cases | right |"
    yield "| --- | --- | --- |"
    for confidence in ("certain", "likely", "possible"):
        stated = [c for c in broken if c.result.findings[0].confidence == confidence]
        right = sum(case.grade == "right" for case in stated)
        yield f"| {confidence} | {len(stated)} | {right} |"
