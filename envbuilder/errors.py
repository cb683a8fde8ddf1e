"""Errors that a user sees, each with a place, advice and the exit code of its kind."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """What the exit code of every command means."""

    OK = 0
    USAGE = 2
    NO_SOLUTION = 3
    KNOWN_BAD = 4
    BUILD = 5
    SMOKE = 6
    SPEED = 7
    DRIFT = 8
    MISSING_TOOL = 9
    BUG = 70


@dataclass(frozen=True)
class Place:
    """A position in a document; line and column count from 1, 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: where, what, and what to try."""

    message: str
    place: Place | None = None
    hints: tuple[str, ...] = ()


class EnvbuildError(Exception):
    """The base: every error that is not our own bug. Carries all its problems at once."""

    code = ExitCode.USAGE

    def __init__(self, message: str, *hints: str, place: Place | None = None) -> None:
        super().__init__(message)
        self.problems: tuple[Problem, ...] = (Problem(message, place, hints),)
        # What programs may want to know beside the text; JSON types only.
        self.details: dict[str, object] = {}


class DocumentError(EnvbuildError):
    """One or more documents are wrong; ``problems`` holds every finding."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems[0].message)
        self.problems = problems
        self.details = {}


class UsageError(EnvbuildError):
    """The command line, a name or a place that it gives, is wrong."""


class NoSolutionError(EnvbuildError):
    """The constraints cannot hold together at this site."""

    code = ExitCode.NO_SOLUTION


class KnownBadError(NoSolutionError):
    """A stack would be there, but what is known of it forbids it."""

    code = ExitCode.KNOWN_BAD


class BuildError(EnvbuildError):
    """A step failed, or the place for the build did."""

    code = ExitCode.BUILD


class SmokeError(EnvbuildError):
    """The ranks did not prove that they can talk."""

    code = ExitCode.SMOKE


class MissingToolError(EnvbuildError):
    """A program that the task needs is not on this machine."""

    code = ExitCode.MISSING_TOOL


def os_error(error: OSError) -> EnvbuildError:
    """Say what a failed file operation means and what to try."""
    what = f"{error.strerror or error}"
    where = f": {error.filename}" if error.filename else ""
    hints = {
        errno.ENOSPC: ("the file system is full: free some space, or use another --root",),
        errno.EDQUOT: ("your quota is used up: free some space, or use another --root",),
        errno.EROFS: ("that file system is read-only: use another --root",),
        errno.EACCES: ("you may not write there: use another --root, or ask its owner",),
        errno.EPERM: ("you may not write there: use another --root, or ask its owner",),
        errno.ENOTDIR: ("a part of that path is a file, not a folder: use another --root",),
        errno.ENAMETOOLONG: ("the path is too long: use a shorter --root",),
    }.get(error.errno or 0, ())
    return BuildError(f"{what}{where}", *hints)
