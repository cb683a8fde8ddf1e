"""What ``validate --watch-list`` remembers of environments, and what it says: what changed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import Document, Line
from .recipe import Severity
from .validation import Finding


class PastFinding(Document):
    """A finding of last time."""

    id: Line
    severity: Severity
    summary: Line


class LastResult(Document):
    """What was found of an environment last time."""

    findings: tuple[PastFinding, ...] = ()
    problem: Line | None = Field(default=None, description="Why it could not be looked at.")


class WatchState(Document):
    """What was found of all environments of a list, by the lines that name them."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    environments: dict[str, LastResult] = Field(default_factory=dict)


class EnvironmentChange(Document):
    """An environment of which something is otherwise than last time."""

    environment: Line
    first: bool = Field(description="It was not looked at before: all of it is new.")
    new: tuple[Finding, ...] = ()
    gone: tuple[PastFinding, ...] = Field(default=(), description="Findings that are no more.")
    problem: Line | None = Field(default=None, description="Why it cannot be looked at any more.")
    readable: bool = Field(default=False, description="It can be looked at again.")


class WatchReport(Document):
    """What changed since last time."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    environments: int = Field(description="On the list.")
    changed: tuple[EnvironmentChange, ...]

    @property
    def bad(self) -> bool:
        """Whether an error is new, or an environment cannot be looked at any more."""
        return any(
            one.problem is not None or any(each.severity == "error" for each in one.new)
            for one in self.changed
        )
