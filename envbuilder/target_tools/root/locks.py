"""Locks as files made with O_EXCL: they work on NFS and Lustre, where flock often does not.

A lock says who holds it (host, boot, PID namespace, process, a token) and shows that it lives by a
heartbeat, the file's modification time. A lock whose holder is known to be gone, because its
process id is gone or belongs to another process by now, is taken over and that is said. That is
known only in the holder's own PID namespace, between two starts of its machine: what cannot be seen
is not gone. A holder that cannot be seen and is silent is named and left alone: only a person can
know what became of it.
"""

import contextlib
import json
import os
import pwd
import secrets
import socket
import threading
import time
from typing import Dict, Mapping, NamedTuple

from .. import proc
from ..errors import BuildError
from ..processes import end_marked, now

# Seconds between two signs of life, and without one until a holder that cannot be seen is called
# silent.
HEARTBEAT = 5.0
SILENT = 300.0
# The variable by which a successor finds what a killed holder left running.
MARK = "ENVBUILD_RUN"


class Holder(NamedTuple):
    """Who holds a lock. ``birth`` tells a process from a later one with the same id.

    ``boot``: what names this start of the machine; ``namespace``: the PID namespace, as
    /proc/self/ns/pid names it. Empty where the kernel hides them, or in a lock of an earlier
    release.
    """

    host: str
    pid: int
    birth: int
    token: str
    boot: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        if not self.token:
            return f"a process of {self.host}"
        here = own_world()
        if (self.host, self.boot, self.namespace) == here or self.host != here[0]:
            return f"process {self.pid} on {self.host}"
        where = "in another PID namespace" if self.boot == here[1] else "of another start of it"
        return f"process {self.pid} on {self.host} ({where}, which cannot be seen from here)"

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
    host, boot, namespace = own_world()
    birth = proc.birth(os.getpid()) or 0
    me = Holder(host, os.getpid(), birth, secrets.token_hex(8), boot, namespace)
    begin = now()
    unreadable = None
    announced = False
    while True:
        if create(path, me):
            return me
        other = read(path)
        if other is None:
            # Gone by now, or not whole yet. What stays so for long is nobody's lock.
            unreadable = now() if unreadable is None else unreadable
            age = age_of(path)
            if age is not None and max(age, now() - unreadable) > 2 * HEARTBEAT:
                raise BuildError(
                    f"the lock {path} cannot be read", "if no build is running, remove that file"
                )
            time.sleep(poll)
            continue
        unreadable = None
        if is_gone(other):
            take_over(path, other, say)
            continue
        age = age_of(path)
        if not can_be_seen(other) and age is not None and age > SILENT:
            raise BuildError(
                f"{path} is held by {other}, silent for {age:.0f} s",
                f"if that process is gone, remove the file: rm '{path}'",
            )
        if not announced:
            say(f"waiting for {other}, which is building the same environment")
            announced = True
        if now() - begin > wait:
            raise BuildError(f"gave up waiting for {other}, which holds {path}")
        time.sleep(poll)


def create(path, me):
    """Make the lock file whole at once: write aside, then link, which is exclusive."""
    aside = path.with_name(f".{path.name}.{me.token}")
    text = json.dumps(me._asdict())
    try:
        aside.write_text(text, encoding="utf-8")
        # Whatever the umask: who waits must be able to see for whom.
        with contextlib.suppress(OSError):
            aside.chmod(0o644)
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
    """Return the holder, or None where the file is gone or not (yet) whole.

    Of a file that only others may read, its owner is known, and nothing else.
    """
    try:
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    except PermissionError:
        return Holder(f"{owner_of(path)}, whose lock you may not read", 0, 0, "")


def owner_of(path):
    """Return the name of the user that a file belongs to."""
    try:
        number = path.stat().st_uid
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
    except OSError:
        return "another user"


def age_of(path):
    """Return the seconds since the last sign of life, None where there is no lock."""
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except FileNotFoundError:
        return None


def own_world():
    """Return host, start of the machine and PID namespace: in it a process id means one process."""
    return socket.gethostname(), proc.boot_id(), proc.pid_namespace()


def can_be_seen(holder):
    """Whether this process would see a holder that lives."""
    return bool(holder.token) and (holder.host, holder.boot, holder.namespace) == own_world()


def is_gone(holder):
    """Whether the holder is known to be gone; who cannot be seen is not."""
    if not can_be_seen(holder):
        return False
    fields = proc.status_fields(holder.pid)
    if fields:
        return proc.is_gone(fields) or proc.start_time(fields) != holder.birth
    # /proc may hide others' processes (hidepid); kill(2) says whether there is one.
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


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
