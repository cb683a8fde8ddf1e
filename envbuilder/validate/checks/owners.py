"""The users to whom files around an environment belong."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...inspect.facts import Environment
from ...inspect.observation import seen
from ...text import counted
from .protocol import Violation, check


class Owner(NamedTuple):
    """A user. ``home``: the home folder; one that nobody has without an account."""

    name: str
    home: str


def other_owner(environment: Environment, path: str | Path) -> Owner | None:
    """Return who owns a path, if neither root nor the owner of the environment does."""
    try:
        owner = os.stat(path).st_uid  # noqa: PTH116 - a path may be a text
        if owner in (0, os.stat(environment.prefix).st_uid) or environment.root:  # noqa: PTH116
            return None
    except OSError:
        return None
    try:
        account = pwd.getpwuid(owner)
    except KeyError:
        return Owner(f"user {owner}", "/nonexistent")
    return Owner(account.pw_name, os.path.realpath(account.pw_dir))


def home_owner(environment: Environment, path: str | Path) -> Owner | None:
    """Return the other user in whose home folder a path lies."""
    owner = other_owner(environment, path)
    real = os.path.realpath(path)
    return owner if owner and owner.home != "/" and real.startswith(f"{owner.home}/") else None


def _other_owner(environment: Environment) -> Iterator[Violation]:
    """Compare owner and permissions of the recorded files with those of the prefix."""
    if environment.root:
        return
    try:
        prefix = os.stat(environment.prefix)  # noqa: PTH116 - as its files below
    except OSError:
        return
    for package in environment.installed:
        foreign, closed = [], []
        for file in package.files:
            state = environment.states[file.path]
            if state is None:
                continue
            # A group that shares the environment may write the files of all its members.
            shared = state.st_gid == prefix.st_gid and state.st_mode & 0o020
            if state.st_uid != prefix.st_uid and not shared:
                foreign.append(seen(environment.short(file.path), "owner", state.st_uid))
            if prefix.st_mode & ~state.st_mode & 0o444:
                closed.append(
                    seen(environment.short(file.path), "mode", oct(state.st_mode & 0o777))
                )
        if foreign:
            summary = f"{package} has {counted(len(foreign), 'file')} of another owner"
            yield Violation(summary, tuple(foreign))
        if closed:
            summary = f"{package} has {counted(len(closed), 'file')} that not all users may read"
            yield Violation(summary, tuple(closed))


CHECKS = (
    check(
        _other_owner,
        id="package.other-owner",
        layer="files",
        faults=("another owner", "missing"),
        severity="warning",
        title="files of a package belong to another user, or are closed to some users",
        why="its owner can neither upgrade nor remove the package, or other users cannot import it",
        fix="chown -R the environment to its owner, and chmod -R a+rX it",
        source="https://man7.org/linux/man-pages/man7/path_resolution.7.html",
    ),
)
