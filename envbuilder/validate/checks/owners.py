"""The users to whom files around an environment belong."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import NamedTuple

from ...inspect.facts import Environment


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
