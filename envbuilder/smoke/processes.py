"""The processes of one run on this host: finding them, asking for stacks, ending them.

Launchers start ranks in sessions of their own, so a process group does not hold them. Two marks
do: the nonce among a rank's arguments, and a variable that everything started by the run inherits.
A process without one of them is never touched.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import process
from ..target_tools import proc
from .outcome import State
from .records import RankRecord, stack_path

MARK = "ENVBUILD_SMOKE_RUN"
POLL = 0.05
# So much of a stack is kept.
STACK_BYTES = 16384


@dataclass(frozen=True)
class RankProcess:
    """A living process that belongs to the run. ``inner_pid``: its id in its own namespace."""

    pid: int
    inner_pid: int
    started: int
    state: str

    @property
    def stopped(self) -> bool:
        return self.state in "Tt"


def find(nonce: str) -> list[RankProcess]:
    """Return the living processes of this run on this host that we may look at."""
    own = os.getpid()
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    processes = (_look(pid) for pid in pids if pid != own and _is_of_run(pid, nonce))
    return [one for one in processes if one is not None]


def _is_of_run(pid: int, nonce: str) -> bool:
    arguments = _read(pid, "cmdline").split(b"\0")
    at = next((i for i, word in enumerate(arguments) if word == b"--nonce"), None)
    if at is not None and arguments[at + 1 : at + 2] == [nonce.encode()]:
        return True
    return f"{MARK}={nonce}".encode() in _read(pid, "environ").split(b"\0")


def _read(pid: int, name: str) -> bytes:
    # Gone meanwhile, or somebody else's process.
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _look(pid: int) -> RankProcess | None:
    """Return what /proc says of a process; None for one that is gone or a zombie."""
    fields = proc.status_fields(pid)
    if proc.is_gone(fields):
        return None
    inner = pid
    for line in _read(pid, "status").splitlines():
        if line.startswith(b"NSpid:"):
            inner = int(line.split()[-1])
    return RankProcess(pid, inner, proc.start_time(fields), fields[0])


def of_record(record: RankRecord, processes: Sequence[RankProcess]) -> RankProcess | None:
    """Return the living process that wrote *record*: same id and, where known, same start."""
    for one in processes:
        same = record.start.pid in (one.pid, one.inner_pid)
        if same and record.start.started in (0, one.started):
            return one
    return None


def same_machine(record: RankRecord) -> bool:
    """Return whether the process runs on this machine, so that it can be looked at."""
    here = proc.boot_id()
    return record.start.host == os.uname().nodename or record.start.clock == here != ""


def states(ranks: Sequence[RankRecord], nonce: str) -> dict[str, State]:
    """Return the state of every process of this machine, by the name of its record."""
    processes = find(nonce)
    result: dict[str, State] = {}
    for record in ranks:
        if same_machine(record):
            one = of_record(record, processes)
            result[record.source] = (
                "gone" if one is None else "stopped" if one.stopped else "running"
            )
    return result


def collect_stacks(
    ranks: Sequence[RankRecord], folder: Path, nonce: str, patience: float
) -> dict[str, str]:
    """Return the stack of every process that is not through, by the name of its record.

    Processes of this machine are asked for it and given *patience* seconds. Those of other nodes
    wrote theirs shortly before the time was up.
    """
    processes = find(nonce)
    requested: dict[str, tuple[Path, int, RankProcess]] = {}
    for record in ranks:
        one = of_record(record, processes) if same_machine(record) else None
        if one is not None:
            path = stack_path(folder, record.source)
            requested[record.source] = (path, _size(path), one)
            process.send(one.pid, signal.SIGUSR1)
    # A stopped process takes no signal before it goes on: no use to wait for it.
    expected = [(path, size) for path, size, one in requested.values() if not one.stopped]
    _wait_for_growth(expected, patience)
    stacks = {}
    for record in ranks:
        path = stack_path(folder, record.source)
        if record.source in requested:
            _, size, one = requested[record.source]
            stacks[record.source] = _text(path, size) or _silence(one, _text(path, 0))
        elif _text(path, 0) and not record.ended:
            stacks[record.source] = _text(path, 0)
    return stacks


def _wait_for_growth(files: Sequence[tuple[Path, int]], patience: float) -> None:
    """Wait until all files have grown and then hold still, at most *patience* seconds."""
    until = process.now() + patience
    before: list[int] = []
    while process.now() < until:
        time.sleep(POLL)
        sizes = [_size(path) for path, _ in files]
        if sizes == before and all(now > old for now, (_, old) in zip(sizes, files, strict=True)):
            return
        before = sizes


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _text(path: Path, begin: int) -> str:
    if not path.exists():
        return ""
    return path.read_bytes()[begin:][-STACK_BYTES:].decode("utf-8", "replace").strip()


def _silence(one: RankProcess, earlier: str) -> str:
    """Return why a process gave no stack when asked, and the one that it gave before."""
    now = _look(one.pid) or one
    if now.stopped:
        text = f"no stack: stopped (state {now.state})"
    else:
        where = _read(one.pid, "wchan").decode("ascii", "replace")
        waits = f", waits in the kernel in {where}" if where not in ("", "0") else ""
        text = f"no stack: it does not answer (state {now.state}{waits})"
    return f"{text}; earlier:\n{earlier}" if earlier else text


def end_all(nonce: str, patience: float) -> int:
    """End every process of the run on this machine; return how many did not go in time.

    Only SIGKILL ends a process that is stopped or hangs in a call.
    """
    until = process.now() + patience
    while True:
        processes = find(nonce)
        for one in processes:
            process.send(one.pid, signal.SIGKILL)
        if not processes or process.now() > until:
            return len(processes)
        time.sleep(POLL)
