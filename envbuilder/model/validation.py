"""What ``validate`` says of an environment that exists: findings, worst first."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..base import Command, Document, Line, Name
from ..knowledge.symptoms import Confidence
from ..knowledge.terms import Severity
from .evidence import LaunchRecord, Moment, RunObservation, SmokeResult
from .outcome import RowMatch

EnvironmentKind = Literal["virtualenv", "conda environment", "Python prefix"]
Layer = Literal[
    "interpreter",
    "variables",
    "loader",
    "files",
    "metadata",
    "ABI",
    "framework records",
    "modules",
    "conda records",
    "site",
]
"""Part of an environment that a check examines; docs/validating.md defines each."""
Fault = Literal[
    "missing",
    "another release",
    "another machine",
    "another owner",
    "damaged",
    "half-done",
    "hidden",
    "left over",
]
"""What can be wrong with a layer; docs/validating.md defines each."""


class Observation(Document):
    """Where something was read, and what is written there."""

    file: Line
    field: Line | None = None  # NEEDED, Requires-Dist, size, ...
    value: Line | None = None


class CheckInfo(Document):
    """One kind of finding that ``validate`` looks for."""

    id: Line
    layer: Layer
    faults: tuple[Fault, ...] = Field(min_length=1)
    severity: Severity
    title: Line
    why: Line  # Why it matters.
    fix: Line  # What to do.
    source: Line


class Finding(Document):
    """Something that is wrong, or may be. ``id``: of its check, or of the row of knowledge."""

    id: Line
    severity: Severity
    confidence: Confidence
    summary: Line
    evidence: tuple[Observation, ...]
    why: Line
    fix: Command
    source: Line
    # Why the baseline or the recipe accepts it; it then does not count.
    accepted: Line | None = None


class Unchecked(Document):
    """What a check could not decide, because it lacked a fact. ``id``: of the check."""

    id: Line
    reason: Line
    examples: tuple[Line, ...] = ()  # The first of what it is about.
    number: int  # Of how many; 0: the check looked at nothing.


class Acceptance(Document):
    """Findings that somebody knows of and accepts, and why."""

    id: Line
    # The summary as validate prints it; * matches any text. None: all findings of the id.
    summary: Line | None = None
    reason: Line


class Baseline(Document):
    """What is accepted in an environment as it is: a file that somebody keeps."""

    schema_: Literal[1] = Field(alias="schema")
    accepted: tuple[Acceptance, ...]


class ForeignProof(Document):
    """The record of one smoke test of an environment as it was found; kept where the user says."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    path: Line  # The environment.
    execution: Literal["native", "emulated"]
    time: Moment
    log: Line | None  # Path of the log; None: not stored.
    request: LaunchRecord
    run: RunObservation | None = None
    result: SmokeResult


class Validation(Document):
    """What is known of an environment after it was looked at."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    path: Line
    kind: EnvironmentKind
    python: Line | None  # The version that the environment reports.
    arch: Line | None  # Architecture of its interpreter: x86_64, ppc64le, ...
    distributions: int  # Number of installed distributions, by metadata.
    libraries: int  # Number of ELF libraries in its package folders.
    files: int  # Number of files that its packages recorded.
    modules: tuple[Line, ...] = ()  # Modules loaded in the shell, if they were examined.
    # Modules that --run tried to import, each in a separate process.
    imported: tuple[Line, ...] = ()
    # Proofs of the ranks that --run started; a failed one is last.
    proofs: tuple[ForeignProof, ...] = ()
    not_proved: Line | None = None  # Why --run started no ranks, or not all possible ones.
    findings: tuple[Finding, ...]  # Findings, errors first.
    # Rows of knowledge that depend on facts that are not stated.
    undecided: tuple[RowMatch, ...] = ()
    # What checks could not decide, because they lacked a fact.
    unchecked: tuple[Unchecked, ...] = ()
    unused: tuple[Acceptance, ...] = ()  # Rows of the baseline that match no finding.

    @property
    def open(self) -> tuple[Finding, ...]:
        """The findings that no baseline accepts."""
        return tuple(each for each in self.findings if each.accepted is None)

    @property
    def bad(self) -> bool:
        """Whether anything is an error that nobody accepts."""
        return any(each.severity == "error" for each in self.open)


class ExternalEnvironment(Document):
    """What a root remembers of an environment that others built, which is never changed."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    name: Name
    path: Line  # Absolute path of a folder or image.
    imported: Line  # Time of the import, ISO 8601 in UTC.
    validation: Validation
