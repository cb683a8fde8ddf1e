"""Publishing: the modulefile is written last, the default is one file that is replaced at once.

The order makes a kill at any moment harmless: the number is reserved in the registry first, so a
repeated publish of the same prefix finds its number again; nothing refers to the modulefile
before it is whole; the old default stays until the new one is in place.
"""

import contextlib
import os
import re
import secrets
import shutil
import stat
from pathlib import Path
from typing import Callable, Iterator

from .. import sharing
from ..errors import UsageError
from ..files import (
    canonical_json,
    entries,
    make_read_only,
    remove_tree,
    text_or_none,
    write_atomically,
)
from ..modulefile import default_text
from . import attestations, manifests
from .layout import DEFAULT_FILES, Home, Version, is_folder
from .registry import (
    MODULEFILE,
    PREFIX,
    SCHEMA,
    default_number,
    named_prefixes,
    read_registry,
    write_registry,
)

Say = Callable[[str], None]
# What a finished environment no longer needs of its build; scripts, logs, lock and our wheel stay.
SCAFFOLDING = ("wheelhouse", "build-tools", "runtime-build")


def print_nothing(_: str) -> None:
    """Ignore a message."""


def find_reserved(home: Home, identity: str) -> "Version | None":
    """Return the number that prefix *identity* is or was going to be published as."""
    found = [v for v in read_registry(home) if v.id == identity and not v.removed]
    # An edited registry may name others for it: the one that can be loaded is meant.
    return next((v for v in found if is_published(home, v)), found[0] if found else None)


def reserve(home: Home, identity: str, dialect: str) -> Version:
    """Return the number of a prefix, or reserve a new one. The lock must be held."""
    reserved = find_reserved(home, identity)
    if reserved:
        return reserved
    versions = read_registry(home)
    number = max([each.number for each in versions] + [last_number(home)]) + 1
    version = Version(number=number, id=identity, dialect=dialect)
    # Before the registry: lost later, it cannot give the number away again.
    home.make_folder(home.modulefiles)
    write_atomically(home.last_number_file, f"{number}\n")
    write_registry(home, (*versions, version))
    return version


def last_number(home: Home) -> int:
    """Return the highest number ever given, from all sources except the registry."""
    text = (text_or_none(home.last_number_file) or "").strip()
    kept = int(text) if re.fullmatch("[0-9]{1,9}", text) else 0
    names = (MODULEFILE.fullmatch(path.name) for path in entries(home.modulefiles))
    return max([kept, default_number(home) or 0, *(int(each.group(1)) for each in names if each)])


def publish(home: Home, version: Version, modulefile: str) -> Path:
    """Make the prefix read-only, record its files, write its modulefile; keep the default.

    Its bill of materials and its provenance too, where they were rendered with its build.
    """
    sharing.share_trees(home.group, home.prefix(version.id))
    make_read_only(home.prefix(version.id))
    manifests.record(home, version.id, "published")
    attestations.record(home, version.id)
    home.make_folder(home.modulefiles)
    path = home.modulefile(version)
    write_atomically(path, modulefile)
    show_root(home.modulefiles, path)
    return path


def tidy(build: Path) -> None:
    """Remove the parts of a build folder that are not needed after the proof."""
    for name in SCAFFOLDING:
        shutil.rmtree(str(build / name), ignore_errors=True)


def show_root(*paths: Path) -> None:
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
    """Replace the file that defines ``module load NAME``."""
    path = home.modulefiles / DEFAULT_FILES[version.dialect]
    text = default_text(home.name, version.number, version.dialect)
    if text_or_none(path) != text:
        write_atomically(path, text)
        show_root(path)
    for name in DEFAULT_FILES.values():
        # Of two sites with other module systems, say: there is one default.
        if name != path.name:
            unlink(home.modulefiles / name)


def unset_default(home: Home) -> None:
    """Take the default away; numbers can still be loaded by name."""
    for name in DEFAULT_FILES.values():
        unlink(home.modulefiles / name)


def unlink(path: Path) -> None:
    """Remove a file that may be gone."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def published(home: Home) -> "tuple[Version, ...]":
    """Return the numbers that can be loaded, oldest first."""
    return tuple(v for v in read_registry(home) if is_published(home, v))


def find_version(home: Home, number: "int | None") -> Version:
    """Return a published version; None: the default. Raises UsageError if it does not exist."""
    wanted = default_number(home) if number is None else number
    versions = published(home)
    for version in versions:
        if version.number == wanted:
            return version
    if not versions:
        raise UsageError(
            "environment.not-published",
            f"no environment {home.name!r} is published in {home.root}",
        )
    there = ", ".join(f"{home.name}/{v.number}" for v in versions)
    if wanted is None:
        raise UsageError(
            "environment.no-default",
            f"{home.name} has no default; give a number",
            f"published: {there}",
        )
    raise UsageError(
        "environment.unknown-number", f"{home.name}/{wanted} does not exist", f"published: {there}"
    )


def withdraw(home: Home, version: Version) -> None:
    """Withdraw a number: it cannot be loaded any more, and is not given again.

    Its prefix is left to ``remove_prefix``.
    """
    numbers = {each.number: each for each in read_registry(home)}
    numbers[version.number] = version._replace(removed=True)
    unlink(home.modulefile(version))
    for image in home.images(version.number):
        unlink(image)
    write_registry(home, tuple(numbers[number] for number in sorted(numbers)))


def mark(home: Home, identity: str) -> None:
    """Mark a build and its prefix as made by envbuild, before anything else of them exists."""
    home.make_folder(home.build(identity))
    write_atomically(home.mark(identity), canonical_json({"schema": SCHEMA, "build": identity}))


def is_ours(home: Home, identity: str) -> bool:
    """Return whether a build carries the mark; one of an earlier release has script and lock."""
    build = home.build(identity)
    names = (home.mark(identity).name,), ("build.sh", "lock.json")
    whole = any(all((build / name).is_file() for name in each) for each in names)
    return whole and is_folder(build)


def remove_prefix(home: Home, identity: str, say: Say = print_nothing) -> None:
    """Remove a prefix with its evidence and, at last, the build folder, whose mark goes last."""
    build = home.build(identity)
    clear(home, home.prefix(identity), say)
    clear(home, home.evidence(identity), say)
    if is_folder(build):
        if build.stat().st_mode & stat.S_IRWXU != stat.S_IRWXU:
            build.chmod(stat.S_IMODE(build.stat().st_mode) | stat.S_IRWXU)
        for path in entries(build):
            if path.name != home.mark(identity).name:
                try:
                    remove_tree(path)
                except PermissionError:
                    if home.group is None:
                        raise
    clear(home, build, say)


def clear(home: Home, path: Path, say: Say = print_nothing) -> None:
    """Remove a file or folder of an environment.

    In a shared root its path becomes free in any case: a prefix that only another member may remove
    is renamed to an unfinished build, which that member can remove like any other.
    """
    try:
        remove_tree(path)
    except PermissionError:
        if home.group is None or path.parent != home.folder:
            raise
        identity = secrets.token_hex(6)
        mark(home, identity)
        # In the same folder: only there may one rename what one may not write.
        path.rename(home.prefix(identity))
        say(
            f"{path} belongs to {sharing.owner_of(home.prefix(identity))}: kept as unfinished "
            f"build {identity}; that user or root can remove it: "
            f"envbuild remove {home.name} --unfinished"
        )


def is_of_another(home: Home, identity: str) -> bool:
    """Whether a build that is there was begun by another member of a shared root."""
    folders = [each for each in (home.prefix(identity), home.build(identity)) if is_folder(each)]
    return home.group is not None and any(each.stat().st_uid != os.geteuid() for each in folders)


def check_removable(home: Home, identities: "tuple[str, ...]") -> None:
    """Raise UsageError if this user may not remove some folder; nothing is removed yet.

    In a shared root only the folders of the environment are checked: others can be renamed.
    """
    folders = [home.folder, home.modulefiles]
    if home.group is None:
        folders += [folder for identity in identities for folder in folders_of(home, identity)]
    for folder in folders:
        if folder.is_dir() and not may_change(folder):
            raise UsageError(
                "environment.not-owner",
                f"you may not remove {folder}: it belongs to user {folder.stat().st_uid}",
                "nothing was removed; its owner or root can remove it",
            )


def folders_of(home: Home, identity: str) -> "Iterator[Path]":
    """Yield every folder of a prefix, of its evidence and of its build."""
    for folder in (home.prefix(identity), home.evidence(identity), home.build(identity)):
        for here, _, _ in os.walk(str(folder)):
            yield Path(here)


def may_change(folder: Path) -> bool:
    """Return whether this user may remove entries of a folder; the owner can change its mode."""
    return folder.stat().st_uid == os.geteuid() or os.access(str(folder), os.W_OK | os.X_OK)


def unpublished(home: Home, versions: "tuple[Version, ...] | None" = None) -> "tuple[str, ...]":
    """Return the ids of builds that carry our mark and that no number or modulefile refers to.

    *versions*: those that are published, where they were looked up already.
    """
    builds = {each.name[: -len(".build")] for each in home.folder.glob("*.build")}
    builds -= {version.id for version in (published(home) if versions is None else versions)}
    found = {each for each in builds if PREFIX.fullmatch(each) and is_ours(home, each)}
    return tuple(sorted(found - named(home))) if found else ()


def named(home: Home) -> "set[str]":
    """Return the ids of the prefixes that modulefiles of an environment name."""
    files = (path for path in entries(home.modulefiles) if path.is_file())
    return {identity for path in files for identity in named_prefixes(home, path)}


def strangers(home: Home) -> "tuple[str, ...]":
    """Return the folders of an environment that envbuild did not make; they are left alone."""
    numbered = {version.id for version in read_registry(home)} | set(unpublished(home))
    kinds = ("", ".build", ".evidence")
    ours = {f"{identity}{kind}" for identity in numbered for kind in kinds} | {home.scratch.name}
    return tuple(
        each.name for each in entries(home.folder) if each.is_dir() and each.name not in ours
    )
