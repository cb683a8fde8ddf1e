"""One call of the command line, and the one catcher of its errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ..commands.context import Context
    from ..report import Report


@dataclass(frozen=True)
class Session:
    """One call of the command line: where to print, and the world outside."""

    report: Report
    context: Context


def open_session(as_json: bool, recipes: list[Path] | None = None) -> Session:
    from ..commands.context import Context
    from ..report import Report

    report = Report(sys.stdout, sys.stderr, as_json)
    context = Context(
        environ=dict(os.environ),
        cwd=Path.cwd(),
        clock=lambda: datetime.now(timezone.utc),
        tell=report,
        recipe_folders=tuple(recipes or ()),
    )
    return Session(report, context)


def run_verb(session: Session, verb: Callable[[], None]) -> None:
    """Run one verb; the one place that turns errors into messages and exit codes."""
    from ..errors import EnvbuildError, ExitCode, os_error

    try:
        verb()
    except EnvbuildError as error:
        session.report.error(error)
        raise typer.Exit(int(error.code)) from None
    except BrokenPipeError:
        # The reader of our output has gone (envbuild list | head): not an error of anybody's.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except OSError as error:
        found = os_error(error)
        session.report.error(found)
        raise typer.Exit(int(found.code)) from None
    except KeyboardInterrupt:
        session.report.warn("interrupted; nothing was published")
        raise typer.Exit(130) from None
    except Exception:
        import traceback

        session.report.bug(traceback.format_exc())
        raise typer.Exit(int(ExitCode.BUG)) from None
