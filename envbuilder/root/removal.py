"""Removing environments: numbers, unfinished builds, or all of a name.

Only what is known to be ours goes: a number by its modulefile, a build by its mark. Whether it may
be removed is looked at before anything is withdrawn.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from ..errors import UsageError
from ..files import remove_tree
from ..target_tools import sharing
from ..target_tools.files import entries
from ..target_tools.root import locks, publish
from ..target_tools.root.layout import Home, Version
from ..target_tools.root.registry import default_number, removal_hints
from .usage import processes_using

Say = Callable[[str], None]


def remove_number(home: Home, version: Version, say: Say) -> None:
    """Remove a published number. Raises UsageError for the default and for what is in use here."""
    _refuse_default(home, version)
    _refuse_in_use(home, version)
    publish.check_removable(home, (version.id,))
    with _held(home, (version.id,), say):
        with locks.hold(home.default_lock, say=say, group=home.group):
            # Again: what was waited for may have changed it.
            _refuse_default(home, version)
            _refuse_in_use(home, version)
            publish.withdraw(home, version)
        _remove_withdrawn(home, version, say)


def remove_old(
    home: Home, say: Say, *, keep: int, older_than: timedelta, now: datetime
) -> tuple[Version, ...]:
    """Remove the numbers that are neither among the newest *keep* nor young; return them.

    *older_than* counts from when a number was published. The default stays, and so does what is in
    use here, which is said.
    """
    versions = publish.published(home)
    removed = []
    for version in versions[: max(0, len(versions) - keep)]:
        published = datetime.fromtimestamp(home.modulefile(version).stat().st_mtime, now.tzinfo)
        if version.number == default_number(home) or now - published < older_than:
            continue
        if processes_using(home.prefix(version.id)):
            say(f"{home.name}/{version.number} is in use here and is not removed")
            continue
        remove_number(home, version, say)
        removed.append(version)
    return tuple(removed)


def remove_unfinished(home: Home, say: Say) -> tuple[str, ...]:
    """Remove the builds that were never published; return their ids, and say what is left alone."""
    identities = publish.unpublished(home)
    publish.check_removable(home, identities)
    with _held(home, identities, say):
        removed = _remove_unfinished(home, say)
    strangers = publish.strangers(home)
    if strangers:
        say(f"not removed, because it has no mark of envbuild: {', '.join(strangers)}")
    return removed


def remove_all(home: Home, say: Say) -> tuple[Version, ...]:
    """Remove every number, which is then used up, and every unfinished build; return the numbers.

    Raises UsageError where one of them is in use on this host.
    """
    identities = (*(each.id for each in publish.published(home)), *publish.unpublished(home))
    publish.check_removable(home, identities)
    with _held(home, identities, say):
        with locks.hold(home.default_lock, say=say, group=home.group):
            versions = publish.published(home)
            for version in versions:
                _refuse_in_use(home, version)
            publish.unset_default(home)
            for version in versions:
                publish.withdraw(home, version)
        for version in versions:
            _remove_withdrawn(home, version, say)
        _remove_unfinished(home, say)
    return versions


def _remove_withdrawn(home: Home, version: Version, say: Say) -> None:
    """Remove the prefix of a number that was taken away, unless a modulefile still names it."""
    if version.id in publish.named(home):
        say(f"{home.prefix(version.id)} is not removed: {home.modulefiles} refers to it")
    else:
        publish.remove_prefix(home, version.id, say)


@contextlib.contextmanager
def _held(home: Home, identities: Sequence[str], say: Say) -> Iterator[None]:
    """Hold the environment's lock, on a full disk too.

    There the logs of what is to be removed make room for the lock, where nobody builds.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locks.hold(home.lock_file, say=say, group=home.group))
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or home.lock_file.exists():
                raise
            for identity in identities:
                for log in entries(home.build(identity) / "logs"):
                    remove_tree(log)
            stack.enter_context(locks.hold(home.lock_file, say=say, group=home.group))
        yield


def _remove_unfinished(home: Home, say: Say) -> tuple[str, ...]:
    """Remove the unfinished builds; in a shared root but those that only others may remove."""
    publish.clear(home, home.scratch, say)
    removed = []
    for identity in publish.unpublished(home):
        if all(map(publish.may_change, publish.folders_of(home, identity))):
            publish.remove_prefix(home, identity, say)
            removed.append(identity)
        else:
            owner = sharing.owner_of(next(publish.folders_of(home, identity)))
            say(f"not removed: the unfinished build {identity} belongs to {owner}")
    return tuple(removed)


def _refuse_default(home: Home, version: Version) -> None:
    if version.number == default_number(home):
        raise UsageError(
            "environment.is-default",
            f"{home.name}/{version.number} is the default",
            *removal_hints(home, version),
        )


def _refuse_in_use(home: Home, version: Version) -> None:
    users = processes_using(home.prefix(version.id))
    if users:
        first = ", ".join(f"{user.pid} ({user.program})" for user in users[:5])
        raise UsageError(
            "environment.in-use",
            f"{home.name}/{version.number} is in use by {len(users)} processes here: {first}",
            "processes on other nodes are not checked",
        )
