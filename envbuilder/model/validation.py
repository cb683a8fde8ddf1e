"""What ``validate`` says of an environment that exists: findings, worst first."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..base import Document, Line
from ..knowledge.symptoms import Confidence
from ..knowledge.terms import Severity
from .evidence import LaunchRecord, Moment, RunObservation, SmokeResult
from .outcome import RowMatch

EnvironmentKind = Literal["virtualenv", "conda environment", "Python prefix"]


class Observation(Document):
    """Where something was read, and what is written there."""

    file: Line
    field: Line | None = Field(default=None, description="NEEDED, Requires-Dist, size, ...")
    value: Line | None = None


class CheckInfo(Document):
    """One kind of finding that ``validate`` looks for."""

    id: Line
    severity: Severity
    title: Line
    why: Line = Field(description="Why it matters.")
    fix: Line = Field(description="What to do about it.")
    source: Line


class Finding(Document):
    """Something that is wrong, or may be. ``id``: of its check, or of the row of knowledge."""

    id: Line
    severity: Severity
    confidence: Confidence
    summary: Line
    evidence: tuple[Observation, ...]
    why: Line
    fix: Line
    source: Line
    accepted: Line | None = Field(
        default=None, description="Why the baseline accepts it: it then counts as none."
    )


class Acceptance(Document):
    """Findings that somebody knows of and accepts, and why."""

    id: Line
    summary: Line | None = Field(
        default=None, description="As validate prints it; * is anything. None: all of the id."
    )
    reason: Line


class Baseline(Document):
    """What is accepted in an environment as it is: a file that somebody keeps."""

    schema_: Literal[1] = Field(alias="schema")
    accepted: tuple[Acceptance, ...]


class ForeignProof(Document):
    """The record of one smoke test of an environment as it was found; kept where the user says."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    path: Line = Field(description="The environment.")
    execution: Literal["native", "emulated"]
    time: Moment
    log: Line | None = Field(description="Where its log lies; None: it was not kept.")
    request: LaunchRecord
    run: RunObservation | None = None
    result: SmokeResult


class Validation(Document):
    """What is known of an environment after it was looked at."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    path: Line
    kind: EnvironmentKind
    python: Line | None = Field(description="Its version, as the environment says it.")
    arch: Line | None = Field(description="Of its interpreter: x86_64, ppc64le, ...")
    distributions: int = Field(description="Installed in it, by their metadata.")
    libraries: int = Field(description="ELF libraries below its folders of packages.")
    files: int = Field(description="Files that its packages recorded.")
    modules: tuple[Line, ...] = Field(
        default=(), description="Loaded in the shell, where these were looked at."
    )
    imported: tuple[Line, ...] = Field(
        default=(), description="What --run imported, or tried to, each in a process of its own."
    )
    proofs: tuple[ForeignProof, ...] = Field(
        default=(), description="Of the ranks that --run started; a failed one is the last."
    )
    not_proved: Line | None = Field(
        default=None, description="Why --run started no ranks, or not all that it could elsewhere."
    )
    findings: tuple[Finding, ...] = Field(description="The worst first.")
    undecided: tuple[RowMatch, ...] = Field(
        default=(), description="Rows of knowledge that depend on facts that nobody stated."
    )
    unused: tuple[Acceptance, ...] = Field(
        default=(), description="Rows of the baseline that no finding here fits."
    )

    @property
    def open(self) -> tuple[Finding, ...]:
        """The findings that no baseline accepts."""
        return tuple(each for each in self.findings if each.accepted is None)

    @property
    def bad(self) -> bool:
        """Whether anything is an error that nobody accepts."""
        return any(each.severity == "error" for each in self.open)
