"""What ``validate --fix`` puts back: what a file has to be, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field

from .base import Document, Line


@dataclass(frozen=True)
class Package:
    """What brought a file. ``tags``: of its wheel, where they are known.

    ``record``: the last file that its installer wrote, its RECORD or its record in conda-meta.
    """

    kind: Literal["wheel", "conda package"]
    name: str
    version: str
    record: Path
    tags: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class FindingKey(NamedTuple):
    """What tells a finding from others, as a baseline names it."""

    id: str
    summary: str


@dataclass(frozen=True)
class Wanted:
    """A file that is not as it was recorded, and what it has to be.

    ``was``: what is wrong with it. ``digest``: as RECORD writes it, empty where nothing says what
    it holds. ``link``: where it leads, for a link. ``mode`` and ``mtime`` (ns): None where they
    were not recorded. ``package``: None where none brought it. ``unfit``: why it is left as it is.
    """

    path: str
    finding: FindingKey
    was: str
    digest: str = ""
    link: str | None = None
    mode: int | None = None
    mtime: int | None = None
    package: Package | None = None
    unfit: str | None = None


class PutBack(Document):
    """A file that was put back, or with --dry-run would be."""

    file: Line
    was: Line = Field(description="What was wrong with it.")
    source: Line = Field(description="Where its content came from.")


class Left(Document):
    """A file that was left as it is, and why."""

    file: Line
    was: Line
    reason: Line


class LeftFinding(Document):
    """A finding that is there still, and why nothing was done about it."""

    id: Line
    summary: Line
    reason: Line


class Mending(Document):
    """What ``validate --fix`` did. ``dry_run``: nothing was written."""

    dry_run: bool
    put_back: tuple[PutBack, ...] = ()
    left: tuple[Left, ...] = Field(default=(), description="Files that are not put back.")
    refused: tuple[LeftFinding, ...] = Field(
        default=(), description="The findings that are left, the worst first."
    )
