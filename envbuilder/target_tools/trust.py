"""Which files may choose what code runs: those that nobody else can have written.

A lock, a cached lock, kept bytecode and a kept wheel count only if the file and every folder above
it are writable by their owner alone, and that is this user or root. A sticky folder above, such as
/tmp, does no harm: in it others cannot replace what is not theirs. That a group may write declares
nothing about its members: a root's stamp does, for the members of the group that it names, and for
them alone, for the files of that root. Caches are never shared. See ``sharing``.
"""

import os
import stat
from pathlib import Path

from .sharing import acts_in, has_member


def distrust(path: "Path | str", group: "int | None" = None) -> "str | None":
    """Return why a file is not trusted; None if it is trusted or does not exist.

    *group*: the group that shares the root of the file; None for other files. Links on the path are
    checked themselves, and then their targets.
    """
    if group is not None and not acts_in(group):
        group = None
    absolute = os.path.abspath(str(path))  # noqa: PTH100 - links stay
    real = os.path.realpath(absolute)
    for each in dict.fromkeys([*above(absolute), *above(real)]):
        try:
            reason = fault(each, each not in (absolute, real), group)
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"cannot check {each}: {error.strerror}"
        if reason:
            return reason
    return None


def above(path: str) -> "list[str]":
    """Return a path and all folders above it, the topmost first."""
    found = [path]
    while found[-1] != os.path.dirname(found[-1]):  # noqa: PTH120
        found.append(os.path.dirname(found[-1]))  # noqa: PTH120
    return found[::-1]


def fault(path: str, is_above: bool, group: "int | None") -> "str | None":
    """Return who else may write a file or folder, or its contents; None: nobody.

    *group*: its members are trusted; None: no group is.
    """
    status = os.lstat(path)
    if not stat.S_ISLNK(status.st_mode) and not (is_above and status.st_mode & stat.S_ISVTX):
        return status_fault(status, path, group)
    return owner_fault(status, path, group)


def owner_fault(status: os.stat_result, path: str, group: "int | None" = None) -> "str | None":
    """Return which other user owns a file; None if its owner is this user, root or a member."""
    own = status.st_uid in (0, os.geteuid())
    if not own and (group is None or not has_member(group, status.st_uid)):
        return f"{path} belongs to user {status.st_uid}"
    return None


def status_fault(status: os.stat_result, path: str, group: "int | None" = None) -> "str | None":
    """Return who else may write the file with this status, or None."""
    reason = owner_fault(status, path, group)
    if reason:
        return reason
    if status.st_mode & stat.S_IWOTH:
        return f"everybody may write {path}"
    if status.st_mode & stat.S_IWGRP and status.st_gid != group:
        return f"group {status.st_gid} may write {path}"
    return None
