"""The locks that environments of a root were built from, and the environment that a lock is."""

from __future__ import annotations

from pathlib import Path

from ..errors import BuildError
from ..locking.lock_check import contradictions
from ..model.decisions import earlier_sha256
from ..model.plan import Lock
from ..target_tools.files import IrregularFileError, read_text
from ..target_tools.root.layout import Home, Version
from ..target_tools.root.publish import published

LOCK = "lock.json"


def lock_file(home: Home, version: Version) -> Path:
    """Return where the lock of a published environment lies."""
    return home.build(version.id) / LOCK


def read_lock(home: Home, version: Version) -> Lock:
    """Return the lock a published environment was built from, checked.

    Raises BuildError where there is none, it contradicts itself, or is not that of the folder.
    """
    path = lock_file(home, version)
    said = f"the lock of {home.name}/{version.number} is missing or damaged: {path}"
    hint = "the environment may still work; run envbuild create again to get a lock"
    try:
        text = read_text(path)
        lock = Lock.model_validate_json(text)
    except IrregularFileError as error:
        raise BuildError("environment.lock-unreadable", f"{said}: {error}", hint) from error
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise BuildError("environment.lock-unreadable", said, hint) from error
    wrong = list(contradictions(lock))
    identity = lock.id()
    if version.id != identity and not earlier_sha256(text).startswith(version.id):
        wrong.insert(0, f"the lock is of {identity}, not of {version.id}")
    if wrong:
        raise BuildError(
            "environment.lock-damaged", "\n".join([said, *(f"  {line}" for line in wrong)]), hint
        )
    return lock


def find_published(home: Home, lock: Lock) -> Version | None:
    """Return the newest published number that was built from the decisions of *lock*.

    Its folder need not be called by the lock's id: before there were ids of decisions alone,
    everything that a lock says was hashed. One that is called so is it, whatever became of the
    lock beside it: what is published must never be built again in its place.
    """
    return next(
        (each for each in reversed(published(home)) if _is_of(home, each, lock.id())),
        None,
    )


def published_id(home: Home, lock: Lock) -> str:
    """Return what the folders of a lock's environment are called by: its id, once published."""
    version = find_published(home, lock)
    return version.id if version else lock.id()


def _is_of(home: Home, version: Version, identity: str) -> bool:
    """Whether a published environment is that of a lock's id."""
    if version.id == identity:
        return True
    try:
        return read_lock(home, version).id() == identity
    except BuildError:
        return False
