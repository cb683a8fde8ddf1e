"""Writing files so that a reader sees the old text or the new one, never half of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path


def write_atomically(path: Path, text: str, mode: int | None = None) -> None:
    """Replace *path* by *text* at once; on any failure the old file stays and no other is left.

    *mode*: the file's permissions, None: those that the umask leaves. Raises OSError, which names
    *path* also where the system's own does not.
    """
    mask = os.umask(0)
    os.umask(mask)
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            # mkstemp makes private files; others at the site must be able to read ours.
            os.fchmod(file.fileno(), 0o666 & ~mask if mode is None else mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise


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


def make_read_only(folder: Path) -> None:
    """Take the write permission from everything below *folder* and from itself."""
    for here, _, names in os.walk(folder, topdown=False):
        for name in names:
            _drop_write(Path(here, name))
        _drop_write(Path(here))


def _drop_write(path: Path) -> None:
    if not path.is_symlink():
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)


@contextlib.contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Make *folder* anew for a while, and remove it at the end."""
    remove_tree(folder)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        remove_tree(folder)


def remove_tree(folder: Path) -> None:
    """Remove *folder*, read-only parts too; nothing there is fine."""
    if not folder.is_dir():
        return
    for here, _, _ in os.walk(folder):
        Path(here).chmod(0o700)
    shutil.rmtree(folder)
