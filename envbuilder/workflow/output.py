"""Where --output leads: checked before the work, whose result would else be lost."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import UsageError
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
            "output.no-such-folder", f"no such folder: {_quoted(folder)}", "make it first"
        )
    if path.is_dir():
        raise UsageError("output.folder", f"{_quoted(path)} is a folder", "--output names a file")
    if path.exists() and not path.is_file():
        raise UsageError(
            "output.no-regular-file", f"{_quoted(path)} is no regular file", "--output names a file"
        )
    _check_rights(folder)
    return path


def output_folder(output: str | Path, context: Context) -> Path:
    """Return the folder that a verb writes, which need not be there; UsageError as above."""
    folder = context.path(output)
    there = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
    if not there.is_dir():
        raise UsageError(
            "output.no-folder", f"{_quoted(there)} is no folder", "--output names a folder"
        )
    _check_rights(there)
    return folder


def _check_rights(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(
            "output.you-not-write",
            f"you may not write to the folder {_quoted(folder)}",
            "name another one",
        )


def _quoted(path: Path) -> str:
    return f"'{shown(str(path), LONG)}'"
