"""What can be rendered: a lock, or a plan that nobody has locked."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.plan import Lock, Plan

NOT_LOCKED = "not-locked"


@dataclass(frozen=True)
class UnlockedPlan:
    """A plan whose files are not decided: what is rendered of it says so in place of an id."""

    plan: Plan

    def id(self) -> str:
        """Return a name that no environment has."""
        return NOT_LOCKED

    def sha256(self) -> str:
        """Return no hash."""
        return "none"


Renderable = Lock | UnlockedPlan
"""Whatever needs no file of the lock is rendered from either: it has a plan, and a name."""
