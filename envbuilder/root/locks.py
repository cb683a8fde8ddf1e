"""Locks as files made with O_EXCL: they work on NFS and Lustre, where flock often does not.

A lock says who holds it (host, process, a token) and shows that it lives by a heartbeat, the
file's modification time. A lock whose holder is known to be gone, because its process id on this
very host is gone or belongs to another process by now, is taken over and that is said. A silent
one of another host is named and left alone: only a person can know what became of that host.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from .. import process
from ..errors import BuildError

# Seconds between two signs of life, and without one until a lock of another host is called silent.
HEARTBEAT = 5.0
SILENT = 300.0
# The variable by which a successor finds what a killed holder left running.
MARK = "ENVBUILD_RUN"


@dataclass(frozen=True)
class Holder:
    """Who holds a lock. ``birth`` tells a process from a later one with the same id."""

    host: str
    pid: int
    birth: int
    token: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the environment for every process that the holder starts: it marks them."""
        return {**environ, MARK: self.token}


@contextlib.contextmanager
def hold(
    path: Path,
    *,
    say: Callable[[str], None],
    wait: float = 24 * 3600.0,
    poll: float = 0.5,
) -> Iterator[Holder]:
    """Hold the lock *path*; waits up to *wait* seconds for another holder, and says so once.

    Raises BuildError when the wait is over or the holder went silent on another host.
    """
    me = _acquire(path, say, wait, poll)
    stop = threading.Event()
    beating = threading.Thread(target=_beat, args=(path, stop), daemon=True)
    beating.start()
    try:
        yield me
    finally:
        stop.set()
        beating.join()
        current = _read(path)
        if current and current.token == me.token:
            path.unlink()


def _beat(path: Path, stop: threading.Event) -> None:
    while not stop.wait(HEARTBEAT):
        with contextlib.suppress(OSError):
            os.utime(path)


def _acquire(path: Path, say: Callable[[str], None], wait: float, poll: float) -> Holder:
    me = Holder(
        socket.gethostname(), os.getpid(), process.birth(os.getpid()) or 0, secrets.token_hex(8)
    )
    end = process.now() + wait
    announced = False
    while True:
        if _create(path, me):
            return me
        other = _read(path)
        if other is None:
            if _is_unreadable(path):
                raise BuildError(
                    f"the lock {path} cannot be read", "if no build is running, remove that file"
                )
            time.sleep(poll)
            continue
        if _is_gone(other):
            _take_over(path, other, say)
            continue
        age = _age(path)
        if other.host != me.host and age is not None and age > SILENT:
            raise BuildError(
                f"{path} is held by {other}, silent for {age:.0f} s",
                f"if that process is gone, remove the file: rm '{path}'",
            )
        if not announced:
            say(f"waiting for {other}, which is building the same environment")
            announced = True
        if process.now() > end:
            raise BuildError(f"gave up waiting for {other}, which holds {path}")
        time.sleep(poll)


def _create(path: Path, me: Holder) -> bool:
    """Make the lock file whole at once: write aside, then link, which is exclusive."""
    aside = path.with_name(f".{path.name}.{me.token}")
    text = json.dumps(asdict(me))
    aside.write_text(text, encoding="utf-8")
    try:
        try:
            os.link(aside, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except FileExistsError:
        return False
    finally:
        aside.unlink()
    return True


def _read(path: Path) -> Holder | None:
    """Return the holder, or None where the file is gone or not (yet) whole."""
    try:
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _is_unreadable(path: Path) -> bool:
    """A file that stays without a readable holder for long is nobody's lock."""
    age = _age(path)
    return age is not None and age > 2 * HEARTBEAT


def _age(path: Path) -> float | None:
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except FileNotFoundError:
        return None


def _is_gone(holder: Holder) -> bool:
    """Whether the holder is known to be gone: only its own host can tell."""
    return holder.host == socket.gethostname() and process.birth(holder.pid) != holder.birth


def _take_over(path: Path, gone: Holder, say: Callable[[str], None]) -> None:
    """Remove the lock of a holder that is gone, and end what it left running.

    Renaming is atomic, so of several successors one gets the file. If what it got is not the
    stale lock (another was quicker and holds it by now), it is put back. What was left running is
    ended first, while nobody can hold the lock.
    """
    ended = process.end_marked(f"{MARK}={gone.token}")
    if ended:
        say(f"ended {ended} processes that {gone} left running")
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return
    got = _read(aside)
    if got is not None and got.token != gone.token:
        with contextlib.suppress(FileExistsError):
            os.link(aside, path)
        aside.unlink()
        return
    aside.unlink()
    say(f"taking over from {gone}, which is gone")
