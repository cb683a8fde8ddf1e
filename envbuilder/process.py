"""Starting processes: the one module that does, by what target_tools starts them with.

Every process gets an explicit environment, no standard input but where it is asked through that,
and a session of its own, so that ending it ends what it started.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

from .errors import MissingToolError
from .target_tools import processes
from .target_tools.processes import ASKING_FOR_THE_END, GRACE, Running, signals_held_back

__all__ = [
    "ASKING_FOR_THE_END",
    "GRACE",
    "Answering",
    "Finished",
    "follow",
    "replace",
    "run",
    "start",
]

# Bytes of an answer that are read at once.
_AT_ONCE = 1 << 20


class Finished(NamedTuple):
    """A process that ended. ``code`` is negative for a signal, None when its time ran out."""

    command: tuple[str, ...]
    code: int | None
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        return self.code == 0


def _popen(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: Path | None,
    stdout: int,
    stderr: int,
    stdin: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    try:
        started: subprocess.Popen[bytes] = processes.popen(command, env, cwd, stdout, stderr, stdin)
    except FileNotFoundError as error:
        raise MissingToolError(
            "program.not-found",
            f"cannot start {command[0]!r}: no such program",
            "envbuild doctor shows what is missing",
        ) from error
    except PermissionError as error:
        raise MissingToolError(
            "program.not-startable", f"cannot start {command[0]!r}: {error.strerror}"
        ) from error
    return started


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    timeout: float = 60.0,
    stdin: int = subprocess.DEVNULL,
) -> Finished:
    """Run *command* to its end and return what it printed. Raises MissingToolError if absent.

    *stdin*: the number of an open file, for a program that takes one as ``/proc/self/fd/0``.
    """
    with contextlib.ExitStack() as held:
        held.enter_context(signals_held_back())
        popen = _popen(command, env, cwd, subprocess.PIPE, subprocess.PIPE, stdin)
        code: int | None = None
        try:
            held.close()
            out, err = popen.communicate(timeout=timeout)
            code = popen.returncode
        except subprocess.TimeoutExpired:
            Running(popen).end()
            out, err = _what_is_left(popen)
        except BaseException:
            Running(popen).end()
            raise
    printed = (each.decode("utf-8", "replace") for each in (out, err))
    return Finished(tuple(command), code, *printed)


def _what_is_left(popen: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Return what was printed; a grandchild in a session of its own may keep the pipes open."""
    try:
        return popen.communicate(timeout=GRACE)
    except subprocess.TimeoutExpired as error:
        for pipe in (popen.stdout, popen.stderr):
            if pipe:
                pipe.close()
        return error.stdout or b"", error.stderr or b""


def replace(command: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    """Become *command*, which keeps the terminal; never returns. Raises MissingToolError if absent.

    Python ignores SIGPIPE and SIGXFSZ, and a program inherits that.
    """
    program = shutil.which(command[0], path=env.get("PATH", ""))
    if program is None:
        raise MissingToolError(
            "program.not-found",
            f"cannot start {command[0]!r}: no such program",
            "envbuild doctor shows what is missing",
        )
    sys.stdout.flush()
    sys.stderr.flush()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execve(program, [*command], {**env})  # noqa: S606 - no shell is wanted


def start(
    command: Sequence[str], *, env: Mapping[str, str], log: Path, cwd: Path | None = None
) -> AbstractContextManager[Running]:
    """Start *command* with its output appended to *log*; end its group on leaving the block."""
    started: AbstractContextManager[Running] = processes.start(command, env, log, cwd, _popen)
    return started


def follow(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    log: Path,
    cwd: Path | None = None,
    on_line: Callable[[str], None] | None = None,
    timeout: float | None = None,
    poll: float = 0.1,
) -> int | None:
    """Run *command* to its end, its output in *log*, each line handed to *on_line* as it comes.

    Returns the exit code, negative for a signal, None where it was ended after *timeout* seconds.
    """
    end = None if timeout is None else processes.now() + timeout
    begin = log.stat().st_size if log.exists() else 0
    with start(command, env=env, log=log, cwd=cwd) as running, log.open("rb") as reader:
        reader.seek(begin)
        code = None
        rest = b""
        while code is None:
            code = running.wait(poll)
            *lines, rest = (rest + reader.read()).split(b"\n")
            if on_line:
                for line in lines:
                    on_line(line.decode("utf-8", "replace"))
            if code is None and end is not None and processes.now() > end:
                return None
        return code


class Answering:
    """A process that answers each line with one, and ends as soon as nobody can ask any more.

    So it ends with this process too, however that ends.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        """Start it. Raises MissingToolError if absent."""
        self._command, self._errors = tuple(command), tempfile.TemporaryFile()  # noqa: SIM115
        self._socket, its = socket.socketpair()
        with signals_held_back(), its:
            number = its.fileno()
            self._running = Running(
                _popen(command, env, None, number, self._errors.fileno(), number)
            )
            # The first time it returns the exit code, None where it did not end by itself.
            self.end = weakref.finalize(self, _end, self._running, self._socket, self._errors)

    def ask(self, line: str, timeout: float) -> Finished:
        """Return the answer as what was printed, with code 0.

        Where none comes, the process is ended; the code is None where its time ran out.
        """
        self._socket.settimeout(timeout)
        parts = [b""]
        try:
            self._socket.sendall(line.encode() + b"\n")
            while not parts[-1].endswith(b"\n"):
                parts.append(self._socket.recv(_AT_ONCE))
                if not parts[-1]:
                    return self._failed(self._running.wait(GRACE))
        except TimeoutError:
            return self._failed(None)
        except ConnectionError:
            return self._failed(self._running.wait(GRACE))
        return Finished(self._command, 0, b"".join(parts).decode("utf-8", "replace"), "")

    def _failed(self, code: int | None) -> Finished:
        self._running.end()
        self._errors.seek(0)
        said = self._errors.read().decode("utf-8", "replace")
        self.end()
        return Finished(self._command, code, "", said)


def _end(running: Running, *opened: socket.socket | IO[bytes]) -> int | None:
    for each in opened:
        each.close()
    code = running.wait(GRACE)
    if code is None:
        running.end()
    return code
