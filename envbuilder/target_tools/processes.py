"""Starting programs, and these tools themselves, as processes of their own; ending them."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from . import proc

SECONDS = 60
# So many of the last lines are shown of a process that failed.
SHOWN_LINES = 8
# Time between asking a process group to end and ending it, in seconds.
GRACE = 3.0
# So often in a row must no process be seen before there is none.
LOOKS = 3
# What a person, a closed terminal and a scheduler send to end a program.
ASKING_FOR_THE_END = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)


def ask(
    words: "Sequence[str]",
    environ: "Mapping[str, str] | None" = None,
    timeout: "float | None" = SECONDS,
) -> "subprocess.CompletedProcess[bytes]":
    """Run a program to its end and capture its output. Raises OSError, TimeoutExpired."""
    return subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        timeout=timeout,
        check=False,
    )


def output_of(words: "Sequence[str]") -> "str | None":
    """Return the stripped output of a program on stdout; None if it fails."""
    try:
        done = ask(words)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else None


def run_tool(
    words: "Iterable[str]",
    environ: "Mapping[str, str] | None" = None,
    timeout: "float | None" = None,
) -> "tuple[str, None] | tuple[None, list[str]]":
    """Run one of these tools with this Python: return (output, None) or (None, error lines).

    It is a separate process, because modules or libraries may crash or hang when loaded.
    """
    try:
        child = ask([sys.executable, str(Path(__file__).parent), *words], environ, timeout)
    except subprocess.TimeoutExpired:
        return None, [f"the process did not end within {timeout} s"]
    if child.returncode == 0:
        return child.stdout.decode("utf-8"), None
    lines = child.stderr.decode("utf-8", "replace").strip().splitlines()[-SHOWN_LINES:]
    if child.returncode < 0:
        lines.append(f"the process was ended by signal {-child.returncode}")
    return None, lines


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


class Running:
    """A process group that was started and is waited for or ended."""

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        self._popen = popen
        self.pid = popen.pid

    def wait(self, timeout: "float | None" = None) -> "int | None":
        """Return the exit code, or None when *timeout* seconds passed and it still runs."""
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """End the whole group: SIGTERM, and SIGKILL for what is left after the grace time."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            # The leader may have gone while its children stay: signal the group in any case. A
            # stopped process sees no other signal before it goes on.
            for each in (number, signal.SIGCONT):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, each)
            until = now() + GRACE
            while self.group_lives() and now() < until:
                time.sleep(0.02)
            if not self.group_lives():
                break
        self.wait(GRACE)

    def group_lives(self) -> bool:
        """Return whether anything of the group runs: a zombie may be cleared late."""
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        processes = map(proc.status_fields, proc.pids())
        return any(fields[2] == str(self.pid) for fields in processes if not proc.is_gone(fields))


def popen(
    command: "Iterable[str]",
    env: "Mapping[str, str]",
    cwd: "Path | str | None",
    stdout: "int | None",
    stderr: "int | None",
    stdin: int = subprocess.DEVNULL,
) -> "subprocess.Popen[bytes]":
    """Start a program with just this environment, a session of its own and no standard input.

    But where *stdin* is given.
    """
    return subprocess.Popen(
        list(command),
        env=dict(env),
        cwd=None if cwd is None else str(cwd),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


@contextlib.contextmanager
def start(
    command: "Iterable[str]",
    env: "Mapping[str, str]",
    log: Path,
    cwd: "Path | str | None" = None,
    popen: "Callable[..., subprocess.Popen[bytes]]" = popen,
) -> "Iterator[Running]":
    """Start *command*, its output appended to *log*: a Running, ended on leaving the block.

    *popen* starts it. Raises OSError where it cannot.
    """
    with contextlib.ExitStack() as held:
        held.enter_context(signals_held_back())
        with log.open("ab") as output:
            running = Running(popen(command, env, cwd, output.fileno(), subprocess.STDOUT))
        try:
            held.close()
            yield running
        finally:
            if running.wait(0) is None or running.group_lives():
                running.end()


@contextlib.contextmanager
def signals_held_back() -> "Iterator[None]":
    """Delay signals while a process is started, so that its starter can always end it.

    Signals whose handler raises an exception are delivered on leaving.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: "list[int]" = []
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
            os.kill(os.getpid(), came[0])


def end_marked(mark: str) -> int:
    """End every process here that was started with the variable *mark*, NAME=VALUE.

    Their children inherited the variable. Returns the number of processes; processes of other
    users cannot be inspected.
    """
    began = now()
    seen: "set[int]" = set()
    unseen = 0
    # A process shows no variables for a moment when it becomes another program: look again.
    while unseen < LOOKS and now() < began + 2 * GRACE:
        others = set(proc.pids()) - {os.getpid()}
        marked = {pid for pid in others if mark.encode() in proc.read_words(pid, "environ")}
        unseen = 0 if marked else unseen + 1
        patient = now() < began + GRACE
        for pid in marked - seen if patient else marked:
            send(pid, signal.SIGTERM if patient else signal.SIGKILL)
            send(pid, signal.SIGCONT)
        seen |= marked
        time.sleep(0.05)
    return len(seen)


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may have gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def now() -> float:
    """Return a clock in seconds that is not set back."""
    return time.monotonic()
