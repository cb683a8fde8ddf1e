"""The lock that ``create`` builds in a root: the last one while it fits, a kept or a new one."""

from __future__ import annotations

from pathlib import Path

from ..locking import lock_cache
from ..model.decisions import asks_the_same
from ..model.lock_check import contradictions
from ..model.plan import Lock, Plan
from ..target_tools.root import layout
from ..target_tools.trust import distrust
from .context import Context
from .load import PlanInputs
from .lock import fingerprint, obtain_lock


def lock_of_root(
    plan_inputs: PlanInputs, planned: Plan, home: layout.Home, context: Context, *, relock: bool
) -> Lock:
    """Return the last lock if it decides the same, one made elsewhere, or a new one.

    *relock*: a new one, whatever is there.
    """
    last = None if relock else _last_lock(home, context)
    if last and asks_the_same(last.plan, planned):
        again = Lock(plan=planned, artifacts=last.artifacts)
        wrong = contradictions(again)
        if not wrong:
            context.reporter.say("reusing the existing lock (use --relock to resolve again)")
            return again
        context.reporter.warn(f"{home.last_lock} is left out: {'; '.join(wrong)}")
    scratch = home.scratch / "asking"
    request = fingerprint(planned, plan_inputs, context, scratch)
    file = lock_cache.cache_file(request, context.environ, context.cwd)
    usable = file is not None and not relock and _is_trusted(file, context)
    found = lock_cache.find(file, context.clock()) if file and usable else None
    if found:
        context.reporter.say(
            f"reusing a lock made {found.age_text()} (use --relock to resolve again)"
        )
        return found.lock
    lock = obtain_lock(plan_inputs, planned, context, scratch, downloads_of(home))
    if file:
        try:
            lock_cache.store(file, lock, context.clock())
        except OSError as error:
            context.reporter.warn(f"the lock is not cached: {error}")
    return lock


def downloads_of(home: layout.Home) -> Path:
    """Return where what had to be downloaded to make the lock is."""
    return home.scratch / "downloads"


def _last_lock(home: layout.Home, context: Context) -> Lock | None:
    """Return the lock of the last create; None where there is none that counts."""
    if not _is_trusted(home.last_lock, context):
        return None
    try:
        return Lock.model_validate_json(home.last_lock.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None  # a lock of an older schema or a damaged one is simply made anew


def _is_trusted(file: Path, context: Context) -> bool:
    """Whether a file may choose what is installed and run; one that may not is named."""
    reason = distrust(file)
    if reason:
        context.reporter.warn(f"{file} is left out: {reason}")
    return reason is None
