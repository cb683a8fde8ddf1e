"""Locks as files made with O_EXCL: they work on NFS and Lustre, where flock often does not.

A lock says who holds it (host, process, a token) and shows that it lives by a heartbeat, the
file's modification time. A lock whose holder is known to be gone, because its process id on this
very host is gone or belongs to another process by now, is taken over and that is said. A silent
one of another host is named and left alone: only a person can know what became of that host.
"""

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from typing import Dict, Mapping, NamedTuple

from .. import proc
from ..errors import BuildError
from ..processes import end_marked, now

# Seconds between two signs of life, and without one until a lock of another host is called silent.
HEARTBEAT = 5.0
SILENT = 300.0
# The variable by which a successor finds what a killed holder left running.
MARK = "ENVBUILD_RUN"


class Holder(NamedTuple):
    """Who holds a lock. ``birth`` tells a process from a later one with the same id."""

    host: str
    pid: int
    birth: int
    token: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    def environ(self, environ: Mapping[str, str]) -> "Dict[str, str]":
        """Return the environment for every process that the holder starts: it marks them."""
        return dict(environ, **{MARK: self.token})


@contextlib.contextmanager
def hold(path, say, wait=24 * 3600.0, poll=0.5):
    """Hold the lock *path*; waits up to *wait* seconds for another holder, and says so once.

    Raises BuildError when the wait is over or the holder went silent on another host.
    """
    me = acquire(path, say, wait, poll)
    stop = threading.Event()
    beating = threading.Thread(target=beat, args=(path, stop), daemon=True)
    beating.start()
    try:
        yield me
    finally:
        stop.set()
        beating.join()
        current = read(path)
        if current and current.token == me.token:
            path.unlink()


def beat(path, stop):
    """Show that the holder lives."""
    while not stop.wait(HEARTBEAT):
        with contextlib.suppress(OSError):
            os.utime(path)


def acquire(path, say, wait, poll):
    """Return this process as the holder of a lock, once it is free."""
    me = Holder(
        socket.gethostname(), os.getpid(), proc.birth(os.getpid()) or 0, secrets.token_hex(8)
    )
    end = now() + wait
    announced = False
    while True:
        if create(path, me):
            return me
        other = read(path)
        if other is None:
            if is_unreadable(path):
                raise BuildError(
                    f"the lock {path} cannot be read", "if no build is running, remove that file"
                )
            time.sleep(poll)
            continue
        if is_gone(other):
            take_over(path, other, say)
            continue
        age = age_of(path)
        if other.host != me.host and age is not None and age > SILENT:
            raise BuildError(
                f"{path} is held by {other}, silent for {age:.0f} s",
                f"if that process is gone, remove the file: rm '{path}'",
            )
        if not announced:
            say(f"waiting for {other}, which is building the same environment")
            announced = True
        if now() > end:
            raise BuildError(f"gave up waiting for {other}, which holds {path}")
        time.sleep(poll)


def create(path, me):
    """Make the lock file whole at once: write aside, then link, which is exclusive."""
    aside = path.with_name(f".{path.name}.{me.token}")
    text = json.dumps(me._asdict())
    try:
        aside.write_text(text, encoding="utf-8")
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
        with contextlib.suppress(FileNotFoundError):
            aside.unlink()
    return True


def read(path):
    """Return the holder, or None where the file is gone or not (yet) whole."""
    try:
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def is_unreadable(path):
    """A file that stays without a readable holder for long is nobody's lock."""
    age = age_of(path)
    return age is not None and age > 2 * HEARTBEAT


def age_of(path):
    """Return the seconds since the last sign of life, None where there is no lock."""
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except FileNotFoundError:
        return None


def is_gone(holder):
    """Whether the holder is known to be gone: only its own host can tell."""
    return holder.host == socket.gethostname() and proc.birth(holder.pid) != holder.birth


def take_over(path, gone, say):
    """Remove the lock of a holder that is gone, and end what it left running.

    Renaming is atomic, so of several successors one gets the file. If what it got is not the
    stale lock (another was quicker and holds it by now), it is put back. What was left running is
    ended first, while nobody can hold the lock.
    """
    ended = end_marked(f"{MARK}={gone.token}")
    if ended:
        say(f"ended {ended} processes that {gone} left running")
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return
    got = read(aside)
    if got is not None and got.token != gone.token:
        with contextlib.suppress(FileExistsError):
            os.link(aside, path)
        aside.unlink()
        return
    aside.unlink()
    say(f"taking over from {gone}, which is gone")
