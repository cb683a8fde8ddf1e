"""Locks made within the hour, kept so that ``create`` in another root need not ask pip again."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from .. import __version__, files
from ..base import sha256_text
from ..machine.host import LocalMachine, cache_folder
from ..model.plan import Lock
from ..model.runtime import Runtimes
from ..target_tools.files import make_folder, read_regular
from ..target_tools.trust import distrust
from .lock_check import contradictions

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


def find(file: Path, now: datetime, runtimes: Runtimes) -> CachedLock | None:
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


def store(file: Path, lock: Lock, now: datetime) -> None:
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
