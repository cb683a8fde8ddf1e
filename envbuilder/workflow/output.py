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
    removed, unless a process of it still writes there.
    """
    start = f".envbuild-{plan.recipe}-{plan.arch}."
    with locks.hold(output / f"{start}lock", say=say):
        for each in output.glob(f"{start}*"):
            if each.is_dir() and not each.is_symlink():
                try:
                    remove_tree(each)
                except OSError as error:
                    say(f"cannot remove {each}, which a killed command left: {error.strerror}")
        with tempfile.TemporaryDirectory(prefix=start, dir=output) as folder:
            yield Path(folder)


def _check_rights(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(
            "output.not-writable",
            f"you have no permission to write to the folder {_quoted(folder)}",
            "use another folder",
        )


def _quoted(path: Path) -> str:
    return f"'{shown(str(path), LONG)}'"
