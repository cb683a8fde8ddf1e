"""``envbuild diff``: two locks, or a lock and what a plan made now would be."""

from __future__ import annotations

from ..errors import UsageError
from ..model.diff import Diff, diff
from ..model.plan import Lock
from ..root.environment_lock import read_lock
from ..root.environments import find
from .context import Context
from .load import load
from .lock import LOCKS
from .options import PlanOptions, RootOptions
from .places import existing_root

LIVE = "live"


def compare(
    before: str, after: str, root: str | None, choice: PlanOptions, context: Context
) -> Diff:
    """Return what differs between two locks: files, or environments of a root; or ``live``.

    *choice*: how a plan made now is made; what is not said, as locked. Raises UsageError for what
    is no lock; what a plan raises where a plan made now has no answer.
    """
    if before == LIVE:
        raise UsageError("'live' comes second: envbuild diff LOCK live")
    where = RootOptions(root, choice.site, choice.arch)
    lock, name = _lock(before, where, context)
    if after == LIVE:
        live = load(choice.as_locked(lock.plan), context).planned
        return diff(lock, live, (name, "a plan made now"))
    other, its_name = _lock(after, where, context)
    return diff(lock, other, (name, its_name))


def _lock(word: str, where: RootOptions, context: Context) -> tuple[Lock, str]:
    """Return a lock and what to call it: a file if there is one or it is written like one."""
    path = context.path(word)
    if word.startswith(("/", ".")) or word.endswith(".json") or path.is_file():
        lock = LOCKS.load(path)
        return lock, f"{word} ({lock.id()})"
    home, version = find(existing_root(where, context), word)
    return read_lock(home, version), f"{home.name}/{version.number} ({version.id})"
