"""Removing environments: one number, unfinished builds, or all of a name."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import UsageError
from ..files import remove_tree
from ..target_tools.root import locks, publish
from ..target_tools.root.store import Home, Version, default_number
from .usage import processes_using

Say = Callable[[str], None]


def remove_number(home: Home, version: Version, say: Say) -> None:
    """Remove a published number. Raises UsageError for the default and for what is in use here."""
    _refuse_default(home, version)
    _refuse_in_use(home, version)
    with locks.hold(home.lock_file, say=say):
        with locks.hold(home.default_lock, say=say):
            # Again: what was waited for may have changed it.
            _refuse_default(home, version)
            _refuse_in_use(home, version)
            publish.withdraw(home, version)
        publish.remove_prefix(home, version.id)


def remove_unfinished(home: Home, say: Say) -> tuple[str, ...]:
    """Remove the builds that were never published; return their ids."""
    with locks.hold(home.lock_file, say=say):
        return _remove_unfinished(home)


def remove_all(home: Home, say: Say) -> tuple[Version, ...]:
    """Remove every number, which is then used up, and every unfinished build; return the numbers.

    Raises UsageError where one of them is in use on this host.
    """
    with locks.hold(home.lock_file, say=say):
        with locks.hold(home.default_lock, say=say):
            versions = publish.published(home)
            for version in versions:
                _refuse_in_use(home, version)
            publish.unset_default(home)
            for version in versions:
                publish.withdraw(home, version)
        _remove_unfinished(home)
    return versions


def _remove_unfinished(home: Home) -> tuple[str, ...]:
    remove_tree(home.scratch)
    identities = publish.unpublished(home)
    for identity in identities:
        publish.remove_prefix(home, identity)
    return identities


def _refuse_default(home: Home, version: Version) -> None:
    if version.number == default_number(home):
        raise UsageError(
            f"{home.name}/{version.number} is the default",
            f"envbuild rollback {home.name} makes another the default first",
            f"envbuild remove {home.name} --all takes all of it away",
        )


def _refuse_in_use(home: Home, version: Version) -> None:
    users = processes_using(home.prefix(version.id))
    if users:
        first = ", ".join(f"{user.pid} ({user.program})" for user in users[:5])
        raise UsageError(
            f"{home.name}/{version.number} is in use by {len(users)} processes here: {first}",
            "processes on other nodes cannot be seen from here",
        )
