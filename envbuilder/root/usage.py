"""Who uses a prefix: the processes of this host that run, have mapped or have loaded it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ..target_tools import files, proc


class User(NamedTuple):
    """One process that uses a prefix."""

    pid: int
    program: str


def processes_using(prefix: Path) -> tuple[User, ...]:
    """Return the processes whose program, working folder or mapped files lie in *prefix*, and those
    that were started with it loaded: they may import from it any time.

    Others' processes can only be looked into by root: see ``count_unexamined``.
    """
    real = os.path.realpath(prefix)
    return tuple(
        User(pid, proc.read(f"/proc/{pid}/comm").strip() or "gone")
        for pid in sorted(proc.pids())
        if pid != os.getpid() and (_uses(pid, real) or _has_loaded(pid, {str(prefix), real}))
    )


def count_unexamined() -> int:
    """Return the number of processes of this host that this user may not look into."""
    return sum(map(_is_closed, proc.pids()))


def _is_closed(pid: int) -> bool:
    # A thread of the kernel has no arguments.
    if not any(proc.read_words(pid, "cmdline")):
        return False
    try:
        Path(f"/proc/{pid}/exe").readlink()
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _uses(pid: int, prefix: str) -> bool:
    for link in ("exe", "cwd"):
        try:
            if files.is_below(Path(f"/proc/{pid}/{link}").readlink(), prefix):
                return True
        except OSError:
            continue
    return f"{prefix}/" in proc.read(f"/proc/{pid}/maps")


def _has_loaded(pid: int, prefixes: set[str]) -> bool:
    loaded = {f"VIRTUAL_ENV={prefix}" for prefix in prefixes}
    return not loaded.isdisjoint(proc.read(f"/proc/{pid}/environ").split("\0"))
