"""The lock that ``create`` builds in a root: the last one while it fits, a kept or a new one.

And what its locks say of what is published there.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from .. import files
from ..errors import BuildError
from ..locking import lock_cache
from ..locking.lock_check import contradictions
from ..model.decisions import asks_the_same
from ..model.plan import Lock
from ..root import environment_lock
from ..runtimes import RUNTIMES
from ..target_tools.files import IrregularFileError, read_regular
from ..target_tools.root import layout, publish
from ..target_tools.trust import distrust
from .context import Context
from .load import Planned
from .lock import fingerprint, obtain_lock


def lock_of_root(planned: Planned, home: layout.Home, context: Context, *, relock: bool) -> Lock:
    """Return the last lock if it decides the same, one made elsewhere, or a new one.

    *relock*: a new one, whatever is there.
    """
    last = None if relock else _last_lock(home, context)
    if last and asks_the_same(last.plan, planned.plan):
        again = Lock(plan=planned.plan, artifacts=last.artifacts)
        wrong = contradictions(again, runtimes=RUNTIMES)
        if not wrong:
            context.reporter.say("reusing the existing lock (use --relock to resolve again)")
            return again
        context.reporter.warn(f"ignored {home.last_lock}: {'; '.join(wrong)}")
    scratch = home.scratch / "asking"
    request = fingerprint(planned.plan, planned.inputs, context, scratch)
    file = lock_cache.cache_file(request, context.environ, context.cwd)
    usable = file is not None and not relock and _is_trusted(file, None, context)
    found = lock_cache.find(file, context.clock(), RUNTIMES) if file and usable else None
    if found:
        context.reporter.say(
            f"reusing a lock made {found.age_text()} (use --relock to resolve again)"
        )
        return found.lock
    lock = obtain_lock(planned, context, scratch, downloads_of(home))
    if file:
        try:
            lock_cache.store(file, lock, context.clock())
        except OSError as error:
            context.reporter.warn(f"cannot cache the lock: {error}")
    return lock


def downloads_of(home: layout.Home) -> Path:
    """Return where what had to be downloaded to make the lock is."""
    return home.scratch / "downloads"


def _last_lock(home: layout.Home, context: Context) -> Lock | None:
    """Return the lock of the last create; None where there is none that counts."""
    if not _is_trusted(home.last_lock, home.group, context):
        return None
    try:
        return Lock.model_validate_json(read_regular(home.last_lock))
    except IrregularFileError as error:
        context.reporter.warn(f"ignored {home.last_lock}: {error}")
        return None
    except (FileNotFoundError, ValueError):
        return None  # a lock of an older schema or a damaged one is simply made anew


def _is_trusted(file: Path, group: int | None, context: Context) -> bool:
    """Whether a file may choose what is installed and run; one that may not is named.

    *group*: the one that shares the root of the file; None for a cache.
    """
    reason = distrust(file, group)
    if reason:
        context.reporter.warn(f"ignored {file}: {reason}")
    return reason is None


def explain_rebuild(home: layout.Home, lock: Lock, context: Context) -> None:
    """Say that the runtime's sources are not those of the newest environment, if they are not."""
    newest = next(reversed(publish.published(home)), None)
    if newest is None:
        return
    with contextlib.suppress(BuildError):
        before, now = environment_lock.read_lock(home, newest).plan.runtime, lock.plan.runtime
        if before.source_sha256 != now.source_sha256:
            what = "the bundled runtime" if now.bundled else f"the runtime {now.package}"
            context.reporter.say(
                f"{what} changed since {home.name}/{newest.number} was built: building again"
            )


def heal_lock(home: layout.Home, version: layout.Version, lock: Lock, context: Context) -> None:
    """Write the lock of a published environment anew where it is lost or damaged.

    The folder's id is that of this very lock: both decide the same.
    """
    try:
        environment_lock.read_lock(home, version)
    except BuildError as error:
        if version.id == lock.id():
            context.reporter.warn(f"{error}; writing it again")
            path = home.build(version.id) / environment_lock.LOCK
            files.write_atomically(path, lock.text())


def tell_new_findings(
    home: layout.Home, version: layout.Version, lock: Lock, context: Context
) -> None:
    """Warn of what was not known yet when the environment was built: its records do not say it."""
    try:
        stored = environment_lock.read_lock(home, version)
    except BuildError as error:
        context.reporter.warn(str(error))
        return
    before = {(each.id, each.status) for each in stored.plan.findings}
    new = [
        f"{each.id} ({each.status})"
        for each in lock.plan.findings
        if each.status in ("warning", "unknown") and (each.id, each.status) not in before
    ]
    if new:
        context.reporter.warn(
            f"new advisories since {home.name}/{version.number} was built: {', '.join(new)}; "
            "envbuild plan shows them"
        )
