"""The lock that ``create`` builds in a root: the last one while it fits, a kept or a new one.

And what its locks say of what is published there.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from .. import __version__, files
from ..base import sha256_text
from ..errors import BuildError
from ..locking.lock_check import contradictions
from ..machine.host import LocalMachine, cache_folder
from ..model.decisions import asks_the_same
from ..model.plan import Lock
from ..model.runtime import Runtimes
from ..root import environment_lock
from ..runtimes import RUNTIMES
from ..target_tools.files import IrregularFileError, make_folder, read_regular
from ..target_tools.root import layout, publish
from ..target_tools.trust import distrust
from .context import Context
from .load import Planned
from .lock import fingerprint, obtain_lock

# An index has something new at any time. A day later is late to hear of it, and who builds the
# same in two places does so within minutes.
LIFETIME = timedelta(hours=1)

# Files of ours, also those that a killed create had begun: nothing else may ever be removed.
_OURS = re.compile(r"lock-[0-9a-f]{64}\.json|\.lock-[0-9a-f]{64}\.json\.[a-z0-9_]{8}")


@dataclass(frozen=True)
class CachedLock:
    """A lock that was kept, and how long ago it was made."""

    lock: Lock
    age: timedelta

    def age_text(self) -> str:
        """Return the age in words, as people say it."""
        minutes = round(self.age.total_seconds() / 60)
        return f"{minutes} min ago" if minutes else "just now"


def cache_file(request: str | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """Return where the lock for a request is kept, by its fingerprint; None: nowhere.

    In ENVBUILD_LOCK_CACHE, or the folder for caches that XDG's specification says.
    """
    named = environ.get("ENVBUILD_LOCK_CACHE")
    caches = cache_folder(LocalMachine(environ))
    folder = cwd / named if named else caches and caches / "locks"
    if folder is None or request is None:
        return None
    # Another envbuild may read the same answer otherwise.
    return folder / f"lock-{sha256_text(f'{__version__} {request}')}.json"


def find_cached(file: Path, now: datetime, runtimes: Runtimes) -> CachedLock | None:
    """Return the lock that is kept there, unless it is too old, not whole or not to be trusted."""
    if distrust(file):
        return None  # who may choose a lock chooses what runs in the environment
    try:
        age = now - _written(file, now)
        lock = Lock.model_validate_json(read_regular(file))
    except (OSError, ValueError, OverflowError):
        return None  # there is none, or one of another schema: the next one takes its place
    whole = _is_young(age) and not contradictions(lock, runtimes=runtimes)
    return CachedLock(lock, abs(age)) if whole else None


def store_cached(file: Path, lock: Lock, now: datetime) -> None:
    """Keep a lock for the next create, and remove what is too old.

    Raises OSError where it cannot be written; old files that cannot be removed stay.
    """
    make_folder(file.parent)
    files.write_atomically(file, lock.text())
    _remove_old(file.parent, now)


def _remove_old(folder: Path, now: datetime) -> None:
    with contextlib.suppress(OSError):
        ours = [path for path in folder.iterdir() if _OURS.fullmatch(path.name)]
        for path in ours:
            # Another create may have removed it meanwhile; or it is not ours to remove.
            with contextlib.suppress(OSError, ValueError, OverflowError):
                if not _is_young(now - _written(path, now)):
                    path.unlink()


def _written(file: Path, now: datetime) -> datetime:
    return datetime.fromtimestamp(file.stat().st_mtime, now.tzinfo)


def _is_young(age: timedelta) -> bool:
    # A file server's clock may be ahead.
    return abs(age) < LIFETIME


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
    file = cache_file(request, context.environ, context.cwd)
    usable = file is not None and not relock and _is_trusted(file, None, context)
    found = find_cached(file, context.clock(), RUNTIMES) if file and usable else None
    if found:
        context.reporter.say(
            f"reusing a lock made {found.age_text()} (use --relock to resolve again)"
        )
        return found.lock
    lock = obtain_lock(planned, context, scratch, downloads_of(home))
    if file:
        try:
            store_cached(file, lock, context.clock())
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
