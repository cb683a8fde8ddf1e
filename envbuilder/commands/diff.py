"""``envbuild diff``: two locks, or a lock and what a plan made now would be."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UsageError
from ..model.diff import Diff, diff
from ..model.plan import Lock, Plan
from ..root.environment_lock import read_lock
from ..root.environments import find
from .context import Context
from .load import PlanOptions, load, plan
from .lock import LOCKS
from .places import existing_root

LIVE = "live"


@dataclass(frozen=True)
class DiffOptions:
    """The root of environments, and how a plan made now is made: what is not said, as locked."""

    root: str | None
    choice: PlanOptions


def compare(before: str, after: str, where: DiffOptions, context: Context) -> Diff:
    """Return what differs between two locks: files, or environments of a root; or ``live``.

    Raises UsageError for what is neither; what a plan raises where a plan made now has no answer.
    """
    if before == LIVE:
        raise UsageError("'live' comes second: envbuild diff LOCK live")
    lock, name = _lock(before, where, context)
    if after == LIVE:
        return diff(lock, _live(lock, where, context), (name, "a plan made now"))
    other, its_name = _lock(after, where, context)
    return diff(lock, other, (name, its_name))


def _lock(word: str, where: DiffOptions, context: Context) -> tuple[Lock, str]:
    """Return a lock and what to call it: a file if there is one or it is written like one."""
    path = context.path(word)
    if word.startswith(("/", ".")) or word.endswith(".json") or path.is_file():
        lock = LOCKS.load(path)
        return lock, f"{word} ({lock.id()})"
    root = existing_root(where.root, where.choice.site, where.choice.arch, context)
    home, version = find(root, word)
    return read_lock(home, version), f"{home.name}/{version.number} ({version.id})"


def _live(lock: Lock, where: DiffOptions, context: Context) -> Plan:
    return plan(load(where.choice.as_locked(lock.plan), context))
