"""Who uses a prefix: the processes of this host that run, have mapped or have loaded it."""

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
    """Return the processes whose program, working folder or mapped files lie in *prefix*, and those
    that were started with it loaded: they may import from it any time.

    Others' processes can only be looked into by root; what cannot be read is passed over.
    """
    real = os.path.realpath(prefix)
    users = []
    for entry in PROC.iterdir():
        other = entry.name.isdigit() and int(entry.name) != os.getpid()
        if other and (_uses(entry, real) or _has_loaded(entry, (str(prefix), real))):
            users.append(User(int(entry.name), _program(entry)))
    return tuple(sorted(users, key=lambda user: user.pid))


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


def _has_loaded(entry: Path, names: tuple[str, ...]) -> bool:
    try:
        variables = (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(f"VIRTUAL_ENV={name}".encode() in variables for name in names)


def _program(entry: Path) -> str:
    try:
        return (entry / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "gone"
