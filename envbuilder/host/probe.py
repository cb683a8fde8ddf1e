"""Asking programs about themselves, several at once, none of them waited for without end."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ..errors import EnvbuildError
from ..process import GRACE, run

T = TypeVar("T")

# Seconds a program gets to say its version. Slow file systems need one or two.
PATIENCE = 5.0
# Threads, not processes: they only wait.
WORKERS = 8
# What is looked at of a program's output, in characters; a version stands at the top.
ENOUGH = 20_000
# What may still run when the time is up: the grace times of a group that will not end.
ENDING = 2 * GRACE + 1.0

# A line of a report, in characters: what the models admit.
LINE_LENGTH = 500


@dataclass(frozen=True)
class ProgramOutput:
    """What a program printed. ``trouble`` says why it is no answer; None: it ended well."""

    stdout: str
    stderr: str
    trouble: str | None

    @property
    def text(self) -> str:
        """Both outputs: many programs print their version on stderr."""
        return f"{self.stdout}\n{self.stderr}"


def clean(text: str, length: int = LINE_LENGTH) -> str:
    """Return *text* as one printable line of at most *length* characters, never empty."""
    shown = "".join(char if char.isprintable() else " " for char in text)
    line = " ".join(shown.split()) or "-"
    return line if len(line) <= length else line[: length - 3] + "..."


def first_line(text: str) -> str:
    """Return the line that says most: a traceback's last, of anything else the first."""
    lines = [line for line in text[:ENOUGH].splitlines() if line.strip()]
    if not lines:
        return ""
    return clean(lines[-1] if lines[0].startswith("Traceback") else lines[0], 200)


def quiet_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which programs are asked: plain words, and no file left behind."""
    # BASH_ENV would run the module system's start-up in every wrapper script.
    kept = {name: value for name, value in environ.items() if name not in {"BASH_ENV", "LANGUAGE"}}
    return {**kept, "LC_ALL": "C", "PYTHONDONTWRITEBYTECODE": "1"}


def ask(
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    cwd: Path | None = None,
    patience: float = PATIENCE,
    enough: int = ENOUGH,
) -> ProgramOutput:
    """Run *command* for at most *patience* seconds. Whatever goes wrong is in the answer.

    *enough*: how many characters of each output are kept.
    """
    try:
        finished = run(command, env=quiet_environment(environ), cwd=cwd, timeout=patience)
    except (EnvbuildError, OSError, ValueError) as error:
        return ProgramOutput("", "", clean(f"cannot be started: {error}", 200))
    out, err = finished.stdout[:enough], finished.stderr[:enough]
    if finished.code is None:
        return ProgramOutput(out, err, f"did not answer within {patience:g} s")
    if finished.code < 0:
        return ProgramOutput(out, err, f"was ended by signal {-finished.code}")
    if finished.code:
        reason = first_line(err) or first_line(out)
        return ProgramOutput(
            out, err, clean(f"exit code {finished.code}" + (f": {reason}" if reason else ""))
        )
    return ProgramOutput(out, err, None)


def together(jobs: Sequence[Callable[[], T]], limit: float) -> list[T | None]:
    """Return the results of *jobs* in their order; None for one not ended after *limit* seconds.

    The threads are daemons: one that hangs on a dead file server holds up neither the caller nor
    the end of the program, as a thread pool would.
    """
    todo: queue.SimpleQueue[tuple[int, Callable[[], T]]] = queue.SimpleQueue()
    for numbered in enumerate(jobs):
        todo.put(numbered)
    results: dict[int, T] = {}
    failures: list[BaseException] = []

    def work() -> None:
        while True:
            try:
                index, job = todo.get_nowait()
            except queue.Empty:
                return
            try:
                results[index] = job()
            except BaseException as error:  # raised again in the caller's thread
                failures.append(error)
                return

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(WORKERS, len(jobs)))]
    until = time.monotonic() + limit
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    if failures:
        raise failures[0]
    return [results.get(index) for index in range(len(jobs))]
