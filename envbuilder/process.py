"""Starting processes: the one module that does, by what target_tools starts them with.

Every process gets an explicit environment, no standard input, and a session of its own, so that
ending it ends what it started.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from .errors import MissingToolError
from .target_tools import processes
from .target_tools.processes import ASKING_FOR_THE_END, GRACE, Running, signals_held_back

__all__ = ["ASKING_FOR_THE_END", "GRACE", "Finished", "follow", "run", "start"]


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
    command: Sequence[str], env: Mapping[str, str], cwd: Path | None, stdout: int, stderr: int
) -> subprocess.Popen[bytes]:
    try:
        started: subprocess.Popen[bytes] = processes.popen(command, env, cwd, stdout, stderr)
    except FileNotFoundError as error:
        raise MissingToolError(
            f"cannot start {command[0]!r}: no such program", "envbuild doctor shows what is missing"
        ) from error
    except PermissionError as error:
        raise MissingToolError(f"cannot start {command[0]!r}: {error.strerror}") from error
    return started


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    timeout: float = 60.0,
) -> Finished:
    """Run *command* to its end and return what it printed. Raises MissingToolError if absent."""
    with contextlib.ExitStack() as held:
        held.enter_context(signals_held_back())
        popen = _popen(command, env, cwd, subprocess.PIPE, subprocess.PIPE)
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
