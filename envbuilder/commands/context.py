"""What every verb gets from outside: the environment, the clock, somebody to tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..errors import UsageError
from ..model.plan import Step

if TYPE_CHECKING:
    # The build is the last thing that most verbs need, if at all.
    from ..build import Listener


class Teller(Protocol):
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
    tell: Teller
    recipe_folders: tuple[Path, ...] = ()

    def path(self, text: str | Path) -> Path:
        """Return an absolute path, relative ones from the working directory; no links resolved."""
        return self.cwd / text


def default_base(environ: Mapping[str, str]) -> Path:
    """Return the folder for roots where neither site nor user names one (XDG data home)."""
    if environ.get("XDG_DATA_HOME"):
        return Path(environ["XDG_DATA_HOME"]) / "envbuild"
    if environ.get("HOME"):
        return Path(environ["HOME"]) / ".local" / "share" / "envbuild"
    raise UsageError("HOME is not set, so there is no default place", "give --root DIR")
