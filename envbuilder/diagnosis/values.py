"""What ``diagnose`` says of logs: causes first, then what follows from them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..base import Document, Line
from ..knowledge.symptoms import Confidence, SymptomTells


class LogPlace(Document):
    """Where something stands in a log."""

    log: Line
    line: int = Field(description="Its first line, from 1.")
    rank: int | None = Field(default=None, description="That the line is marked with.")
    text: tuple[Line, ...] = Field(description="What it says; what cannot be printed is escaped.")
    before: tuple[Line, ...] = ()
    after: tuple[Line, ...] = ()


class Symptomatic(Document):
    """A symptom that logs have, with what is known of it."""

    id: Line
    tells: SymptomTells
    severity: Literal["error", "warning"]
    confidence: Confidence
    cause: Line | None
    hint: Line = Field(description="What to do.")
    settle: Line | None = Field(description="The one fact that would show whether it is so.")
    advisories: tuple[Line, ...] = Field(default=(), description="Rows that have this symptom.")
    confirmed: tuple[Line, ...] = Field(
        default=(), description="What validate found in the environment that agrees with it."
    )
    places: tuple[LogPlace, ...] = Field(description="Some of them, the first first.")
    count: int = Field(description="How often it was found, up to a limit.")


class RankSymptom(Document):
    """What one rank, or one log, says first of all."""

    rank: Line
    id: Line | None = Field(description="None: no error is known in it.")
    line: int | None = None


class LogSize(Document):
    """A log that was read."""

    log: Line
    lines: int


class Diagnosis(Document):
    """What logs say. Of several, or of one whose lines name ranks, also who failed first."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    logs: tuple[LogSize, ...]
    findings: tuple[Symptomatic, ...] = Field(description="Causes first, in the logs' order.")
    ranks: tuple[RankSymptom, ...] = ()
    ranks_differ: Line | None = Field(
        default=None, description="Which rank failed first, or says something else."
    )

    @property
    def bad(self) -> bool:
        """Whether an error was found."""
        return any(each.severity == "error" for each in self.findings)
