"""Starting processes: the one module that does.

Every process gets an explicit environment, no standard input, and a session of its own, so that
ending it ends what it started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import MissingToolError
from .target_tools import proc

# Time between asking a process group to end and ending it, in seconds.
GRACE = 3.0

# So often in a row must no process be seen before there is none.
LOOKS = 3

# linux/sched.h: the process is in the kernel's own part of its end.
_PF_EXITING = 0x4

# What a person, a closed terminal and a scheduler send to end a program.
ASKING_FOR_THE_END = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)


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
        _end_group(self._popen.pid)
        self.wait(GRACE)


def end_marked(mark: str) -> int:
    """End every process here that was started with the variable *mark*, NAME=VALUE.

    What they started themselves inherited it. Returns how many there were; others' processes
    cannot be looked into.
    """
    began = now()
    seen: set[int] = set()
    unseen = 0
    # A process shows no variables for a moment when it becomes another program: look again.
    while unseen < LOOKS and now() < began + 2 * GRACE:
        marked = _marked(mark)
        unseen = 0 if marked else unseen + 1
        patient = now() < began + GRACE
        for pid in marked - seen if patient else marked:
            send(pid, signal.SIGTERM if patient else signal.SIGKILL)
            # A stopped process sees no other signal before it goes on.
            send(pid, signal.SIGCONT)
        seen |= marked
        time.sleep(0.05)
    return len(seen)


def _marked(mark: str) -> set[int]:
    pids = set()
    for pid in _pids():
        try:
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        # That of a zombie is empty.
        if mark.encode() in variables and pid != os.getpid():
            pids.add(pid)
    return pids


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _end_group(group: int) -> None:
    """End a process group: SIGTERM, and SIGKILL for what is left after the grace time."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        # The leader may have gone while its children stay: signal the group in any case.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
        # A stopped process sees no other signal before it goes on.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGCONT)
        until = now() + GRACE
        while _group_lives(group) and now() < until:
            time.sleep(0.02)
        if not _group_lives(group):
            return


def _group_lives(group: int) -> bool:
    """Whether anything of the group runs. A zombie does not; what clears orphans may be slow."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    processes = map(proc.status_fields, _pids())
    return any(fields[2] == str(group) for fields in processes if not proc.is_gone(fields))


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
    with contextlib.ExitStack() as held:
        held.enter_context(_signals_held_back())
        popen = _popen(command, env, cwd, subprocess.PIPE, subprocess.PIPE)
        return _finish(popen, Running(popen, tuple(command)), timeout, held.close)


def _finish(
    popen: subprocess.Popen[bytes], running: Running, timeout: float, begin: Callable[[], None]
) -> Finished:
    try:
        begin()
        out, err = popen.communicate(timeout=timeout)
        code: int | None = popen.returncode
    except subprocess.TimeoutExpired:
        running.end()
        out, err = _what_is_left(popen)
        code = None
    except BaseException:
        running.end()
        raise
    return Finished(
        running.command, code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
    )


def _what_is_left(popen: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Return what was printed; a grandchild in a session of its own may keep the pipes open."""
    try:
        return popen.communicate(timeout=GRACE)
    except subprocess.TimeoutExpired as error:
        for pipe in (popen.stdout, popen.stderr):
            if pipe:
                pipe.close()
        return error.stdout or b"", error.stderr or b""


@contextlib.contextmanager
def start(
    command: Sequence[str], *, env: Mapping[str, str], log: Path, cwd: Path | None = None
) -> Iterator[Running]:
    """Start *command* with its output appended to *log*; end its group on leaving the block."""
    with contextlib.ExitStack() as held:
        held.enter_context(_signals_held_back())
        with log.open("ab") as output:
            popen = _popen(command, env, cwd, output.fileno(), subprocess.STDOUT)
        running = Running(popen, tuple(command))
        try:
            held.close()
            yield running
        finally:
            if running.wait(0) is None or _group_lives(popen.pid):
                running.end()


@contextlib.contextmanager
def _signals_held_back() -> Iterator[None]:
    """Let no signal's exception part a process that was just started from who is to end it.

    Signals that a handler turns into an exception are delivered on leaving.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in ASKING_FOR_THE_END}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


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
        rest = b""
        while code is None:
            code = running.wait(poll)
            *lines, rest = (rest + reader.read()).split(b"\n")
            if on_line:
                for line in lines:
                    on_line(line.decode("utf-8", "replace"))
        return code


def birth(pid: int) -> int | None:
    """Return when a process of this host began, in clock ticks since boot; None: it is gone.

    With the process id this tells a process from a later one of the same id. A zombie is gone.
    """
    fields = proc.status_fields(pid)
    return None if proc.is_gone(fields) else proc.start_time(fields)


def is_exiting(pid: int) -> bool:
    """Return whether a process of this host is on its way out (PF_EXITING of the kernel).

    It closes its files then, which others see, but has its process id until all is put away.
    """
    fields = proc.status_fields(pid)
    return not proc.is_gone(fields) and bool(int(fields[6]) & _PF_EXITING)


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may have gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def now() -> float:
    """Return a clock in seconds that is not set back."""
    return time.monotonic()
