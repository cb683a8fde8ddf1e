"""Locks made within the hour, kept so that ``create`` in another root need not ask pip again."""

from __future__ import annotations

import contextlib
import re
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from .. import __version__, process
from ..detect import Host, cache_folder
from ..locking import question
from ..model.base import sha256_text
from ..model.plan import Lock, Plan
from ..root import files
from .context import Context
from .load import Material
from .locked import glibc_of_target

# An index has something new at any time. A day later is late to hear of it, and who builds the
# same in two places does so within minutes.
LIFETIME = timedelta(hours=1)

# Files of this folder: nothing else that lies there may ever be removed.
_OURS = re.compile(r"\.?[0-9a-f]{64}\.json.*")


@dataclass(frozen=True)
class Kept:
    """A lock that was kept, and how long ago it was made."""

    lock: Lock
    age: timedelta

    def told(self) -> str:
        """Return the age in words, as people say it."""
        minutes = round(self.age.total_seconds() / 60)
        return f"{minutes} min ago" if minutes else "just now"


def kept_file(planned: Plan, material: Material, context: Context) -> Path | None:
    """Return the file in which the lock of *planned* is kept; None: it must be asked for."""
    folder = _folder(context)
    said = process.run([sys.executable, "-m", "pip", "config", "list"], env=context.environ)
    if folder is None or not said.ok:
        return None
    asked = question(planned, glibc_of_target(planned, material), said.stdout)
    # Another envbuild may read the same answer otherwise.
    return folder / f"{sha256_text(__version__ + asked)}.json" if asked else None


def find(file: Path, now: datetime) -> Kept | None:
    """Return the lock that is kept there, unless it is too old or not whole."""
    try:
        age = now - _written(file, now)
        lock = Lock.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # there is none, or one of another schema: the next one takes its place
    return Kept(lock, abs(age)) if _is_young(age) else None


def keep(file: Path, lock: Lock, context: Context) -> None:
    """Keep a lock for the next create, and remove what is too old. A failure is only told."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(file, lock.text())
        _remove_old(file.parent, context.clock())
    except OSError as error:
        context.tell.warn(f"the lock is not kept for another create: {error}")


def _remove_old(folder: Path, now: datetime) -> None:
    for path in folder.iterdir():
        if not _OURS.fullmatch(path.name) or not path.is_file():
            continue
        # Another create may have removed it meanwhile.
        with contextlib.suppress(FileNotFoundError):
            if not _is_young(now - _written(path, now)):
                path.unlink()


def _written(file: Path, now: datetime) -> datetime:
    return datetime.fromtimestamp(file.stat().st_mtime, now.tzinfo)


def _is_young(age: timedelta) -> bool:
    # A file server's clock may be ahead.
    return abs(age) < LIFETIME


def _folder(context: Context) -> Path | None:
    named = context.environ.get("ENVBUILD_LOCK_CACHE")
    if named:
        return context.path(named)
    caches = cache_folder(Host(context.environ))
    return caches / "locks" if caches else None
