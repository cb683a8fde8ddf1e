"""Publishing: the modulefile is written last, the default is one file that is replaced at once.

The order makes a kill at any moment harmless: the number is reserved in the registry first, so a
repeated publish of the same prefix finds its number again; nothing refers to the modulefile
before it is whole; the old default stays until the new one is in place.
"""

import contextlib
import os
import shutil
import stat
from pathlib import Path

from ..errors import UsageError
from ..files import make_read_only, remove_tree, write_atomically
from ..modulefile import default_text
from . import manifests
from .store import DEFAULT_FILES, Home, Version, default_number, read_registry, write_registry

# What a finished environment no longer needs of its build; scripts, logs, lock and our wheel stay.
SCAFFOLDING = ("wheelhouse", "build-tools", "runtime-build")


def find_reserved(home: Home, identity: str) -> "Version | None":
    """Return the number that prefix *identity* is or was going to be published as."""
    versions = read_registry(home)
    return next((v for v in versions if v.id == identity and not v.removed), None)


def reserve(home: Home, identity: str, dialect: str) -> Version:
    """Return the number for a prefix, a new one where it has none. The lock must be held."""
    reserved = find_reserved(home, identity)
    if reserved:
        return reserved
    versions = read_registry(home)
    number = max([each.number for each in versions], default=0) + 1
    version = Version(number=number, id=identity, dialect=dialect)
    write_registry(home, (*versions, version))
    return version


def publish(home: Home, version: Version, modulefile: str) -> Path:
    """Make the prefix read-only, record its files, write its modulefile; keep the default."""
    make_read_only(home.prefix(version.id))
    manifests.record(home, version.id, "published")
    home.modulefiles.mkdir(parents=True, exist_ok=True)
    path = home.modulefile(version)
    write_atomically(path, modulefile)
    show_root(home.modulefiles, path)
    return path


def tidy(build: Path) -> None:
    """Remove from a build folder what only the build needed, after the environment was proved."""
    for name in SCAFFOLDING:
        shutil.rmtree(str(build / name), ignore_errors=True)


def show_root(*paths):
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
    there = home.modulefile(version).is_file() and home.prefix(version.id).is_dir()
    return there and not version.removed


def set_default(home: Home, version: Version) -> None:
    """Replace the one file that says what ``module load NAME`` means."""
    path = home.modulefiles / DEFAULT_FILES[version.dialect]
    text = default_text(home.name, version.number, version.dialect)
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    write_atomically(path, text)
    show_root(path)


def unset_default(home: Home) -> None:
    """Take the default away; numbers can still be loaded by name."""
    for name in DEFAULT_FILES.values():
        unlink(home.modulefiles / name)


def unlink(path):
    """Remove a file that may be gone."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def published(home: Home) -> "tuple[Version, ...]":
    """Return the numbers that can be loaded, oldest first."""
    return tuple(v for v in read_registry(home) if is_published(home, v))


def find_version(home: Home, number: "int | None") -> Version:
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
    unlink(home.modulefile(version))
    gone = version._replace(removed=True)
    versions = read_registry(home)
    write_registry(home, tuple(gone if v.number == gone.number else v for v in versions))


def remove_prefix(home: Home, identity: str) -> None:
    """Remove a prefix with its build folder and evidence."""
    for folder in (home.build(identity), home.prefix(identity), home.evidence(identity)):
        remove_tree(folder)


def unpublished(home: Home) -> "tuple[str, ...]":
    """Return the ids of prefixes and builds that no number refers to."""
    numbered = {version.id for version in published(home)}
    folders = (entry for entry in home.folder.iterdir() if entry.is_dir())
    # What begins with a dot is no prefix.
    identities = {folder.name.split(".")[0] for folder in folders} - {""}
    return tuple(sorted(identities - numbered))
