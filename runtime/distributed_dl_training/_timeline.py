"""What happened to each tensor and when, as Chrome trace events for Perfetto or chrome://tracing.

A row per tensor, a process per rank, times in microseconds.  The file is a JSON array: complete
once the timeline is closed, and without its last bracket, which the viewers forgive, if the
process was killed.  Format: "Trace Event Format", the JSON array form.

The session asks ``_timeline.current.on`` before anything else; while there is no timeline that
one attribute is all it costs.
"""

import json
import os
import threading
import time
import warnings
from collections import deque
from typing import Any, Deque, Dict, List, Mapping, NamedTuple, Optional, TextIO, Union

LONGEST_QUEUE = 200000  # events that may wait to be written, about 40 MB
MOST_ROWS = 10000  # tensors with a row of their own; the others share one
_INTERVAL = 0.05  # seconds between writes
_PATIENCE = 10.0  # seconds that close() waits for a slow disk


class _Event(NamedTuple):
    kind: str  # B begin, E end, i instant
    tensor: str
    text: str
    time: float


class Off:
    """Stands in while there is no timeline; every call does nothing."""

    on = False

    def begin(self, *unused: str) -> None:
        """Do nothing."""

    end = mark_cycle = close = begin


class Timeline:
    """Writes one rank's events to ``path``; any thread may call it.

    A call stores a tuple; a thread writes them twenty times a second.  If it cannot keep up, or
    the disk is full, events are dropped and counted, never waited for.

    path: ``{rank}`` in it is replaced by the rank.  An earlier file is overwritten.
    marks_cycles: write when a negotiation cycle starts.
    Raises OSError if the file cannot be opened.
    """

    on = True

    def __init__(self, path: str, rank: int, size: int, marks_cycles: bool = False) -> None:
        self.path = path.replace("{rank}", str(rank))
        self._marks_cycles = marks_cycles
        self._rank = rank
        self._pid = os.getpid()
        self._queue: Deque[_Event] = deque()
        self._dropped = 0
        self._wall = time.time() - time.perf_counter()
        self._writer = _Writer(open(self.path, "w", encoding="ascii"), rank)
        self._writer.meta("process_name", 0, name=f"rank {rank} of {size}")
        self._writer.meta("process_sort_index", 0, sort_index=rank)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ddlt-timeline", daemon=True)
        self._thread.start()

    def begin(self, tensor: str, phase: str) -> None:
        """Note that ``phase`` of ``tensor`` begins now; phases of one tensor may be nested."""
        self._add("B", tensor, phase)

    def end(self, tensor: str, phase: str) -> None:
        """Note that ``phase`` of ``tensor`` ends now, and with it what began inside it."""
        self._add("E", tensor, phase)

    def mark_cycle(self) -> None:
        """Note that a negotiation cycle starts now, if cycles are to be marked."""
        if self._marks_cycles:
            self._add("i", "", "CYCLE_START")

    def close(self) -> None:
        """Write what is left and complete the file; waits for a slow disk 10 s at most."""
        self.on = False
        if self._pid != os.getpid():
            return  # a forked child has the file, but not the thread
        self._closing.set()
        self._thread.join(_PATIENCE)

    def _add(self, kind: str, tensor: str, text: str) -> None:
        # deque.append is atomic, so no lock; the length may be passed by a few events.
        if len(self._queue) < LONGEST_QUEUE and self.on:
            self._queue.append(_Event(kind, tensor, text, time.perf_counter()))
        else:
            self._dropped += 1

    def _run(self) -> None:
        """Write until the timeline is closed; after an error only empty the queue."""
        last = False
        while not last:
            last = self._closing.wait(_INTERVAL)
            events = [self._queue.popleft() for _ in range(len(self._queue))]
            try:
                self._writer.write(events, self._wall)
                if last:
                    self._writer.close(self._dropped, self._wall + time.perf_counter())
            except OSError as error:
                self.on = False
                self._queue.clear()
                self._writer.abandon()
                warnings.warn(f"the timeline {self.path} ends here: {error}", stacklevel=2)
                return


class _Writer:
    """Turns events into lines of the file; used by one thread."""

    def __init__(self, stream: TextIO, rank: int) -> None:
        self._stream = stream
        self._rank = rank
        self._rows: Dict[str, int] = {}
        self._open: Dict[int, List[str]] = {}  # phases that have begun, by row
        self._lines: List[str] = []
        self._first = True

    def meta(self, what: str, row: int, **values: Any) -> None:
        self._put({"name": what, "ph": "M", "pid": self._rank, "tid": row, "args": values})

    def write(self, events: List[_Event], wall: float) -> None:
        """Write ``events`` in order.  Raises OSError."""
        for event in events:
            moment = (event.time + wall) * 1e6
            if event.kind == "i":
                self._event("i", 0, moment, event.text, s="p")
                continue
            row = self._row(event.tensor)
            phases = self._open.setdefault(row, [])
            if event.kind == "B":
                phases.append(event.text)
                self._event("B", row, moment, event.text)
            elif event.text in phases:  # else its begin was dropped
                while phases:
                    phase = phases.pop()
                    self._event("E", row, moment, phase)
                    if phase == event.text:
                        break
        self._flush()

    def close(self, dropped: int, now: float) -> None:
        """End the phases still open and complete the file.  Raises OSError."""
        for row, phases in self._open.items():
            for phase in reversed(phases):
                self._event("E", row, now * 1e6, phase)
        if dropped:
            self._event("i", 0, now * 1e6, f"{dropped} events were dropped", s="p")
        self._flush()
        self._stream.write("\n]\n")
        self._stream.close()

    def abandon(self) -> None:
        """Close the file as it is, after an error."""
        try:
            self._stream.close()
        except OSError:
            pass

    def _row(self, tensor: str) -> int:
        row = self._rows.get(tensor)
        if row is None:
            if len(self._rows) >= MOST_ROWS:
                tensor = "(other tensors)"
                if tensor in self._rows:
                    return self._rows[tensor]
            row = self._rows[tensor] = len(self._rows) + 1
            self.meta("thread_name", row, name=tensor)
            self.meta("thread_sort_index", row, sort_index=row)
        return row

    def _event(self, kind: str, row: int, moment: float, name: str, **more: str) -> None:
        values = {"name": name, "ph": kind, "pid": self._rank, "tid": row, "ts": round(moment, 1)}
        values.update(more)
        self._put(values)

    def _put(self, values: Dict[str, Any]) -> None:
        self._lines.append(("[\n" if self._first else ",\n") + json.dumps(values))
        self._first = False

    def _flush(self) -> None:
        if self._lines:
            self._stream.write("".join(self._lines))
            self._lines.clear()
            self._stream.flush()


OFF = Off()
current: Union[Timeline, Off] = OFF
_lock = threading.Lock()


def wanted_path(environ: Mapping[str, str]) -> Optional[str]:
    """Return DDLT_TIMELINE, else HOROVOD_TIMELINE, else None.

    ``DYNAMIC`` is Horovod's word for one that the program starts itself: none yet.
    """
    path = environ.get("DDLT_TIMELINE") or environ.get("HOROVOD_TIMELINE")
    return None if not path or path == "DYNAMIC" else path


def start_from_environ(rank: int, size: int, environ: Mapping[str, str] = os.environ) -> None:
    """Start the timeline that the environment asks for, if any, and none is running.

    Raises OSError if its file cannot be opened.
    """
    path = wanted_path(environ)
    if path is not None and not current.on:
        marks = [environ.get(f"{prefix}_TIMELINE_MARK_CYCLES") for prefix in ("DDLT", "HOROVOD")]
        start_timeline(path, rank, size, (marks[0] or marks[1] or "0") != "0")


def start_timeline(path: str, rank: int, size: int, marks_cycles: bool = False) -> None:
    """Start a timeline into ``path``: on rank 0 alone, or on each if ``{rank}`` is in the path.

    Raises ValueError if one is running, OSError if the file cannot be opened.
    """
    global current
    with _lock:
        if current.on:
            raise ValueError("a timeline is running already; call stop_timeline() first")
        if rank == 0 or "{rank}" in path:
            try:
                current = Timeline(path, rank, size, marks_cycles)
            except OSError as error:
                text = f"the timeline cannot be written: {error.strerror}"
                raise OSError(error.errno, text, error.filename) from error


def stop_timeline() -> None:
    """Complete the file and stop; without a timeline it does nothing."""
    global current
    with _lock:
        running, current = current, OFF
    running.close()
