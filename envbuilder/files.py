"""Files and folders of the tool's own; what a target needs too is there."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from .target_tools.files import make_read_only, remove_tree, write_atomically

__all__ = ["make_read_only", "read_own", "remove_tree", "scratch", "write_atomically"]


def read_own(path: Path) -> bytes | None:
    """Return what a file holds that only this user can have written; None for any other, or none.

    What is read is what was looked at: not a file that takes its place in between.
    """
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            own = status.st_uid == os.geteuid() and not status.st_mode & 0o022
            return file.read() if own and stat.S_ISREG(status.st_mode) else None
    except OSError:
        return None


@contextlib.contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Make *folder* anew for a while, and remove it at the end."""
    remove_tree(folder)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        remove_tree(folder)
