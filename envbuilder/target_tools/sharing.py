"""Roots that a group shares: who is a member, and the modes by which members can work together.

The root's stamp declares it, and nothing else: a group bit of a file or folder says nothing. In
such a root folders are setgid, of the group and writable by it, whatever the umask, and others may
look; what is published nobody may write. Only what one owns can have its modes changed.
"""

import contextlib
import functools
import grp
import os
import pwd
import stat
from pathlib import Path
from typing import Any, Iterator

from . import files
from .errors import UsageError

STAMP = ".envbuild.json"
FOLDER_MODE = 0o2775


def group_number(name: str) -> int:
    """Return the number of a group, which may be given as one. Raises UsageError."""
    try:
        return int(name) if name.isdecimal() else grp.getgrnam(name).gr_gid
    except KeyError as error:
        raise UsageError(
            "root.unknown-group",
            f"there is no group {name!r} on this machine",
            "getent group lists the groups, groups lists yours",
        ) from error


def acts_in(group: int) -> bool:
    """Whether this process is one of a group's members."""
    return group == os.getegid() or group in os.getgroups()


def may_write(group: int) -> bool:
    """Return whether this process may write files that a group shares."""
    return os.geteuid() == 0 or acts_in(group)


@functools.lru_cache(maxsize=None)
def has_member(group: int, user: int) -> bool:
    """Whether a user is a member of a group, as the accounts of this machine have it."""
    try:
        account = pwd.getpwuid(user)
        return group in os.getgrouplist(account.pw_name, account.pw_gid)
    except (KeyError, OSError):
        return False


def user_name(number: int) -> str:
    """Return the name of a user; the number if there is no account on this machine."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def owner_of(path: Path) -> str:
    """Return the name of the owner of a file or folder."""
    return user_name(path.lstat().st_uid)


def declared_group(root: "Path | str") -> "int | None":
    """Return the group that shares a root, from its own stamp; None if it is not shared.

    Stamps in the folders above are not read: others may write there.
    """
    try:
        stamp, stranger = read_stamp(Path(root))
    except (OSError, ValueError):
        return None
    return stated_group(stamp) if stranger is None else None


def read_stamp(root: Path) -> "tuple[Any, str | None]":
    """Return the content of a root's stamp, and its writer if that user may not declare a group.

    Raises OSError, ValueError.
    """
    path = root / STAMP
    with files.open_regular(path, files.MAX_BYTES, links=False) as stream:
        writer = os.fstat(stream.fileno()).st_uid
        stamp = files.parse_json(files.read_opened(stream, path).decode("utf-8"))
    return stamp, None if may_share(root, writer, stated_group(stamp)) else user_name(writer)


def may_share(folder: Path, user: int, group: "int | None") -> bool:
    """Return whether a user may declare a folder as shared: its owner and root may.

    In a folder of root, members of the group may, if nobody else can write there and each of them
    can replace the files of the others anyway: in a sticky folder, such as /tmp, they cannot.
    *group*: None for one that this machine does not have. Raises OSError.
    """
    status = folder.stat()
    if user in (0, status.st_uid):
        return True
    other_group = group not in (None, status.st_gid) and status.st_mode & stat.S_IWGRP
    others = other_group or status.st_mode & (stat.S_IWOTH | stat.S_ISVTX)
    return status.st_uid == 0 and not others


def stated_group(stamp: object) -> "int | None":
    """Return the number of a stamp's group; None without one, or if this machine lacks it."""
    name = stamp.get("group") if isinstance(stamp, dict) else None
    with contextlib.suppress(UsageError):
        return group_number(name) if isinstance(name, str) else None
    return None


def misfit(folder: Path, group: int) -> "str | None":
    """Return how a folder's group or mode differs from that of a shared folder, or None."""
    status = folder.stat()
    if status.st_gid != group:
        return f"{folder} has group {status.st_gid}, not {group}"
    mode = stat.S_IMODE(status.st_mode)
    if mode & FOLDER_MODE != FOLDER_MODE or mode & stat.S_IWOTH:
        return f"{folder} has mode {mode:o}, not {FOLDER_MODE:o}"
    return None


def make_folder(folder: Path, group: "int | None") -> None:
    """Make a folder in a root and its parents there. *group*: shares them; None: not shared."""
    for path in files.make_folder(folder):
        if group is not None:
            share_folder(path, group)


def share_folder(folder: Path, group: int) -> None:
    """Make a folder setgid and writable by a group; others may read it."""
    if misfit(folder, group):
        os.chown(str(folder), -1, group)
        # After chown, which may take the setgid bit away.
        folder.chmod(FOLDER_MODE)


def share_trees(group: "int | None", *folders: Path) -> None:
    """Share this user's files in folders; do nothing without a group. Links are not changed.

    All users may read the files, and run those that their owner may run, whatever the umask was.
    """
    if group is None:
        return
    for top in folders:
        for here, _, names in os.walk(str(top)):
            for path in (Path(here), *(Path(here, name) for name in names)):
                share_one(path, group)


def share_one(path: Path, group: int) -> None:
    """Share one file or folder, if it exists and belongs to this user."""
    with contextlib.suppress(FileNotFoundError):
        status = path.lstat()
        if status.st_uid != os.geteuid() or stat.S_ISLNK(status.st_mode):
            return
        if stat.S_ISDIR(status.st_mode):
            share_folder(path, group)
            return
        mode = stat.S_IMODE(status.st_mode)
        wanted = mode | 0o664 | (0o011 if mode & stat.S_IXUSR else 0)
        if status.st_gid != group:
            os.chown(str(path), -1, group)
        if (status.st_gid, mode) != (group, wanted):
            path.chmod(wanted)


@contextlib.contextmanager
def readable(group: "int | None") -> "Iterator[None]":
    """Make new files readable by all within the block, whatever the umask; nothing without a group.

    Files that the group must write are changed separately; caches of the user must stay private.
    """
    if group is None:
        yield
        return
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)
