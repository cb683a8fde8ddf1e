"""Where --output leads: checked before the work, whose result would else be lost."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import UsageError
from ..files import remove_tree
from ..model.plan import Plan
from ..target_tools.root import locks
from ..text import LONG, shown
from .context import Context


def output_path(output: str | Path | None, context: Context) -> Path | None:
    """Return the file that a verb writes, None for standard output.

    Raises UsageError where there is no folder for it, where this user may not write into it, and
    for what is there and no file: it would be replaced.
    """
    if output is None:
        return None
    path = context.path(output)
    folder = path.parent
    if not folder.is_dir():
        raise UsageError(
            "output.folder-missing", f"no such folder: {_quoted(folder)}", "create it first"
        )
    if path.is_dir():
        raise UsageError(
            "output.not-a-file", f"{_quoted(path)} is a folder", "use --output with a file"
        )
    if path.exists() and not path.is_file():
        raise UsageError(
            "output.not-a-file",
            f"{_quoted(path)} is not a regular file",
            "use --output with a file",
        )
    _check_rights(folder)
    return path


def output_folder(output: str | Path, context: Context) -> Path:
    """Return the folder that a verb writes, which need not be there; UsageError as above."""
    folder = context.path(output)
    there = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
    if not there.is_dir():
        raise UsageError(
            "output.not-a-folder", f"{_quoted(there)} is not a folder", "use --output with a folder"
        )
    _check_rights(there)
    return folder


@contextlib.contextmanager
def unfinished_in(output: Path, plan: Plan, say: Callable[[str], None]) -> Iterator[Path]:
    """Make a hidden folder for an unfinished image or bundle, and remove it at the end.

    Two commands for the same recipe and architecture take turns. What a killed one has left is
    removed, at the end if a process of it still writes there at the beginning.
    """
    start = f".envbuild-{plan.recipe}-{plan.arch}."
    with (
        locks.hold(output / f"{start}lock", say=say),
        _removing(output, start, say),
        tempfile.TemporaryDirectory(prefix=start, dir=output) as folder,
    ):
        yield Path(folder)


@contextlib.contextmanager
def _removing(output: Path, start: str, say: Callable[[str], None]) -> Iterator[None]:
    """Remove the folders that killed commands left: before the block, or else after it."""
    folders = [
        folder
        for folder in output.glob(f"{start}*")
        if folder.is_dir() and not folder.is_symlink() and _fault(folder)
    ]
    try:
        yield
    finally:
        for folder in folders:
            if fault := _fault(folder):
                say(f"cannot remove {folder}, which a killed command left: {fault}")


def _fault(folder: Path) -> str | None:
    """Remove a folder; return why that failed, None if it is gone."""
    try:
        remove_tree(folder)
    except OSError as error:
        return error.strerror
    return None


def _check_rights(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(
            "output.not-writable",
            f"you have no permission to write to the folder {_quoted(folder)}",
            "use another folder",
        )


def _quoted(path: Path) -> str:
    return f"'{shown(str(path), LONG)}'"
