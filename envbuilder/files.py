"""Files and folders of the tool's own; what a target needs too is there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from .target_tools.files import make_read_only, remove_tree, write_atomically
from .target_tools.trust import distrust

__all__ = ["code_state", "make_read_only", "read_own", "remove_tree", "scratch", "write_atomically"]


def read_own(path: Path) -> bytes | None:
    """Return what a file holds that nobody else can have written; None for any other, or none.

    Nobody else can put another in its place in between, either: see ``target_tools/trust``.
    """
    try:
        return path.read_bytes() if path.is_file() and distrust(path) is None else None
    except OSError:
        return None


def code_state(*folders: Path) -> list[tuple[str, int, int]]:
    """Return path, size and time of all Python below some folders: of other code it is another."""
    found = []
    for folder in folders:
        for here, _, names in os.walk(folder):
            paths = (f"{here}/{name}" for name in names if name.endswith(".py"))
            found += [(path, os.stat(path)) for path in paths]  # noqa: PTH116 - hundreds of them
    return sorted((path, stat.st_size, stat.st_mtime_ns) for path, stat in found)


@contextlib.contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Make *folder* anew for a while, and remove it at the end."""
    remove_tree(folder)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        remove_tree(folder)
