"""Errors that a user sees: those of what runs inside a target, and the tool's own."""

from __future__ import annotations

import errno

from .target_tools.errors import (
    BuildError,
    DriftError,
    EnvbuildError,
    ExitCode,
    Place,
    Problem,
    SmokeError,
    UsageError,
)

__all__ = [
    "BuildError",
    "DocumentError",
    "DriftError",
    "EnvbuildError",
    "ExitCode",
    "KnownBadError",
    "MissingToolError",
    "NoSolutionError",
    "Place",
    "Problem",
    "SmokeError",
    "UsageError",
    "os_error",
]


class DocumentError(EnvbuildError):
    """One or more documents are wrong; ``problems`` holds every finding."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(*problems[0][:2])
        self.problems = problems


class NoSolutionError(EnvbuildError):
    """The constraints cannot hold together at this site."""

    code = ExitCode.NO_SOLUTION


class KnownBadError(NoSolutionError):
    """A stack would be there, but what is known of it forbids it."""

    code = ExitCode.KNOWN_BAD


class MissingToolError(EnvbuildError):
    """A program or a file that the task needs is not to be had on this machine."""

    code = ExitCode.MISSING_TOOL


# What is written lies in a root, or where --output says.
_ELSEWHERE = "use another --root or --output"


def os_error(error: OSError) -> EnvbuildError:
    """Say what a failed file operation means and what to try."""
    what = f"{error.strerror or error}"
    where = f": {error.filename}" if error.filename else ""
    hints = {
        errno.ENOSPC: (f"the file system is full: free some space, or {_ELSEWHERE}",),
        errno.EDQUOT: (f"your quota is used up: free some space, or {_ELSEWHERE}",),
        errno.EROFS: (f"that file system is read-only: {_ELSEWHERE}, or another machine",),
        errno.EACCES: (f"you may not write there: {_ELSEWHERE}, or ask its owner",),
        errno.EPERM: (f"you may not write there: {_ELSEWHERE}, or ask its owner",),
        errno.ENOTDIR: (f"a part of that path is a file, not a folder: {_ELSEWHERE}",),
        errno.ENAMETOOLONG: ("the path is too long: use a shorter --root or --output",),
    }.get(error.errno or 0, ())
    name = errno.errorcode.get(error.errno or 0, "unknown").lower()
    return BuildError(f"file.{name}", f"{what}{where}", *hints)
