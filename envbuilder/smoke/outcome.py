"""What the judge gets besides the ranks' records: what was asked for, and how the run ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

State = Literal["running", "stopped", "gone"]


@dataclass(frozen=True)
class Expectations:
    """What was asked for, and what the plan says of it.

    launch: the words of the command that starts the ranks.
    timeout: seconds.
    mpi_owner: who must provide libmpi: ``prefix``, a module's name or ``system``; None: anybody.
    module_folders: (name, folder) of modules, to name the owners of libraries. All paths are real.
    """

    ranks: int
    launch: tuple[str, ...]
    timeout: float
    prefix: str
    mpi_owner: str | None = None
    module_folders: tuple[tuple[str, str], ...] = ()

    @property
    def launcher(self) -> str:
        """The name of the program that starts the ranks."""
        return PurePosixPath(self.launch[0]).name


@dataclass(frozen=True)
class Outcome:
    """How the run came to its end, as seen from outside.

    code: of the launcher; negative for a signal, None: it had to be ended.
    timed_out: the time was up; without it and without a code, waiting had become useless.
    log: what launcher and ranks printed.
    states: of each process at the time limit, by the name of its record; absent: cannot be seen.
    stacks: of each process at the time limit, by the name of its record.
    left_behind: processes that still ran when the launcher had ended by itself.
    first_gone: the record of the process that was seen to go first and before its end, if one was.
    """

    code: int | None
    timed_out: bool
    seconds: float
    log: str = ""
    states: Mapping[str, State] = field(default_factory=dict)
    stacks: Mapping[str, str] = field(default_factory=dict)
    left_behind: int = 0
    first_gone: str | None = None
