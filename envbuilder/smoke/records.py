"""What each rank recorded: the events of the ranks' program, and reading them back.

A rank may be killed while it writes, and the folder may hold records of an earlier run: lines
that do not parse or carry another nonce are left out, so that nothing is taken for done that
this run did not do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from ..model.base import Document


class Event(Document):
    """What every line holds; ``time`` is the host's monotonic clock in seconds."""

    nonce: str
    time: float


class Start(Event):
    """Written before the runtime is imported."""

    event: Literal["start"]
    host: str
    pid: int
    started: int = Field(description="Clock ticks after boot, from /proc; 0 where unknown.")
    clock: str = Field(description="Boot id: hosts with an equal one share the clock.")
    executable: str
    uid: int
    launcher_rank: int | None
    api: str = "numpy"


class World(Event):
    """Who the rank is, and what it runs with."""

    event: Literal["init"]
    rank: int
    size: int
    local_rank: int
    local_size: int
    runtime: str
    runtime_version: str
    runtime_file: str | None
    build_record: dict[str, Any] | None
    framework: str | None = None
    mpi: str | None
    mpi_version: str | None
    python: str
    numpy: str


class Begin(Event):
    """A check begins."""

    event: Literal["begin"]
    check: str
    dtype: str | None
    bytes: int | None

    @property
    def label(self) -> str:
        return label(self.check, self.dtype, self.bytes)


class Done(Event):
    """A check ended; what the barrier and the timing found stands in the optional fields."""

    event: Literal["done"]
    check: str
    dtype: str | None
    bytes: int | None
    passed: bool
    problem: str | None
    seconds: float
    said: str | None = None
    median: float | None = Field(default=None, description="Seconds of one operation.")
    repetitions: int | None = None
    entered: tuple[float, ...] = ()
    left: tuple[float, ...] = ()

    @property
    def label(self) -> str:
        return label(self.check, self.dtype, self.bytes)


class Libraries(Event):
    """The communication libraries that the rank had mapped after the traffic."""

    event: Literal["libraries"]
    paths: tuple[str, ...]


class SkippedRecord(Event):
    """A check that is left out, because what is talked through cannot do it."""

    event: Literal["left out"]
    check: str
    dtype: str | None
    why: str


class Claim(Document):
    """Which transport carried an operation, and who says so."""

    operation: str
    transport: str
    source: str


class Claims(Event):
    """What carried the data, as far as this rank can tell; after shutdown."""

    event: Literal["carried"]
    claims: tuple[Claim, ...]


class Failure(Event):
    """An exception ended the rank."""

    event: Literal["error"]
    type: str
    message: str
    traceback: str


class End(Event):
    """The rank reached the end of the program."""

    event: Literal["end"]
    failed: int


AnyEvent = Annotated[
    Start | World | Begin | Done | SkippedRecord | Libraries | Claims | Failure | End,
    Field(discriminator="event"),
]
Kind = TypeVar("Kind", bound=Event)

RECORD_FILES = "rank-*.jsonl"


def label(check: str, dtype: str | None, size: int | None) -> str:
    """Return how a check is named in every message: ``allreduce float32 of 4096 bytes``."""
    words = [check]
    if dtype is not None:
        words.append(dtype)
    if size is not None:
        words.append(f"of {size} bytes")
    return " ".join(words)


@dataclass(frozen=True)
class RankRecord:
    """All that one process recorded, and the stacks that its fault handler wrote."""

    source: str
    start: Start
    events: tuple[Event, ...]
    stack: str = ""

    def _all(self, kind: type[Kind]) -> Iterator[Kind]:
        return (event for event in self.events if isinstance(event, kind))

    @property
    def world(self) -> World | None:
        return next(self._all(World), None)

    @property
    def rank(self) -> int | None:
        """The rank by the runtime, or by the launcher for a process that never got so far."""
        return self.world.rank if self.world else self.start.launcher_rank

    @property
    def done(self) -> tuple[Done, ...]:
        return tuple(self._all(Done))

    @property
    def current(self) -> Begin | None:
        """The check that began and did not end."""
        last = next(reversed([*self._all(Begin)]), None)
        return last if last and len([*self._all(Begin)]) > len(self.done) else None

    @property
    def libraries(self) -> Libraries | None:
        return next(self._all(Libraries), None)

    @property
    def failure(self) -> Failure | None:
        return next(self._all(Failure), None)

    @property
    def ended(self) -> bool:
        return next(self._all(End), None) is not None


@dataclass(frozen=True)
class Records:
    """The processes that reported in this run, by rank; and files left out, with the reason."""

    ranks: tuple[RankRecord, ...]
    ignored: tuple[str, ...] = ()


def _parse(line: bytes, adapter: TypeAdapter[Event]) -> Event | None:
    try:
        return adapter.validate_json(line)
    except ValidationError:
        return None


def _order(record: RankRecord) -> tuple[bool, int, str, int]:
    return (record.rank is None, record.rank or 0, record.start.host, record.start.pid)


def read_ranks(folder: Path, nonce: str) -> Records:
    """Return what the processes of the run named by *nonce* recorded in *folder*."""
    ranks: list[RankRecord] = []
    ignored: list[str] = []
    for path in sorted(folder.glob(RECORD_FILES)):
        record = read_rank(path, nonce)
        if isinstance(record, RankRecord):
            ranks.append(record)
        else:
            ignored.append(f"ignored {path.name}: {record}")
    return Records(tuple(sorted(ranks, key=_order)), tuple(ignored))


def read_rank(path: Path, nonce: str) -> RankRecord | str:
    """Return what one process recorded, or why that counts for nothing."""
    adapter = _adapter()
    events = [_parse(line, adapter) for line in path.read_bytes().splitlines()]
    ours = tuple(event for event in events if event is not None and event.nonce == nonce)
    if ours and isinstance(ours[0], Start):
        return RankRecord(path.name, ours[0], ours, _stack(path))
    if ours:
        return "its beginning is missing"
    if any(event is not None for event in events):
        return "another run wrote it"
    return "it holds no readable record"


@cache
def _adapter() -> TypeAdapter[Event]:
    return TypeAdapter(AnyEvent)


def _stack(record: Path) -> str:
    path = stack_path(record.parent, record.name)
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def stack_path(folder: Path, source: str) -> Path:
    """Return the file that holds the stacks of the process that wrote *source*."""
    return folder / f"stack-{source.removeprefix('rank-').removesuffix('.jsonl')}.txt"
