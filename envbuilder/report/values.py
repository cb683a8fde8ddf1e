"""What ``report`` says of the file that it wrote."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..base import Document, Line


class LeftOut(Document):
    """A kind of thing that was taken out of a report."""

    what: Line
    count: int


class SupportReport(Document):
    """A report that was written. The file itself is text, for people."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    file: Line
    lines: int
    left_out: tuple[LeftOut, ...]
    missing: tuple[Line, ...] = Field(default=(), description="Missing parts with reasons.")
