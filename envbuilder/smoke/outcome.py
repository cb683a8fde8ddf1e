"""What the judge gets besides the ranks' records: what was asked for, and how the run ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from ..model.plan import Api, Transport
from .mpi_library import PlanMpi

State = Literal["running", "stopped", "gone"]


@dataclass(frozen=True)
class Expectations:
    """What was asked for, and what the plan says of it.

    launch: the words of the command that starts the ranks.
    timeout: seconds.
    prefix: its real path.
    api, transport: what the ranks must talk through, and what must carry the data; a transport of
        None: anything.
    mpi: the libmpi that the plan means; None: the plan holds no MPI.
    """

    ranks: int
    launch: tuple[str, ...]
    timeout: float
    prefix: str
    api: Api = "numpy"
    transport: Transport | None = None
    mpi: PlanMpi | None = None

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
