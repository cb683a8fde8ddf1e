"""Starting processes: the one module that does.

Every process gets an explicit environment, no standard input, and a session of its own, so that
ending it ends what it started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import MissingToolError

# Time between asking a process group to end and ending it, in seconds.
GRACE = 3.0


@dataclass(frozen=True)
class Finished:
    """A process that ended. ``code`` is negative for a signal, None when its time ran out."""

    command: tuple[str, ...]
    code: int | None
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        return self.code == 0


class Running:
    """A process group that was started and is waited for or ended."""

    def __init__(self, popen: subprocess.Popen[bytes], command: tuple[str, ...]) -> None:
        self._popen = popen
        self.command = command

    @property
    def pid(self) -> int:
        return self._popen.pid

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit code, or None when *timeout* seconds passed and it still runs."""
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """End the whole group: SIGTERM, and SIGKILL for what is left after the grace time."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            # The leader may have gone while its children stay: signal the group in any case.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, number)
            if self.wait(GRACE) is not None and not _group_lives(self._popen.pid):
                return


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _popen(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: Path | None,
    stdout: int,
    stderr: int,
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(command),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise MissingToolError(
            f"cannot start {command[0]!r}: no such program", "envbuild doctor shows what is missing"
        ) from error
    except PermissionError as error:
        raise MissingToolError(f"cannot start {command[0]!r}: {error.strerror}") from error


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    timeout: float = 60.0,
) -> Finished:
    """Run *command* to its end and return what it printed. Raises MissingToolError if absent."""
    popen = _popen(command, env, cwd, subprocess.PIPE, subprocess.PIPE)
    running = Running(popen, tuple(command))
    try:
        out, err = popen.communicate(timeout=timeout)
        code: int | None = popen.returncode
    except subprocess.TimeoutExpired:
        running.end()
        out, err = popen.communicate()
        code = None
    except BaseException:
        running.end()
        raise
    return Finished(
        tuple(command), code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
    )


@contextlib.contextmanager
def start(
    command: Sequence[str], *, env: Mapping[str, str], log: Path, cwd: Path | None = None
) -> Iterator[Running]:
    """Start *command* with its output appended to *log*; end its group on leaving the block."""
    with log.open("ab") as output:
        popen = _popen(command, env, cwd, output.fileno(), subprocess.STDOUT)
    running = Running(popen, tuple(command))
    try:
        yield running
    finally:
        if running.wait(0) is None or _group_lives(popen.pid):
            running.end()


def follow(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    log: Path,
    cwd: Path | None = None,
    on_line: Callable[[str], None] | None = None,
    poll: float = 0.1,
) -> int:
    """Run *command* to its end, its output in *log*, each line handed to *on_line* as it comes.

    Returns the exit code, negative for a signal.
    """
    begin = log.stat().st_size if log.exists() else 0
    with start(command, env=env, log=log, cwd=cwd) as running, log.open("rb") as reader:
        reader.seek(begin)
        code = None
        while code is None:
            code = running.wait(poll)
            for line in reader:
                if on_line:
                    on_line(line.decode("utf-8", "replace").rstrip("\n"))
        return code


def exists(pid: int) -> bool:
    """Return whether a process with this id runs on this host."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may have gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def now() -> float:
    """Return a clock in seconds that is not set back."""
    return time.monotonic()
