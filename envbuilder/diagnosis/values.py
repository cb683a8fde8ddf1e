"""What ``diagnose`` says of logs: causes first, then what follows from them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..base import Document, Line
from ..knowledge.symptoms import Confidence, SymptomTells
from ..model.outcome import RowMatch


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
        default=(),
        description="Independent facts that confirm it: other lines, releases, findings of "
        "validate.",
    )
    source: Line | None = Field(default=None, description="The program that printed it.")
    page: Line | None = Field(default=None, description="The program's page on its errors.")
    search_words: Line | None = Field(
        default=None, description="The words of the error that are the same in every run."
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


Outcome = Literal["known", "unexplained", "clean", "open"]
"""``unexplained``: a known program reports an error that no symptom explains. ``clean``: no error,
and the end of the program was seen. ``open``: no error, and its end was not seen."""


class Diagnosis(Document):
    """What logs say. Of several, or of one whose lines name ranks, also who failed first."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    outcome: Outcome
    logs: tuple[LogSize, ...]
    findings: tuple[Symptomatic, ...] = Field(description="Causes first, in the order of the logs.")
    facts: dict[Line, Line] = Field(
        default_factory=dict, description="Releases and facts that the logs state."
    )
    known_bad: tuple[RowMatch, ...] = Field(
        default=(), description="Other advisories that apply to these releases."
    )
    ranks: tuple[RankSymptom, ...] = ()
    ranks_differ: Line | None = Field(
        default=None, description="Which rank failed first, or reports another error."
    )
