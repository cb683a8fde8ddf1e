"""Errors that a user sees, each with a place, advice and the exit code of its kind."""

from enum import IntEnum
from typing import NamedTuple


class ExitCode(IntEnum):
    """The exit codes of all commands."""

    OK = 0
    UNEXPLAINED = 1
    USAGE = 2
    NO_SOLUTION = 3
    KNOWN_BAD = 4
    BUILD = 5
    SMOKE = 6
    DRIFT = 8
    MISSING_TOOL = 9
    BUG = 70


class Place(NamedTuple):
    """A position in a document; line and column count from 1, 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class Problem(NamedTuple):
    """One problem: its id, a message, its location and hints.

    An id is ``topic.problem``. It stays the same from release to release; see docs/messages.md.
    """

    id: str
    message: str
    place: "Place | None" = None
    hints: "tuple[str, ...]" = ()


class EnvbuildError(Exception):
    """The base: every error that is not our own bug. Carries all its problems at once."""

    code = ExitCode.USAGE

    def __init__(
        self, problem_id: str, message: str, *hints: str, place: "Place | None" = None
    ) -> None:
        super().__init__(message)
        self.problems: "tuple[Problem, ...]" = (Problem(problem_id, message, place, hints),)
        # What programs may want to know beside the text; JSON types only.
        self.details: "dict[str, object]" = {}

    @property
    def id(self) -> str:
        """The id of the first problem."""
        return self.problems[0].id


def whole(error: "BaseException | None") -> str:
    """Return the text of an error and its causes."""
    parts: "list[str]" = []
    while error is not None:
        if str(error) not in parts:
            parts.append(str(error))
        error = error.__cause__
    return ": ".join(parts)


class UsageError(EnvbuildError):
    """The command line, a name or a place that it gives, is wrong."""


class BuildError(EnvbuildError):
    """A step failed, or the place for the build did."""

    code = ExitCode.BUILD


class DriftError(EnvbuildError):
    """The present state differs from the recorded one."""

    code = ExitCode.DRIFT


class SmokeError(EnvbuildError):
    """The ranks did not prove that they can talk."""

    code = ExitCode.SMOKE
