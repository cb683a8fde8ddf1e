"""The users to whom files around an environment belong."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...inspect.facts import Environment, state_of
from ...inspect.observation import seen
from ...target_tools.files import is_below
from ...text import counted
from .protocol import Violation, checks


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


def is_private(environment: Environment, path: str | Path, owner: Owner) -> bool:
    """Return whether a path is in the home of its owner, or in a folder closed to all others."""
    real = Path(os.path.realpath(path))
    if owner.home != "/" and is_below(str(real), owner.home):
        return True
    user, prefix = real.stat().st_uid, os.path.realpath(environment.prefix)
    above = [each for each in (real, *real.parents) if not is_below(prefix, str(each))]
    return any(s.st_uid == user and not s.st_mode & 0o055 for s in (each.stat() for each in above))


def foreign(
    environment: Environment, path: str | Path, what: str, field: str
) -> Iterator[Violation]:
    """Yield that a path outside belongs to another user; *what* begins the summary.

    A warning where it is private, otherwise for information. A site's software usually belongs to
    one user: the owner of the base Python is none to tell of.
    """
    owner = other_owner(environment, path)
    private = owner is not None and is_private(environment, path, owner)
    base = environment.interpreter.real
    if owner and (private or not base or owner != other_owner(environment, base)):
        where = f", private to {owner.name}" if private else f" of {owner.name}"
        place = (seen(path, field, owner.name),)
        yield Violation(f"{what} {path}{where}", place, severity=None if private else "info")


def _other_owner(environment: Environment) -> Iterator[Violation]:
    """Compare owner and permissions of the recorded files with those of the prefix."""
    prefix = None if environment.root else state_of(str(environment.prefix))
    for package in environment.installed if prefix else ():
        paths = [file.path for file in package.files]
        folders = {os.path.dirname(path): None for path in paths}  # noqa: PTH120 - thousands of them
        states = {path: environment.states[path] for path in paths}
        found = {**states, **{path: state_of(path) for path in folders}}.items()
        alien = [path for path, state in found if state and prefix and _is_alien(state, prefix)]
        closed = [path for path, state in found if state and prefix and _is_closed(state, prefix)]
        for files, words in ((alien, "of another owner"), (closed, "that not all users may read")):
            if files:
                yield Violation(
                    f"{package} has {counted(len(files), 'file')} {words}",
                    tuple(seen(environment.short(each), "owner or mode") for each in files),
                )


def _is_alien(state: os.stat_result, prefix: os.stat_result) -> bool:
    """Whether a file has another owner; a group that shares the environment may write them all."""
    shared = state.st_gid == prefix.st_gid and state.st_mode & 0o020
    return state.st_uid != prefix.st_uid and not shared


def _is_closed(state: os.stat_result, prefix: os.stat_result) -> bool:
    """Whether a file or folder lacks permissions for users who may enter the environment."""
    needed = 0o555 if stat.S_ISDIR(state.st_mode) else 0o444
    return bool(prefix.st_mode & ~state.st_mode & needed)


CHECKS = checks({"package.other-owner": _other_owner})
