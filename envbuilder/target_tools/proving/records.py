"""Reading back what each rank recorded (``smoke.recorder`` writes it).

A rank may be killed while it writes, and the folder may hold records of an earlier run: lines
that do not parse or carry another nonce are left out, so that nothing is taken for done that
this run did not do.
"""

import json
import re
from pathlib import Path

from ..files import IrregularFileError, read_end, read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    # Tells whether a value of JSON is one of its kind.
    Test = Callable[[Any], bool]

RECORD_FILES = "rank-*.jsonl"
# What a rank may record at most: some hundred lines, of up to some thousand bytes.
RECORD_BYTES = 16 * 1024 * 1024
RECORD_LINES = 100000
# So much of the end of a stack is kept.
STACK_BYTES = 16384
# Of a surrogate pair.
HALF = re.compile("[\ud800-\udfff]")


def is_text(value: object) -> bool:
    """Return whether a value is a text that can be written again: no half of a surrogate pair."""
    return isinstance(value, str) and HALF.search(value) is None


def is_integer(value: "Any") -> bool:
    """Return whether a value is an integer of 64 bits."""
    return type(value) is int and abs(value) < 2**63


def is_number(value: "Any") -> bool:
    """Return whether a value is a finite number."""
    return type(value) in (int, float) and abs(value) < 1e18


def several(of: "Test") -> "Test":
    """Return a test for lists of values that pass a test."""
    return lambda value: isinstance(value, (list, tuple)) and all(map(of, value))


def or_none(of: "Test") -> "Test":
    """Return a test for null and values that pass a test."""
    return lambda value: value is None or of(value)


def is_claim(value: "Any") -> bool:
    """Return whether a value is a claim about the transport of an operation."""
    names = {"operation", "transport", "source"}
    return isinstance(value, dict) and set(value) == names and all(map(is_text, value.values()))


NAME = re.compile("[A-Za-z_][A-Za-z0-9_]{0,99}")
MOST_VARIABLES = 500


def is_environment(value: "Any") -> bool:
    """Return whether a value holds variables by their names, and not too many."""
    few = isinstance(value, dict) and len(value) <= MOST_VARIABLES
    return few and all(NAME.fullmatch(name) and is_text(value[name]) for name in value)


EVERY: "dict[str, Test]" = {
    "nonce": is_text,
    "time": is_number,
}  # the host's monotonic clock in seconds
CHECK: "dict[str, Test]" = {
    "check": is_text,
    "dtype": or_none(is_text),
    "bytes": or_none(is_integer),
}
# What the lines of each event hold, and which values they may have.
FIELDS: "dict[str, dict[str, Test]]" = {
    "start": {  # written before the runtime is imported
        "host": is_text,
        "pid": is_integer,
        "started": is_integer,  # clock ticks after boot, from /proc; 0 where unknown
        "clock": is_text,  # boot id: hosts with an equal one share the clock
        "executable": is_text,
        "uid": is_integer,
        "launcher_rank": or_none(is_integer),
        "api": is_text,
        "execution": is_text,
        "environment": is_environment,  # variables that shape how the ranks talk
        "unix": is_number,  # seconds since 1970
        "pid_namespace": is_text,  # "" where the kernel hides it
        "job_step": or_none(is_text),
        "container": or_none(is_text),
        "cpu": or_none(is_text),
        "gpus": several(is_text),
    },
    "init": {  # who the rank is, and what it runs with
        "rank": is_integer,
        "size": is_integer,
        "local_rank": is_integer,
        "local_size": is_integer,
        "runtime": is_text,
        "runtime_version": is_text,
        "runtime_file": or_none(is_text),
        "build_record": or_none(lambda value: isinstance(value, dict)),
        "framework": or_none(is_text),
        "mpi": or_none(is_text),
        "mpi_version": or_none(is_text),
        "python": is_text,
        "numpy": is_text,
    },
    "begin": CHECK,
    "done": dict(
        CHECK,
        passed=lambda value: isinstance(value, bool),
        problem=or_none(is_text),
        seconds=is_number,
        said=or_none(is_text),
        median=or_none(is_number),  # seconds of one operation
        repetitions=or_none(is_integer),
        entered=several(is_number),
        left=several(is_number),
        answer=or_none(is_text),  # the digest of a sum, see ``answers``
    ),
    "left out": {"check": is_text, "dtype": or_none(is_text), "why": is_text},
    "libraries": {"paths": several(is_text)},  # that were mapped after the traffic
    "carried": {"claims": several(is_claim)},  # as far as this rank can tell; after shutdown
    "error": {"type": is_text, "message": is_text, "traceback": is_text},
    "end": {"failed": is_integer, "unix": is_number},
}
# What a line may leave out: the ranks of earlier releases did not record it.
ABSENT: "dict[str, dict[str, Any]]" = {
    "start": {
        "api": "numpy",
        "execution": "native",
        "environment": {},
        "unix": 0,
        "pid_namespace": "",
        "job_step": None,
        "container": None,
        "cpu": None,
        "gpus": (),
    },
    "init": {"framework": None},
    "done": {
        "said": None,
        "median": None,
        "repetitions": None,
        "entered": (),
        "left": (),
        "answer": None,
    },
    "end": {"unix": 0},
}


class Event:
    """One line: ``event`` and the fields of it."""

    if TYPE_CHECKING:
        # FIELDS has the type of each field, and ``parse`` compares every value with it.
        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, fields: "dict[str, Any]") -> None:
        vars(self).update(fields)

    @property
    def label(self) -> str:
        """How the check of a begin or done is named: ``allreduce float32 of 4096 bytes``."""
        return label(self.check, self.dtype, self.bytes)


def label(check: str, dtype: "str | None", size: "int | None") -> str:
    """Return how a check is named in every message."""
    return " ".join(filter(None, (check, dtype, None if size is None else f"of {size} bytes")))


class RankRecord:
    """All that one process recorded, and the stacks that its fault handler wrote."""

    def __init__(self, source: str, events: "list[Event]", stack: str) -> None:
        self.source = source
        self.events = events
        self.stack = stack
        self.start = events[0]
        self.done = self.all("done")
        self.world = self.first("init")
        self.libraries = self.first("libraries")
        self.failure = self.first("error")
        self.end = self.first("end")
        self.ended = self.end is not None
        # By the runtime, or by the launcher for a process that never got so far.
        self.rank = self.world.rank if self.world else self.start.launcher_rank

    def all(self, event: str) -> "list[Event]":
        """Return the lines of an event."""
        return [each for each in self.events if each.event == event]

    def first(self, event: str) -> "Event | None":
        """Return the first line of an event, or None."""
        return next(iter(self.all(event)), None)

    @property
    def current(self) -> "Event | None":
        """The check that began and did not end."""
        begun = self.all("begin")
        return begun[-1] if len(begun) > len(self.done) else None


class RankRecords:
    """The processes that reported in this run, by rank; and files left out, with the reason."""

    def __init__(self, ranks: "tuple[RankRecord, ...]", ignored: "tuple[str, ...]") -> None:
        self.ranks = ranks
        self.ignored = ignored


def parse(line: bytes) -> "Event | None":
    """Parse the event of a line; return None if it is invalid."""
    try:
        found = json.loads(line.decode("utf-8"))
        known = dict(EVERY, **FIELDS[found["event"]])
        found = dict(ABSENT.get(found["event"], {}), **found)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if set(found) != {"event", *known} or not all(known[n](found[n]) for n in known):
        return None
    return Event(found)


def read_ranks(folder: "Path", nonce: str) -> RankRecords:
    """Read the records of the run with this nonce from *folder*."""
    ranks, ignored = [], []
    for path in sorted(folder.glob(RECORD_FILES)):
        record = read_rank(path, nonce)
        if isinstance(record, RankRecord):
            ranks.append(record)
        else:
            ignored.append(f"ignored {path.name}: {record}")
    ranks.sort(key=lambda r: (r.rank is None, r.rank or 0, r.start.host, r.start.pid))
    return RankRecords(tuple(ranks), tuple(ignored))


def read_rank(path: "Path", nonce: str) -> "RankRecord | str":
    """Read the record of one process; return the reason as text if it is ignored."""
    try:
        data = read_regular(path, RECORD_BYTES, links=False)
    except IrregularFileError as error:
        return str(error)
    if data.count(b"\n") > RECORD_LINES:
        return f"it has more than {RECORD_LINES} lines"
    events = [event for event in map(parse, data.split(b"\n")) if event]
    ours = [event for event in events if event.nonce == nonce]
    if ours and ours[0].event == "start":
        return RankRecord(path.name, ours, read_stack(stack_path(path.parent, path.name)))
    if ours:
        return "its first event is missing"
    return "another run wrote it" if events else "it contains no readable record"


def read_stack(path: "Path", begin: int = 0) -> str:
    """Return the end of the stacks that a process wrote, without the *begin* first bytes."""
    try:
        return read_end(path, STACK_BYTES, begin)
    except FileNotFoundError:
        return ""
    except IrregularFileError as error:
        return f"no stack: {path.name}: {error}"


def stack_path(folder: "Path", source: str) -> "Path":
    """Return the file that holds the stacks of the process that wrote *source*."""
    return folder / f"stack-{source[len('rank-') : -len('.jsonl')]}.txt"
