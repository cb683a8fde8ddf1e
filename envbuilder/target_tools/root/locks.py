"""Locks as files made with O_EXCL: they work on NFS and Lustre, where flock often does not.

A lock says who holds it (host, boot, PID namespace, process, a token) and shows that it lives by a
heartbeat, the file's modification time. A lock whose holder is known to be gone is taken over and
that is said. It is known in the holder's own PID namespace, where its process id is gone or belongs
to another process by now; and where its last sign of life is from before this machine was started,
whose name it has: who lived on in a machine of the same name would have given one since. Else what
cannot be seen is not gone: a holder that is silent is named and left alone, as only a person can
know what became of it.

In a root that a group shares the holder may be another user, whose processes cannot be ended. What
it left running in the environment's folder is waited for, too.
"""

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from pathlib import Path
from typing import Callable, Iterator, Mapping, NamedTuple

from .. import proc, sharing
from ..errors import BuildError
from ..files import IrregularFileError, read_regular
from ..processes import end_marked, now

# Seconds between two signs of life, and without one until a holder that cannot be seen is called
# silent.
HEARTBEAT = 5.0
# Seconds without one until that is said.
QUIET = 3 * HEARTBEAT
SILENT = 300.0
BUILDING = "which is building the same environment"
# What is read of a lock at most, in bytes.
LOCK_BYTES = 65536
# The variable by which a successor finds what a killed holder left running.
MARK = "ENVBUILD_RUN"


class Holder(NamedTuple):
    """The holder of a lock. ``birth`` tells a process from a later one with the same id.

    ``boot``: the boot id of the machine; ``namespace``: the PID namespace, as
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
        where = "from before the last boot" if self.boot else "started by an earlier release"
        if self.boot == here[1]:
            where = "in another PID namespace"
        return f"process {self.pid} on {self.host} ({where}, not visible from here)"

    def environ(self, environ: "Mapping[str, str]") -> "dict[str, str]":
        """Return the environment for every process that the holder starts: it marks them."""
        return dict(environ, **{MARK: self.token})


@contextlib.contextmanager
def hold(
    path: Path,
    say: "Callable[[str], None]",
    wait: float = 24 * 3600.0,
    poll: float = 0.5,
    group: "int | None" = None,
) -> "Iterator[Holder]":
    """Hold the lock *path*; waits up to *wait* seconds for another holder, and says so once.

    *group*: the group that shares the root. Raises BuildError if the wait is over, or if a holder
    on another host gives no sign of life.
    """
    me = acquire(path, say, wait, poll, group)
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


def beat(path: Path, stop: threading.Event) -> None:
    """Update the time of the lock every HEARTBEAT seconds."""
    while not stop.wait(HEARTBEAT):
        with contextlib.suppress(OSError):
            os.utime(path)


def acquire(
    path: Path, say: "Callable[[str], None]", wait: float, poll: float, group: "int | None"
) -> Holder:
    """Return this process as the holder of a lock, once it is free."""
    host, boot, namespace = own_world()
    birth = proc.birth(os.getpid()) or 0
    me = Holder(host, os.getpid(), birth, secrets.token_hex(8), boot, namespace)
    begin = now()
    unreadable = None
    announced: "set[str]" = set()
    while True:
        if create(path, me, group):
            return me
        other = read(path)
        if other is None:
            # Gone by now, or not whole yet. What stays so for long is nobody's lock.
            fault = irregularity_of(path)
            unreadable = now() if unreadable is None else unreadable
            age = age_of(path)
            if fault or (age is not None and max(age, now() - unreadable) > 2 * HEARTBEAT):
                raise BuildError(
                    "root.lock-file-unreadable",
                    f"cannot read the lock file {path}" + (f": {fault}" if fault else ""),
                    "if no build is running, remove the file",
                )
            time.sleep(poll)
            continue
        unreadable = None
        waited_for = look_at(path, other)
        if waited_for is None:
            take_over(path, other, say, wait, poll, group)
            continue
        kind, text = waited_for
        if kind not in announced:
            say(text)
            announced.add(kind)
        if now() - begin > wait:
            raise BuildError(
                "root.lock-timeout", f"timed out while waiting for {other}, which holds {path}"
            )
        time.sleep(poll)


def look_at(path: Path, holder: Holder) -> "tuple[str, str] | None":
    """Return why to wait for a lock, as (kind, message); None if it can be taken over.

    Raises BuildError if the holder cannot be inspected and gives no sign of life.
    """
    if is_gone(holder) or is_of_earlier_start(path, holder):
        left = left_by_another(path)
        if left:
            return (
                "left",
                f"waiting for a process that {of_user(path, holder)} left running: {left[0]}",
            )
        return None
    age = age_of(path)
    text = f"waiting for {of_user(path, holder)}, {BUILDING}"
    if can_be_seen(holder) or age is None or age <= QUIET:
        return "lives", text
    if age > SILENT:
        raise BuildError(
            "root.lock-stale",
            f"{path} is held by {holder}, without a heartbeat for {age:.0f} s",
            f"if that process has ended, remove the file: rm '{path}'",
        )
    silence = f"no heartbeat for {age:.0f} s (giving up after {SILENT:.0f} s)"
    return "quiet", f"{text}; {silence}"


def irregularity_of(path: Path) -> "str | None":
    """Return why a file in the place of a lock is not one and never will be, or None."""
    try:
        read_regular(path, LOCK_BYTES, links=False)
    except IrregularFileError as error:
        return str(error)
    except OSError:
        return None
    return None


def create(path: Path, me: Holder, group: "int | None") -> bool:
    """Make the lock file whole at once: write aside, then link, which is exclusive."""
    aside = path.with_name(f".{path.name}.{me.token}")
    text = json.dumps(me._asdict())
    try:
        aside.write_text(text, encoding="utf-8")
        # Whatever the umask: who waits must be able to see for whom. A kernel that protects hard
        # links lets another member put the file back only if that member may write it.
        with contextlib.suppress(OSError):
            aside.chmod(0o644 if group is None else 0o664)
        try:
            os.link(aside, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except FileExistsError:
        return False
    except OSError as error:
        # The file aside means nothing to who reads of it.
        error.filename, error.filename2 = str(path), None
        raise
    finally:
        with contextlib.suppress(FileNotFoundError):
            aside.unlink()
    return True


def read(path: Path) -> "Holder | None":
    """Return the holder; None if the file is gone or incomplete.

    If this user may not read the file, the holder has only the owner's name.
    """
    try:
        text = read_regular(path, LOCK_BYTES, links=False).decode("utf-8")
        return Holder(**json.loads(text))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    except PermissionError:
        return Holder(f"{owner_of(path)}, whose lock file you may not read", 0, 0, "")


def owner_of(path: Path) -> str:
    """Return the name of the user that a file belongs to."""
    try:
        return sharing.owner_of(path)
    except OSError:
        return "another user"


def of_user(path: Path, holder: Holder) -> str:
    """Return a holder in words, with the user's name where that is another one."""
    owner = uid_of(path)
    if not holder.token or owner is None or owner == os.geteuid():
        return str(holder)
    return f"{holder} (user {sharing.user_name(owner)})"


def uid_of(path: Path) -> "int | None":
    """Return the user id of a file's owner; None if the file is gone."""
    try:
        return path.lstat().st_uid
    except OSError:
        return None


def left_by_another(path: Path) -> "tuple[str, ...]":
    """Return the processes of another user, the lock's owner, that work in its folder, in words.

    Their command lines name the folder, as those of build steps do. Only that user or root can
    end them.
    """
    owner, folder = uid_of(path), os.fsencode(str(path.parent)) + b"/"
    if os.geteuid() == 0 or owner in (None, os.geteuid()):
        return ()
    found = []
    for pid in proc.pids():
        theirs = uid_of(Path(f"/proc/{pid}")) == owner
        if theirs and any(folder in word for word in proc.read_words(pid, "cmdline")):
            found.append(f"process {pid}")
    return tuple(found)


def age_of(path: Path) -> "float | None":
    """Return the seconds since the last sign of life; None without a lock."""
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except FileNotFoundError:
        return None


def own_world() -> "tuple[str, str, str]":
    """Return host, boot id and PID namespace: within these a process id is unique."""
    return socket.gethostname(), proc.boot_id(), proc.pid_namespace()


def can_be_seen(holder: Holder) -> bool:
    """Return whether this process can see the holder if it is alive."""
    return bool(holder.token) and (holder.host, holder.boot, holder.namespace) == own_world()


def is_gone(holder: Holder) -> bool:
    """Return whether the holder is known to be gone; False if it cannot be seen."""
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


def is_of_earlier_start(path: Path, holder: Holder) -> bool:
    """Return whether the last sign of life of a holder on this host is from before its boot."""
    host, boot, _ = own_world()
    if not holder.token or holder.host != host or not boot or holder.boot == boot:
        return False
    started, age = proc.boot_time(), age_of(path)
    return bool(started) and age is not None and time.time() - age < started


def take_over(
    path: Path,
    gone: Holder,
    say: "Callable[[str], None]",
    wait: float,
    poll: float,
    group: "int | None",
) -> None:
    """Remove the lock of a holder that is gone, and end its remaining processes.

    A successor compares and removes while it holds a second lock, beside *path*. So it cannot
    remove the lock that a faster successor has made meanwhile. The second lock of a successor that
    dies is taken over in the same way. The remaining processes are ended first, while the stale
    lock still blocks all others. Raises BuildError as acquire does.
    """
    ended = end_marked(f"{MARK}={gone.token}")
    if ended:
        say(f"ended {ended} processes that {gone} left running")
    turn = path.with_name(f".{path.name}.successor")
    acquire(turn, say, wait, poll, group)
    try:
        removed = remove_lock_of(path, gone)
    finally:
        turn.unlink()
    if removed:
        say(f"taking over from {gone}, which has ended")


def remove_lock_of(path: Path, gone: Holder) -> bool:
    """Remove a lock if it is still that of *gone*; return whether it was.

    The file is renamed to a private name and compared again there: an earlier release takes locks
    over without waiting for its turn.
    """
    inode = inode_of(path)
    current = read(path)
    if inode is None or current is None or current.token != gone.token:
        return False
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return False
    is_same = inode_of(aside) == inode
    if not is_same:
        with contextlib.suppress(FileExistsError):
            os.link(aside, path)
    aside.unlink()
    return is_same


def inode_of(path: Path) -> "tuple[int, int] | None":
    """Return the device and inode of a file; None if it is gone."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
