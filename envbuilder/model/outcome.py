"""What the verbs hand back: shown as text, or as JSON with ``--json``."""

from __future__ import annotations

from pydantic import Field

from .base import Document, Line, Name, Sha256
from .evidence import Evidence, Tier
from .plan import Lock


class Created(Document):
    """An environment that is published and is the default."""

    environment: Name
    number: int
    id: Line
    lock_sha256: Sha256
    root: Line
    prefix: Line
    modulefiles: Line = Field(description="Folder for ``module use``.")
    loads: tuple[Line, ...] = Field(default=(), description="Modules of the site that it loads.")
    launch: tuple[Line, ...] = Field(description="What starts a program on two ranks.")
    evidence: Evidence


class Listed(Document):
    """One published number."""

    environment: Name
    number: int
    default: bool
    id: Line
    summary: str
    tier: Tier | None = Field(description="The highest tier ever proved; None: no proof left.")
    proved: str | None = Field(description="When it was last proved, ISO 8601 in UTC.")
    last_failed: bool = Field(description="Whether the newest smoke test failed.")


class Unfinished(Document):
    """A prefix that was never published: a build that failed, or still runs."""

    environment: Name
    id: Line


class Listing(Document):
    """Everything in a root."""

    root: Line
    site: Name
    arch: Line
    environments: tuple[Listed, ...]
    unfinished: tuple[Unfinished, ...] = ()


class Info(Document):
    """All that is known of one published environment."""

    environment: Name
    number: int
    default: bool
    id: Line
    prefix: Line
    modulefile: Line
    lock: Lock
    evidence: tuple[Evidence, ...]


class Changed(Document):
    """The default after a rollback."""

    environment: Name
    before: int | None
    now: int


class Removed(Document):
    """What ``remove`` took away."""

    environment: Name
    removed: tuple[Line, ...]


class DocumentEntry(Document):
    """A recipe or site that was found; ``summary`` of a broken one says what is wrong."""

    name: Name
    summary: str
    file: Line
