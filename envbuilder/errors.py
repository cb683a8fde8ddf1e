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
    """A program or a file that the task needs is not available on this machine."""

    code = ExitCode.MISSING_TOOL


# What is written lies in a root, or where --output says.
_ELSEWHERE = "use another --root or --output"


def os_error(error: OSError) -> EnvbuildError:
    """Say what a failed file operation means and what to try."""
    what = f"{error.strerror or error}"
    where = f": {error.filename}" if error.filename else ""
    message, number = f"{what}{where}", error.errno
    if number == errno.ENOSPC:
        hint = f"the file system is full: free some space, or {_ELSEWHERE}"
        return BuildError("file.disk-full", message, hint)
    if number == errno.EDQUOT:
        hint = f"your quota is exceeded: free some space, or {_ELSEWHERE}"
        return BuildError("file.quota-exceeded", message, hint)
    if number == errno.EROFS:
        hint = f"the file system is read-only: {_ELSEWHERE}, or another machine"
        return BuildError("file.read-only", message, hint)
    if number in (errno.EACCES, errno.EPERM):
        hint = f"you have no permission: {_ELSEWHERE}, or ask the owner of the file"
        return BuildError("file.no-permission", message, hint)
    if number == errno.ENOTDIR:
        hint = f"a part of the path is a file, not a folder: {_ELSEWHERE}"
        return BuildError("file.not-a-folder", message, hint)
    if number == errno.ENAMETOOLONG:
        hint = "the path is too long: use a shorter --root or --output"
        return BuildError("file.name-too-long", message, hint)
    return BuildError("file.error", message)
