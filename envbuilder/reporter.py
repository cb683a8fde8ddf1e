"""Printing: the one module that does.

Data goes to standard output, everything else to standard error. Every message can be read
without colour. Off a terminal there are plain lines and no control characters.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from .base import Document, canonical_json
from .errors import BuildError, EnvbuildError, Problem
from .text import printable

if TYPE_CHECKING:
    from rich.live import Live
    from rich.spinner import Spinner

    from .model.plan import Step
    from .model.progress import Listener

REPORT_ISSUE = "this is a bug in envbuild: please report it with the text above"


@dataclass
class Report:
    """Where to print and how."""

    out: TextIO
    err: TextIO
    as_json: bool = False
    quiet: bool = False

    def show(self, value: Document | Sequence[Document] | dict[str, Any], text: str) -> None:
        """Print a result: as JSON where asked for, else *text*."""
        if not self.as_json:
            self.raw(printable(text.rstrip("\n")) + "\n")
            return
        if isinstance(value, Document):
            plain: Any = value.plain()
        elif isinstance(value, dict):
            plain = value
        else:
            plain = [item.plain() for item in value]
        self.raw(canonical_json(plain))

    def raw(self, text: str) -> None:
        """Print a file's text as it is. Raises BuildError where standard output takes nothing."""
        try:
            self.out.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise BuildError(
                "output.write-failed", f"cannot write to standard output: {error.strerror}"
            ) from error

    def say(self, line: str) -> None:
        """Print what happens, for somebody who waits."""
        if not self.quiet:
            self._line(f"envbuild: {line}")

    def warn(self, line: str) -> None:
        """Print a warning."""
        self._line(f"warning: {line}")

    def error(self, error: EnvbuildError) -> None:
        """Print every problem of an error, each with its place and what to try."""
        self._line(problems_text(error.problems))
        if self.as_json:
            self.out.write(canonical_json(_error_json(error)))

    def bug(self, trace: str) -> None:
        """Print the traceback of our own bug."""
        self._line(trace.rstrip("\n"))
        self._line(f"error: {REPORT_ISSUE}")

    @contextlib.contextmanager
    def steps(self, steps: tuple[Step, ...]) -> Iterator[Listener]:
        """Show the steps of a build as they run."""
        if self.err.isatty() and not self.quiet:
            with _live(self.err, len(steps)) as listener:
                yield listener
        else:
            yield _Lines(self.say, len(steps))

    @contextlib.contextmanager
    def working(self, title: str) -> Iterator[None]:
        """Show that something goes on that takes a while and has no steps."""
        from .model.plan import Step
        from .model.progress import reported

        step = Step(id="working", title=title)
        with self.steps((step,)) as listener, reported(step, listener):
            yield

    def _line(self, line: str) -> None:
        self.err.write(printable(line) + "\n")
        self.err.flush()


def problems_text(problems: Sequence[Problem]) -> str:
    """Return problems as text: a single one with room, several close together.

    A hint that several problems share is given with the first of them.
    """
    printed: set[str] = set()
    lines: list[str] = []
    for problem in problems:
        place = f"{problem.place}: " if problem.place else ""
        lines.append(f"{place}error: {problem.message}")
        hints = [hint for hint in problem.hints if hint not in printed]
        printed.update(hints)
        if len(problems) == 1 and hints:
            lines += ["", *(f"hint: {hint}" for hint in hints)]
        else:
            lines += [f"  hint: {hint}" for hint in hints]
    return "\n".join(lines)


def _error_json(error: EnvbuildError) -> dict[str, Any]:
    return {
        "exit-code": int(error.code),
        "problems": [
            {
                "id": problem.id,
                "message": problem.message,
                "place": str(problem.place) if problem.place else None,
                "hints": list(problem.hints),
            }
            for problem in error.problems
        ],
        **error.details,
    }


class _Lines:
    """Steps as plain lines, counted and timed: one when it begins, one when it ends."""

    def __init__(self, say: Callable[[str], None], total: int) -> None:
        self._say = say
        self._total = total
        self._number = 0

    def step_begins(self, step: Step) -> None:
        self._number += 1
        self._began = time.monotonic()
        several = self._total > 1
        self._title = f"[{self._number}/{self._total}] {step.title}" if several else step.title
        self._say(self._title)

    def step_says(self, line: str) -> None:
        pass

    def step_ends(self, step: Step, *, done: bool) -> None:
        self._say(f"{self._title}: {'done' if done else 'FAILED'} ({self._seconds()})")

    def _seconds(self) -> str:
        return f"{time.monotonic() - self._began:.1f} s"


class _Display(_Lines):
    """Steps on a terminal: finished ones stay, the running one has a spinner and its last line."""

    def __init__(self, live: Live, spinner: Spinner, total: int) -> None:
        super().__init__(self._spin, total)
        self._live = live
        self._spinner = spinner

    def _spin(self, _title: str) -> None:
        self.step_says("")
        self._live.update(self._spinner)

    def step_says(self, line: str) -> None:
        from rich.text import Text

        text = Text(f"{self._title}  ", no_wrap=True, overflow="ellipsis")
        text.append(line.strip(), style="dim")
        self._spinner.update(text=text)

    def step_ends(self, step: Step, *, done: bool) -> None:
        from rich.text import Text

        mark, style = ("ok", "green") if done else ("FAILED", "bold red")
        line = Text.assemble((f"{mark:>6} ", style), self._title, (f"  {self._seconds()}", "dim"))
        self._live.console.print(line)
        self._live.update("")


@contextlib.contextmanager
def _live(err: TextIO, total: int) -> Iterator[_Display]:
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner

    console = Console(file=err, highlight=False)
    with Live("", console=console, refresh_per_second=8, transient=True) as live:
        yield _Display(live, Spinner("line"), total)
