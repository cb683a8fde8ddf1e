"""The ranks of a job among the processes of this machine."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..target_tools import proc
from ..target_tools.smoke.rank_env import NAMES, RANKS

_PYTHON = re.compile(r"python[0-9.]*|pypy[0-9.]*")
_SIZES = {rank: size for rank, size, *_ in NAMES}


class Process(NamedTuple):
    """A process that lives. ``started``: in clock ticks since boot."""

    pid: int
    parent: int
    started: int
    state: str
    environ: Mapping[str, str]
    is_python: bool


class Rank(NamedTuple):
    """A rank's process. ``size``: of the job; None where no variable says it."""

    number: int
    size: int | None
    process: Process


def look(pid: int) -> Process | None:
    """Return what /proc says of a process; None where it is gone."""
    fields = proc.status_fields(pid)
    if proc.is_gone(fields):
        return None
    pairs = (each.partition(b"=") for each in proc.read_words(pid, "environ"))
    environ = {_text(name): _text(value) for name, sign, value in pairs if sign}
    return Process(
        pid, int(fields[1]), proc.start_time(fields), fields[0], environ, _is_python(pid)
    )


def living() -> dict[int, Process]:
    """Return all processes that live, by their ids."""
    seen = map(look, proc.pids())
    return {each.pid: each for each in seen if each is not None}


def below(pids: Collection[int], every: Mapping[int, Process]) -> list[Process]:
    """Return these processes and all that they have started, and what those have."""
    children: dict[int, list[int]] = {}
    for each in every.values():
        children.setdefault(each.parent, []).append(each.pid)
    found: dict[int, Process] = {}
    todo = [pid for pid in pids if pid in every]
    while todo:
        pid = todo.pop()
        if pid not in found:
            found[pid] = every[pid]
            todo += children.get(pid, ())
    return list(found.values())


def of_job(number: str, variables: Sequence[str], every: Mapping[int, Process]) -> list[Process]:
    """Return the processes that a scheduler's job has here. *variables*: that hold its number."""
    return [
        each
        for each in every.values()
        if any(each.environ.get(name) == number for name in variables)
    ]


def ranks(processes: Iterable[Process]) -> tuple[Rank, ...]:
    """Return the ranks among processes, in their order.

    A rank is the Python that has its number and whose parents have not: its workers inherit it, and
    a shell around it is none. Of launchers within one another the innermost numbers count.
    """
    pythons = [each for each in processes if each.is_python]
    name = next((name for name in RANKS if any(name in each.environ for each in pythons)), None)
    if name is None:
        return ()
    numbered = {
        each.pid: (int(each.environ[name]), each)
        for each in pythons
        if each.environ.get(name, "").isdecimal()
    }
    first = (
        Rank(number, _size(each, name), each)
        for number, each in numbered.values()
        if numbered.get(each.parent, (None,))[0] != number
    )
    return tuple(sorted(first, key=lambda each: (each.number, each.process.started)))


def cpu_seconds(pid: int, ticks: int) -> float:
    """Return the CPU time that a process has used. *ticks*: of a second."""
    fields = proc.status_fields(pid)
    return (int(fields[11]) + int(fields[12])) / ticks if len(fields) > 12 else 0.0


def _size(process: Process, name: str) -> int | None:
    found = re.match(r"[0-9]+", process.environ.get(_SIZES.get(name, ""), ""))
    return int(found.group()) if found else None


def _is_python(pid: int) -> bool:
    try:
        program = Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return False
    # A program that has Python inside, such as pvbatch, maps its library.
    return bool(_PYTHON.fullmatch(program)) or "/libpython" in proc.read(f"/proc/{pid}/maps")


def _text(word: bytes) -> str:
    return word.decode("utf-8", "replace")
