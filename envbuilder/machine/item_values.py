"""What doctor found on a machine: facts, what is missing, and what can be done about it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..base import Document, Line

Status = Literal["ok", "missing", "problem", "note"]
Fact = bool | int | str


class Item(Document):
    """One thing that was looked at. A missing one or a problem says what it is needed for."""

    id: Line  # Stable name, such as mpi.mpirun.
    title: Line
    status: Status
    found: Line  # The result, in words.
    details: tuple[Line, ...] = ()
    # The result for programs: path, version, bytes, ...
    facts: dict[Line, Fact] = Field(default_factory=dict)
    needed_for: Line | None = None
    without_root: Line | None = None  # How a user without root can install or replace it.
    debian: Line | None = None  # Debian packages for root to install, separated by spaces.


class Section(Document):
    """Items that belong together."""

    id: Line
    title: Line
    items: tuple[Item, ...]


class Capability(Document):
    """Something that this machine can or cannot do now, and why."""

    id: Line
    title: Line
    can: bool
    why: Line


class DoctorReport(Document):
    """All that doctor found. Holds no credentials: addresses are cut down to their hosts."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    sections: tuple[Section, ...]
    abilities: tuple[Capability, ...]
