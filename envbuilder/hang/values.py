"""What ``hang`` says of a job's ranks: where each one is, and which of them the others wait for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..base import Document, Line

RankState = Literal["busy", "asleep", "stopped", "in the kernel"]

Verdict = Literal["stopped", "elsewhere", "apart", "missing", "together", "moving", "unseen"]
"""Who is waited for: ranks that were *stopped*; that are *elsewhere*, in no collective; that are in
another collective, *apart* from the others; that are *missing* on this machine. *together*: all are
in one collective. *moving*: they go on. *unseen*: no stack tells it.
"""


class StackFrame(Document):
    """A function that has not returned. ``line``: 0 in native code, whose ``file`` is a library."""

    function: Line
    file: Line
    line: int

    def text(self) -> str:
        """Return ``train (loop.py:31)``."""
        name = self.file.rpartition("/")[2]
        return f"{self.function} ({name}:{self.line})" if self.line else f"{self.function} ({name})"


class HangRank(Document):
    """One rank."""

    rank: int
    pid: int
    state: RankState
    cpu: float = Field(description="Cores that it used between the two looks.")
    moved: bool = Field(description="Whether its stack was another one at the second look.")
    call: Line | None = Field(description="The collective that it is in, as MPI_Allreduce.")
    at: StackFrame | None = Field(description="Where the program called that, or where it is.")
    frames: tuple[StackFrame, ...] = Field(description="Of its main thread, the innermost first.")
    unseen: Line | None = Field(default=None, description="Why there is no stack.")


class Hang(Document):
    """The ranks of a job on this machine, and who is waited for."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    host: Line
    seconds: float = Field(description="Between the two looks.")
    size: int | None = Field(description="Ranks of the whole job; None where no variable says it.")
    ranks: tuple[HangRank, ...] = Field(description="Those of this machine.")
    verdict: Verdict
    culprits: tuple[int, ...] = Field(description="The ranks that are waited for.")
    says: Line
    hint: Line
