"""Files and folders of the tool's own; what a target needs too is there."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn

from .errors import DriftError
from .target_tools.files import (
    CHUNK,
    LARGE_BYTES,
    make_read_only,
    open_regular,
    read_regular,
    remove_tree,
    write_atomically,
)
from .target_tools.trust import distrust, status_fault

__all__ = [
    "clean_on_failure",
    "code_state",
    "make_read_only",
    "open_unchanged",
    "read_own",
    "remove_tree",
    "scratch",
    "write_atomically",
]

# Seconds. Two writes within a tick of the file system's clock, 10 ms at most, have one time.
_RECENT = 2.0


def read_own(path: Path) -> bytes | None:
    """Return what a file holds that nobody else can have written; None for any other, or none.

    Nobody else can put another in its place in between, either: see ``target_tools/trust``.
    """
    try:
        content: bytes | None = read_regular(path, LARGE_BYTES) if distrust(path) is None else None
    except OSError:
        return None
    return content


@contextlib.contextmanager
def open_unchanged(path: Path) -> Iterator[IO[bytes]]:
    """Open a file whose bytes are checked first and used afterwards: both are the same bytes.

    The file is opened once, so another file under its name has no effect. If others can write into
    the file itself, or somebody has just done so, a copy is opened that has no name. Raises OSError
    for what is no regular file, DriftError if its owner changed it before the block ended.
    """
    with contextlib.ExitStack() as opened:
        stream: IO[bytes] = opened.enter_context(open_regular(path))
        begun = os.fstat(stream.fileno())
        private = status_fault(begun, str(path)) is None
        if not private or time.time() - begun.st_ctime < _RECENT:
            copy = opened.enter_context(tempfile.TemporaryFile(prefix="envbuild-"))
            _copy(stream, copy, begun.st_size)
            yield copy
            return
        yield stream
        ended = os.fstat(stream.fileno())
        if _version(begun) != _version(ended):
            raise DriftError(
                "file.changed-while-read",
                f"{path} changed while it was being read",
                "the file was not used; run again when no process writes to it",
            )


def _copy(source: IO[bytes], copy: IO[bytes], size: int) -> None:
    """Copy as many bytes as a file has now, however it grows. Raises OSError."""
    try:
        while chunk := source.read(min(CHUNK, size)):
            copy.write(chunk)
            size -= len(chunk)
        copy.seek(0)
    except OSError as error:
        error.filename = error.filename or tempfile.gettempdir()
        raise


def _version(status: os.stat_result) -> tuple[int, int, int]:
    """Return what another content of the same file changes: of the times one that nobody sets."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def code_state(*folders: Path) -> list[tuple[str, int, int]]:
    """Return path, size and time of all Python files below some folders.

    Raises OSError for a folder that does not exist: its code would never be compared.
    """
    states = []
    for folder in folders:
        for parent, _, names in os.walk(folder, onerror=_raise):
            for name in names:
                if name.endswith(".py"):
                    path = f"{parent}/{name}"
                    status = os.stat(path)  # noqa: PTH116 - hundreds of files
                    states.append((path, status.st_size, status.st_mtime_ns))
    return sorted(states)


def _raise(error: OSError) -> NoReturn:
    raise error


@contextlib.contextmanager
def clean_on_failure(folder: Path) -> Iterator[None]:
    """If the block fails, empty a folder that was empty, and remove it if it did not exist.

    A folder that holds files already is left alone: its new files may be somebody else's.
    """
    missing = [path for path in (*reversed(folder.parents), folder) if not path.exists()]
    is_empty = bool(missing) or not any(folder.iterdir())
    try:
        yield
    except BaseException:
        for path in missing[:1] or (folder.iterdir() if is_empty else ()):
            remove_tree(path)
        raise


@contextlib.contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Make *folder* anew for a while, and remove it at the end."""
    remove_tree(folder)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        remove_tree(folder)
