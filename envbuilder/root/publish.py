"""Publishing: the modulefile is written last, the default is one file that is replaced at once.

The order makes a kill at any moment harmless: the number is reserved in the registry first, so a
repeated publish of the same prefix finds its number again; nothing refers to the modulefile
before it is whole; the old default stays until the new one is in place.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..errors import UsageError
from ..files import make_read_only, remove_tree, write_atomically
from ..model.places import Dialect
from .store import (
    DEFAULT_FILES,
    Home,
    Registry,
    Version,
    default_number,
    read_registry,
    write_registry,
)


def reserve(home: Home, identity: str, dialect: Dialect) -> Version:
    """Return the number for a prefix, a new one where it has none. The lock must be held."""
    registry = read_registry(home)
    reserved = registry.of_id(identity)
    if reserved:
        return reserved
    version = Version(number=registry.next_number(), id=identity, dialect=dialect)
    write_registry(home, Registry(versions=(*registry.versions, version)))
    return version


def publish(home: Home, version: Version, modulefile: str) -> Path:
    """Make the prefix read-only and write its modulefile; the default is not changed."""
    make_read_only(home.prefix(version.id))
    home.modulefiles.mkdir(parents=True, exist_ok=True)
    path = home.modulefile(version)
    write_atomically(path, modulefile)
    _show_root(home.modulefiles, path)
    return path


def _show_root(*paths: Path) -> None:
    """Let root see its own modules after a strict umask.

    Lmod shows root only those of its modulefiles that all may read (l_walk in its DirTree.lua).
    """
    if os.geteuid() != 0:
        return
    for path in paths:
        mode = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode | (0o055 if path.is_dir() else 0o044))


def is_published(home: Home, version: Version) -> bool:
    """Whether a number can be loaded: its modulefile and its prefix are there."""
    return (
        not version.removed
        and home.modulefile(version).is_file()
        and home.prefix(version.id).is_dir()
    )


def set_default(home: Home, dialect: Dialect, text: str) -> None:
    """Replace the one file that says what ``module load NAME`` means."""
    path = home.modulefiles / DEFAULT_FILES[dialect]
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    write_atomically(path, text)
    _show_root(path)


def unset_default(home: Home) -> None:
    """Take the default away; numbers can still be loaded by name."""
    for name in DEFAULT_FILES.values():
        (home.modulefiles / name).unlink(missing_ok=True)


def published(home: Home) -> tuple[Version, ...]:
    """Return the numbers that can be loaded, oldest first."""
    return tuple(v for v in read_registry(home).versions if is_published(home, v))


def find_version(home: Home, number: int | None) -> Version:
    """Return a published number; None: the default. Raises UsageError if it is not there."""
    wanted = default_number(home) if number is None else number
    versions = published(home)
    for version in versions:
        if version.number == wanted:
            return version
    if not versions:
        raise UsageError(f"no environment {home.name!r} is published in {home.root}")
    there = ", ".join(f"{home.name}/{v.number}" for v in versions)
    if wanted is None:
        raise UsageError(f"{home.name} has no default; name a number", f"published: {there}")
    raise UsageError(f"there is no {home.name}/{wanted}", f"published: {there}")


def withdraw(home: Home, version: Version) -> None:
    """Take a number away: nothing can be loaded by it any more, and it is not given again.

    Its prefix is left to ``remove_prefix``.
    """
    home.modulefile(version).unlink(missing_ok=True)
    registry = read_registry(home)
    gone = version.model_copy(update={"removed": True})
    write_registry(
        home,
        Registry(versions=tuple(gone if v.number == gone.number else v for v in registry.versions)),
    )


def remove_prefix(home: Home, identity: str) -> None:
    """Remove a prefix with its build folder and evidence."""
    for folder in (home.build(identity), home.prefix(identity), home.evidence(identity)):
        remove_tree(folder)


def unpublished(home: Home) -> tuple[str, ...]:
    """Return the ids of prefixes and builds that no number refers to."""
    numbered = {version.id for version in published(home)}
    folders = (entry for entry in home.folder.iterdir() if entry.is_dir())
    # What begins with a dot is no prefix.
    identities = {folder.name.split(".")[0] for folder in folders} - {""}
    return tuple(sorted(identities - numbered))
