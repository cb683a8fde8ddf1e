"""Who uses a prefix: the processes of this host that run or have mapped something of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class User:
    """One process that uses a prefix."""

    pid: int
    program: str


def processes_using(prefix: Path) -> tuple[User, ...]:
    """Return the processes whose program, working folder or mapped files lie in *prefix*.

    Others' processes can only be looked into by root; what cannot be read is passed over.
    """
    real = os.path.realpath(prefix)
    found = []
    for entry in PROC.iterdir():
        if entry.name.isdigit() and _uses(entry, real):
            found.append(User(int(entry.name), _program(entry)))
    return tuple(sorted(found, key=lambda user: user.pid))


def _uses(entry: Path, prefix: str) -> bool:
    inside = prefix + "/"
    for link in ("exe", "cwd"):
        try:
            target = (entry / link).readlink()
        except OSError:
            continue
        if str(target) == prefix or str(target).startswith(inside):
            return True
    try:
        maps = (entry / "maps").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return False
    return inside in maps


def _program(entry: Path) -> str:
    try:
        return (entry / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "gone"
