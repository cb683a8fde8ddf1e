"""What ``diagnose`` says of logs: causes first, then what follows from them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..base import Document, Line
from ..knowledge.symptoms import Confidence, SymptomTells


class LogPlace(Document):
    """Where something stands in a log."""

    log: Line
    line: int = Field(description="Number of its first line, from 1.")
    rank: int | None = Field(default=None, description="The rank that marks the line.")
    text: tuple[Line, ...] = Field(description="The text; unprintable characters are escaped.")
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
    settle: Line | None = Field(description="The fact that shows whether this is the cause.")
    advisories: tuple[Line, ...] = Field(default=(), description="Advisories with this symptom.")
    confirmed: tuple[Line, ...] = Field(
        default=(), description="Findings of validate that confirm it."
    )
    places: tuple[LogPlace, ...] = Field(description="Some of the places, in order.")
    count: int = Field(description="Number of occurrences, up to a limit.")


class RankSymptom(Document):
    """What one rank, or one log, says first of all."""

    rank: Line
    id: Line | None = Field(description="None: no known error.")
    line: int | None = None


class LogSize(Document):
    """A log that was read."""

    log: Line
    lines: int


class Diagnosis(Document):
    """What logs say. Of several, or of one whose lines name ranks, also who failed first."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    logs: tuple[LogSize, ...]
    findings: tuple[Symptomatic, ...] = Field(description="Causes first, in the order of the logs.")
    ranks: tuple[RankSymptom, ...] = ()
    ranks_differ: Line | None = Field(
        default=None, description="Which rank failed first, or reports another error."
    )

    @property
    def bad(self) -> bool:
        """Whether an error was found."""
        return any(each.severity == "error" for each in self.findings)
