"""The time from a rank's call of init until all ranks are there, and who is not there by then.

Nothing below limits it: MPI and torch's store wait for a rank that has ended, or was stopped,
before it joined.  Ranks of our launcher tell it by a pipe that they join, so that it can name who
does not, and end them.  Others leave a file in a folder of their node's ranks, by which they name
each other, and end themselves.
"""

import atexit
import os
import select
import signal
import sys
import tempfile
import threading
import time
import warnings
from typing import List, Mapping, Optional

from distributed_dl_training._core import name_ranks

# The descriptor by which our launcher is told, in the environment of each rank.
VARIABLE = "DDLT_LAUNCH_JOIN"
# As of timeout(1); see ``_stall``.
EXIT_CODE = 124
# What MPI launchers call the rank, and the number of all ranks.
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_ID", "SLURM_PROCID", "RANK")
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "WORLD_SIZE")


class Began:
    """When this rank has called init last: whatever waits there goes by it."""

    at = 0.0


class Joining:
    """Limits the time until all ranks have joined; used as ``with Joining(seconds, engine):``."""

    def __init__(
        self, seconds: float, engine: str, environ: Optional[Mapping[str, str]] = None
    ) -> None:
        """seconds: 0 waits for ever."""
        self._seconds = seconds
        self._engine = engine
        self._environ = os.environ if environ is None else environ
        self._over = threading.Event()
        # Of the ranks that the same process has started.
        name = f"ddlt-{os.getuid()}-{os.getppid()}"
        self._folder = os.path.join(tempfile.gettempdir(), name)
        self._guardian = -1  # the end of a pipe whose other end another process watches

    def __enter__(self) -> "Joining":
        Began.at = time.monotonic()
        self._tell(b"j")
        self._note()
        if self._seconds and VARIABLE not in self._environ and self._engine != "single":
            if self._engine == "mpi":
                self._fork_guardian()
            else:
                threading.Thread(target=self._guard, name="deadline of init", daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._guardian >= 0:
            os.close(self._guardian)
            os.waitpid(self._child, 0)
        self._tell(b"J")

    def _guard(self) -> None:
        if not self._over.wait(self._seconds):
            sys.stderr.write(self.text() + "\n")
            sys.stderr.flush()
            os._exit(EXIT_CODE)  # the layer below will not return to raise anything

    def _fork_guardian(self) -> None:
        """Let another process end this one: no thread of Python runs while mpi4py starts MPI."""
        watched, self._guardian = os.pipe()
        rank = os.getpid()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the child uses nothing that a thread may hold
            self._child = os.fork()
        if self._child:
            os.close(watched)
            return
        os.close(self._guardian)
        try:
            over, _, _ = select.select([watched], [], [], self._seconds)
            if not over:
                os.write(2, (self.text() + "\n").encode("utf-8"))
                os.kill(rank, signal.SIGKILL)
        finally:
            os._exit(0)

    def text(self) -> str:
        """Return which ranks have not joined, as far as this one can see."""
        rank = _first(self._environ, _RANKS)
        lines = f"rank {rank} has waited {self._seconds:g} s in init for ranks that do not join"
        missing = self._missing()
        if missing:
            lines += f": {name_ranks(missing)} of this node has not called init"
        return lines + "\n\nhint: DDLT_INIT_TIMEOUT_SECONDS gives them longer; 0 waits for ever"

    def _missing(self) -> List[int]:
        """Return the ranks that have left no file; empty if other nodes may have them."""
        try:
            names = os.listdir(self._folder)
            noted = [name for name in names if name.isdigit()]
            there = {int(name) for name in noted if _is_alive(os.path.join(self._folder, name))}
            every = range(int(_first(self._environ, _SIZES)))
        except (OSError, ValueError):
            return []
        local = self._environ.get("OMPI_COMM_WORLD_LOCAL_SIZE") or self._environ.get(
            "MPI_LOCALNRANKS"
        )
        if local is not None and int(local) != len(every):
            return []
        return [rank for rank in every if rank not in there]

    def _note(self) -> None:
        rank = _first(self._environ, _RANKS)
        if not rank.isdigit() or VARIABLE in self._environ:
            return
        path = os.path.join(self._folder, rank)
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            if os.lstat(self._folder).st_uid != os.getuid():
                return  # somebody else's: what we wrote there could go anywhere
            with open(path + ".new", "w") as stream:
                stream.write(_process(os.getpid()))
            os.rename(path + ".new", path)  # so that none is read before it is whole
        except OSError:
            return  # it would only have helped others to name this rank
        atexit.register(_remove, path)

    def _tell(self, word: bytes) -> None:
        """Tell our launcher, if it is there."""
        try:
            os.write(int(self._environ.get(VARIABLE, "")), word)
        except (OSError, ValueError):
            pass


def _first(environ: Mapping[str, str], names: "tuple[str, ...]") -> str:
    return next((environ[name] for name in names if name in environ), "?")


def _process(pid: int) -> str:
    """Return what is one process's alone: its number is given again once it has ended.

    Raises OSError if it is gone.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            started = stream.read().rpartition(b") ")[2].split()[19]  # starttime of proc(5)
    except OSError:
        if os.path.exists("/proc/self/stat"):
            raise
        return str(pid)  # a system without it: the number has to do
    return f"{pid} {started.decode('ascii')}"


def _is_alive(path: str) -> bool:
    """Tell whether the rank that has left this file lives: a killed one cannot take it away.

    A shell that starts ranks without a launcher starts those of the next job as well, and a
    launcher may get the number of an earlier one, its ranks those of the earlier one's ranks.
    """
    try:
        with open(path) as stream:
            noted = stream.read()
        return _process(int(noted.split()[0])) == noted
    except (OSError, ValueError, IndexError):
        return False


def _remove(path: str) -> None:
    try:
        os.unlink(path)
        os.rmdir(os.path.dirname(path))
    except OSError:
        pass
