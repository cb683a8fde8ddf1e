"""What every verb gets from outside: the environment, the clock, somebody to tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from ..model.plan import Step
from ..model.progress import Listener


class Reporter(Protocol):
    """Who is told what happens while it happens."""

    def say(self, line: str) -> None: ...

    def warn(self, line: str) -> None: ...

    def working(self, title: str) -> AbstractContextManager[None]: ...

    def steps(self, steps: tuple[Step, ...]) -> AbstractContextManager[Listener]: ...


@dataclass(frozen=True)
class Context:
    """The world outside, passed in so that a test can pass another."""

    environ: Mapping[str, str]
    cwd: Path
    clock: Callable[[], datetime]
    reporter: Reporter
    recipe_folders: tuple[Path, ...] = ()

    def path(self, text: str | Path) -> Path:
        """Return an absolute path, relative ones from the working directory; no links resolved."""
        return self.cwd / text
