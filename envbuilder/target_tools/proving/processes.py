"""The processes of one run on this host: finding them, asking for stacks, ending them.

Launchers start ranks in sessions of their own, so a process group does not hold them. Two marks
do: the nonce among a rank's arguments, and a variable that everything started by the run inherits.
A process without one of them is never touched.
"""

import os
import signal
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from .. import proc
from ..processes import now, send
from .records import RankRecord, read_stack, stack_path

MARK = "ENVBUILD_SMOKE_RUN"
POLL = 0.05


class RankProcess(NamedTuple):
    """A living process that belongs to the run. ``inner_pid``: its id in its own namespace."""

    pid: int
    inner_pid: int
    started: int
    state: str

    @property
    def stopped(self) -> bool:
        """Whether the process is stopped: it handles no signal until it continues."""
        return self.state in "Tt"


def find(nonce: str) -> "list[RankProcess]":
    """Return the living processes of this run on this host that we may look at."""
    own = os.getpid()
    processes = (look(pid) for pid in proc.pids() if pid != own and is_of_run(pid, nonce))
    return [one for one in processes if one is not None]


def is_of_run(pid: int, nonce: str) -> bool:
    """Return whether a process carries one of the marks of a run."""
    arguments = proc.read_words(pid, "cmdline")
    pairs = zip(arguments, arguments[1:])
    if (b"--nonce", nonce.encode()) in pairs:
        return True
    return f"{MARK}={nonce}".encode() in proc.read_words(pid, "environ")


def look(pid: int) -> "RankProcess | None":
    """Read a process from /proc; return None if it is gone or a zombie."""
    fields = proc.status_fields(pid)
    if proc.is_gone(fields):
        return None
    lines = proc.read(f"/proc/{pid}/status").splitlines()
    inner = [int(line.split()[-1]) for line in lines if line.startswith("NSpid:")]
    return RankProcess(pid, (inner or [pid])[0], proc.start_time(fields), fields[0])


def of_record(record: RankRecord, processes: "list[RankProcess]") -> "RankProcess | None":
    """Return the process that wrote *record*; None if it is gone or on another machine.

    It has the same id and, if known, the same start time.
    """
    for one in processes if same_machine(record) else ():
        same = record.start.pid in (one.pid, one.inner_pid)
        # qemu gives its programs a start time of its own.
        emulated = record.start.execution == "emulated"
        if same and (emulated or record.start.started in (0, one.started)):
            return one
    return None


def same_machine(record: RankRecord) -> bool:
    """Return whether the process runs on this machine, so that it can be inspected."""
    here = proc.boot_id()
    return bool(record.start.host == os.uname().nodename or record.start.clock == here != "")


def states(ranks: "Iterable[RankRecord]", nonce: str) -> "dict[str, str]":
    """Return the state of every process of this machine, by the name of its record."""
    processes = find(nonce)
    pairs = [(r.source, of_record(r, processes)) for r in ranks if same_machine(r)]
    return {
        source: "gone" if one is None else "stopped" if one.stopped else "running"
        for source, one in pairs
    }


def collect_stacks(
    ranks: "Sequence[RankRecord]", folder: "Path", nonce: str, patience: float
) -> "dict[str, str]":
    """Return the stack of every unfinished process, by the name of its record.

    Processes of this machine get a signal and *patience* seconds to write it. Those of other nodes
    wrote it shortly before the time limit.
    """
    processes = find(nonce)
    asked = {}
    for record in ranks:
        one = of_record(record, processes)
        if one is not None:
            asked[record.source] = (one, size_of(stack_path(folder, record.source)))
            send(one.pid, signal.SIGUSR1)
    # A stopped process takes no signal before it goes on: no use to wait for it.
    running = [(stack_path(folder, s), size) for s, (p, size) in asked.items() if not p.stopped]
    wait_for_growth(running, patience)
    stacks = {}
    for record in ranks:
        path = stack_path(folder, record.source)
        before = read_stack(path).strip()
        if record.source in asked:
            one, size = asked[record.source]
            stacks[record.source] = read_stack(path, size).strip() or silence(one, before)
        elif before and not record.ended:
            stacks[record.source] = before
    return stacks


def wait_for_growth(files: "list[tuple[Path, int]]", patience: float) -> None:
    """Wait until all files have grown and then hold still, at most *patience* seconds."""
    until = now() + patience
    before: "list[int]" = []
    while now() < until:
        time.sleep(POLL)
        sizes = [size_of(path) for path, _ in files]
        if sizes == before and all(size > old for size, (_, old) in zip(sizes, files)):
            return
        before = sizes


def size_of(path: "Path") -> int:
    """Return the size of a file in bytes, 0 if it is not there."""
    return path.stat().st_size if path.exists() else 0


def silence(one: RankProcess, earlier: str) -> str:
    """Return why a process wrote no stack on request, and the stack that it wrote before."""
    last = look(one.pid) or one
    if last.stopped:
        text = f"no stack: stopped (state {last.state})"
    else:
        where = proc.read(f"/proc/{one.pid}/wchan")
        waits = f", waiting in the kernel in {where}" if where not in ("", "0") else ""
        text = f"no stack: the process does not respond (state {last.state}{waits})"
    return f"{text}; earlier:\n{earlier}" if earlier else text


def end_all(nonce: str, patience: float) -> int:
    """Kill all processes of the run on this machine; return the number that remains at the end.

    Only SIGKILL ends a process that is stopped or hangs in a call.
    """
    until = now() + patience
    while True:
        processes = find(nonce)
        for one in processes:
            send(one.pid, signal.SIGKILL)
        if not processes or now() > until:
            return len(processes)
        time.sleep(POLL)
