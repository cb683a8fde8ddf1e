"""Answers to "why this?" and "why not that?"."""

from ..base import Document, Line, Name
from ..knowledge.terms import PlainVersion
from .plan import PlanFinding


class WhyNot(Document):
    """What stands against a version: what cannot hold with it, or what makes it worse.

    ``environment``: the published one that it is about, NAME/N; None: a plan made now.
    """

    environment: Line | None = None
    what: Line
    possible: bool
    because: tuple[Line, ...]
    links: tuple[Line, ...] = ()


class ComponentReason(Document):
    """What a component is in the best stack. ``instead_of``: what ranks better and is not there.

    ``environment``: the published one that it is about, NAME/N; None: a plan made now.
    """

    environment: Line | None = None
    component: Name
    version: PlainVersion
    provider: Line
    asked: tuple[Line, ...]
    findings: tuple[PlanFinding, ...] = ()
    instead_of: tuple[WhyNot, ...] = ()
    further: int = 0
