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
    cpu: float = Field(description="Cores that it used between the two samples.")
    moved: bool = Field(description="Whether its stack differs between the two samples.")
    call: Line | None = Field(description="The collective that it is in, such as MPI_Allreduce.")
    at: StackFrame | None = Field(
        description="Where the program called the collective, or where it is."
    )
    frames: tuple[StackFrame, ...] = Field(
        description="Frames of its main thread, the innermost first."
    )
    unseen: Line | None = Field(default=None, description="Why its stack is not available.")


class Hang(Document):
    """The ranks of a job on this machine, and who is waited for."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    host: Line
    seconds: float = Field(description="Seconds between the two samples.")
    size: int | None = Field(description="Number of ranks of the job; None: no variable states it.")
    ranks: tuple[HangRank, ...] = Field(description="Ranks on this machine.")
    verdict: Verdict
    culprits: tuple[int, ...] = Field(description="The ranks that the others wait for.")
    says: Line
    hint: Line
