"""Which files may choose what code runs: those that nobody else can have written.

A lock, a cached lock, kept bytecode and a kept wheel count only if the file and every folder above
it are writable by their owner alone, and that is this user or root. A sticky folder above, such as
/tmp, does no harm: in it others cannot replace what is not theirs. That a group may write declares
nothing about its members.
"""

import os
import stat


def distrust(path):
    """Return why a file does not count, None if it does or is not there.

    Links on the way are looked at as what they are, and then what they lead to.
    """
    absolute = os.path.abspath(str(path))  # noqa: PTH100 - links stay
    real = os.path.realpath(absolute)
    for each in dict.fromkeys([*above(absolute), *above(real)]):
        try:
            reason = fault(each, is_above=each not in (absolute, real))
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"{each} cannot be looked at: {error.strerror}"
        if reason:
            return reason
    return None


def above(path):
    """Return a path and all folders above it, the topmost first."""
    found = [path]
    while found[-1] != os.path.dirname(found[-1]):  # noqa: PTH120
        found.append(os.path.dirname(found[-1]))  # noqa: PTH120
    return found[::-1]


def fault(path, is_above):
    """Return who else may write a file or folder, or what is in it; None: nobody."""
    status = os.lstat(path)
    if status.st_uid not in (0, os.geteuid()):
        return f"{path} belongs to user {status.st_uid}"
    if stat.S_ISLNK(status.st_mode) or (is_above and status.st_mode & stat.S_ISVTX):
        return None
    if status.st_mode & stat.S_IWOTH:
        return f"everybody may write {path}"
    if status.st_mode & stat.S_IWGRP:
        return f"group {status.st_gid} may write {path}"
    return None
