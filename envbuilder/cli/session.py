"""One call of the command line, and the one catcher of its errors."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from .streams import drop_output

if TYPE_CHECKING:
    from types import FrameType

    from ..reporter import Report
    from ..workflow.context import Context


class Session(NamedTuple):
    """One call of the command line: where to print, and the world outside."""

    report: Report
    context: Context


class Interrupted(BaseException):
    """A signal asks for the end. No Exception: nothing on the way may take it for a failure."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def open_session(as_json: bool, recipes: list[Path] | None = None) -> Session:
    """Return the session of this call. *recipes*: further folders of recipes, sites, knowledge."""
    from ..errors import UsageError
    from ..reporter import Report
    from ..workflow.context import Context

    report = Report(sys.stdout, sys.stderr, as_json)
    try:
        cwd = Path.cwd()
    except FileNotFoundError:
        gone = "the current folder no longer exists: it was removed or moved"
        report.error(
            error := UsageError("folder.current-missing", gone, "cd to a folder that exists")
        )
        raise typer.Exit(int(error.code)) from None
    context = Context(
        environ=dict(os.environ),
        cwd=cwd,
        clock=lambda: datetime.now(timezone.utc),
        reporter=report,
        recipe_folders=tuple(recipes or ()),
    )
    return Session(report, context)


def run_verb(session: Session, verb: Callable[[], int | None]) -> None:
    """Run one verb; the one place that turns errors into messages and exit codes.

    A verb whose answer is a finding hands back the exit code of that.
    """
    from ..errors import EnvbuildError, ExitCode, os_error

    _listen()
    try:
        code = verb()
        _hand_over()
    except BrokenPipeError:
        # The reader of our output has gone (envbuild list | head): not an error of anybody's.
        drop_output()
        raise typer.Exit(0) from None
    except (EnvbuildError, OSError) as error:
        problem = os_error(error) if isinstance(error, OSError) else error
        session.report.error(problem)
        raise typer.Exit(int(problem.code)) from None
    except Interrupted as asked:
        name = signal.Signals(asked.number).name
        session.report.warn(f"stopped by {name}; published environments are unchanged")
        raise typer.Exit(128 + asked.number) from None
    except Exception:
        import traceback

        session.report.bug(traceback.format_exc())
        raise typer.Exit(int(ExitCode.BUG)) from None
    if code:
        raise typer.Exit(code)


def _hand_over() -> None:
    """Write out what standard output still holds. Raises BuildError where it takes nothing."""
    from ..errors import BuildError

    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_output()
        raise BuildError(
            "output.write-failed", f"cannot write to standard output: {error.strerror}"
        ) from error


def _listen() -> None:
    """Turn the first signal that asks for the end into an exception, so that all is cleaned up.

    Further ones are ignored: what is under way then takes seconds. One that was ignored from the
    start (nohup) stays so.
    """
    from ..process import ASKING_FOR_THE_END

    def interrupt(number: int, _frame: FrameType | None) -> None:
        for other in ASKING_FOR_THE_END:
            signal.signal(other, signal.SIG_IGN)
        raise Interrupted(number)

    for number in ASKING_FOR_THE_END:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)
