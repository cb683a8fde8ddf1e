"""Opening a root, and an environment in it, to read or to write there.

What lies where is in ``home``, the stamp of a root in ``stamp``, the numbers of an environment in
``registry``.
"""

import errno
import os
from pathlib import Path

from .. import sharing
from ..errors import UsageError
from ..proving.binding import ROOT_RUNS, record_earlier
from ..sharing import STAMP
from .layout import Home
from .registry import write_registry
from .stamp import Root, find_root, make_root, repair

# What a root's path must not hold, and what would come of it in an environment there.
UNSAFE = {
    ";": "ld.so and CMake split lists of folders at it",
    "$": "the activate script of a virtualenv and the first lines of its programs run it",
    "`": "the activate script of a virtualenv and the first lines of its programs run it",
    '"': "it ends a quoted path in the scripts of a virtualenv",
    "\\": "the scripts of a virtualenv drop it",
}


def check_root_path(path: Path) -> None:
    """Raise UsageError if the path of a root contains characters that break scripts."""
    for character in str(path):
        if character in UNSAFE:
            raise UsageError(
                "root.unsafe-path",
                f"the path of the root {path} contains {character!r}: {UNSAFE[character]}",
                "use --root with a path without this character",
            )


def is_root(path: Path) -> bool:
    """Whether there is a root."""
    return find_root(path) is not None


def read_root(path: Path) -> Root:
    """Open a root that must exist. Raises UsageError if it does not or is not a root."""
    found = find_root(path)
    if found is None:
        raise UsageError(
            "root.missing",
            f"there is no root at {path}",
            "create one with envbuild create, or use another one with --root DIR",
        )
    return found


def open_root(
    path: Path, site: str, arch: str, shared: "str | None" = None, others: bool = False
) -> Root:
    """Open the root for *site* and *arch* to write in it, making and stamping it if it is new.

    *shared*: the group that a new one is shared with, and that one that is there must be. *others*:
    it may be another site's.

    Raises UsageError when it belongs to another site, architecture or group, or when its path
    cannot be in scripts, OSError when it cannot be written.
    """
    check_root_path(path)
    found = find_root(path)
    if found is None:
        if path.exists() and not path.is_dir():
            raise UsageError(
                "root.not-a-folder",
                f"{path} is a file, not a folder",
                "use --root with a new or an empty folder",
            )
        if path.is_dir() and any(path.iterdir()):
            raise UsageError(
                "root.not-empty",
                f"{path} is not empty and is not a root of envbuild",
                "use --root with a new or an empty folder",
            )
        found = Root(path, site, arch, shared)
    if found.arch != arch:
        raise UsageError(
            "root.other-architecture",
            f"the root {path} is for {found.arch}, not for {arch}",
            "use another --root for each architecture",
        )
    if found.site != site and not others:
        raise UsageError(
            "root.other-site",
            f"the root {path} belongs to site {found.site}, not to {site}",
            f"use --site {found.site}, or another --root",
        )
    check_same_group(found, shared)
    is_new = not (path / STAMP).exists()
    if is_new:
        make_root(found)
    check_writable(found, is_new)
    sharing.make_folder(path / "modulefiles", sharing.declared_group(path))
    return found


def check_same_group(root: Root, shared: "str | None") -> None:
    """Raise UsageError if a root is not shared with the group that was asked for."""
    if shared in (None, root.shared):
        return
    said = f"shared with group {root.shared}" if root.shared else "not shared with any group"
    raise UsageError(
        "root.other-group",
        f"the root {root.path} is {said}",
        f"a root is shared when it is created; use another --root with --shared {shared}",
    )


def check_writable(root: Root, is_new: bool = False) -> None:
    """Raise UsageError if this user is not a member of a shared root, or if its modes do not fit.

    Every verb that changes something calls it first. A root that is not shared has only its modes.
    The first call records the evidence of earlier releases; *is_new*: there is none. Raises OSError
    if the file system is read-only.
    """
    if os.statvfs(str(root.path)).f_flag & os.ST_RDONLY:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(root.path))
    if root.shared is None:
        record_earlier(root.path, ROOT_RUNS, is_new)
        return
    if not sharing.may_write(sharing.group_number(root.shared)):
        raise UsageError(
            "root.not-group-member",
            f"the root {root.path} is shared with group {root.shared}; you are not a member",
            "nothing was changed; you can load, list and show its environments",
            "after you become a member, log in again",
        )
    found = misfits(root)
    if found:
        folder = found[0][0]
        raise UsageError(
            "root.wrong-group-permissions",
            f"the root is shared with group {root.shared}, but {found[0][1]}",
            repair(folder, root.shared),
        )
    record_earlier(root.path, ROOT_RUNS, is_new, mode=0o644)


def misfits(root: Root, *homes: Home) -> "list[tuple[Path, str]]":
    """Return the folders of a root and of environments that do not fit the stamp, each with why.

    Nothing for one that is not shared. A group without a number here fits nowhere.
    """
    if root.shared is None:
        return []
    folders = [root.path, root.path / "modulefiles"]
    folders += [each for home in homes for each in (home.folder, home.modulefiles)]
    try:
        group = sharing.group_number(root.shared)
    except UsageError as error:
        return [(root.path, str(error))]
    found = [(each, sharing.misfit(each, group)) for each in folders if each.is_dir()]
    return [(folder, why) for folder, why in found if why]


def open_home(root: Root, name: str) -> Home:
    """Return the places of an environment, made where they are new.

    The registry is written at once, so that a build that fails is listed and can be removed.
    """
    home = root.home(name)
    for folder, why in misfits(root, home):
        raise UsageError(
            "root.wrong-group-permissions",
            f"the root is shared with group {root.shared}, but {why}",
            repair(folder, root.shared),
        )
    home.make_folder(home.folder)
    if not home.registry_file.exists():
        write_registry(home, ())
    return home
