"""Programs that write to logs, the form of their lines, and the libraries that the loader names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from ..base import Document, Line, Name
from .symptoms import Pattern

Layer = Literal[
    "kernel",
    "loader",
    "gpu",
    "network",
    "communication",
    "mpi",
    "container",
    "scheduler",
    "launcher",
    "build",
    "package",
    "modules",
    "framework",
    "program",
]
"""Where a program stands: an error of a lower layer causes errors of those above it."""

Url = Annotated[Line, Field(pattern="^https://")]


class LogSource(Document):
    """A program that writes to logs."""

    id: Name
    title: Line
    layer: Layer
    signature: Pattern | None = Field(
        default=None,
        description="Text of logs that contain this program. In a log without it, errors in its "
        "form are those of the program that ran.",
    )
    error: Pattern | tuple[Pattern, ...] = Field(
        default=(),
        description="Form, or forms, of an error of this program: a line, or a stack of lines. The "
        "group root is the line that states the reason (default: the first).",
    )
    warning: Pattern | None = Field(
        default=None,
        description="Form of a warning. It counts if the log shows that the program ended with an "
        "error and contains no other error.",
    )
    harmless: tuple[Pattern, ...] = Field(
        default=(), description="Texts of lines in this form that report no failure."
    )
    facts: tuple[Pattern, ...] = Field(
        default=(),
        description="Lines that state facts. A group is named after a component (its release), "
        "after a fact of conditions (driver, arch, network), or is wheel, requirement, installed "
        "or module.",
    )
    progress: Pattern | None = Field(
        default=None, description="Lines that show that the program works."
    )
    finished: Pattern | None = Field(
        default=None, description="Lines that show that the program ended without an error."
    )
    ended: Pattern | None = Field(
        default=None, description="Lines that show that the program ended with an error."
    )
    details: Line = Field(description="How to make it print more.")
    page: Url | None = Field(default=None, description="Its page on troubleshooting or logging.")


class LibraryName(Document):
    """What the name of a library, a symbol or a version of symbols tells.

    The pattern matches the whole name. ``since``: the first release that has it; it may contain
    groups of the pattern in braces.
    """

    id: Name
    kind: Literal["soname", "symbol", "version", "path"]
    pattern: Pattern
    component: Line = Field(description="The software that it belongs to.")
    since: Line | None = None
    interface: Line | None = Field(
        default=None, description="The ABI, and what else provides it: MPICH's."
    )
    hint: Line | None = Field(default=None, description="What to do if it is missing.")
    source: Url

    @property
    def text(self) -> str:
        """What it tells, behind the name."""
        release = f" {self.since} and later" if self.since else ""
        return f"part of {self.component}{release}" + (
            f"; {self.interface}" if self.interface else ""
        )


def library_name(
    rows: Sequence[LibraryName], kind: str, name: str
) -> tuple[LibraryName, Mapping[str, str]] | None:
    """Return the first row about a name, with the groups of its pattern; None: there is none."""
    for row in rows:
        match = re.fullmatch(row.pattern, name) if row.kind == kind else None
        if match:
            return row, match.groupdict("")
    return None
