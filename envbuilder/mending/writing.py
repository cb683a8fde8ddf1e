"""Writing one file so that it is never there in part, and is what it has to be."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ..model.mending import Wanted
from ..target_tools.files import CHUNK, is_below, open_regular
from .contents import Member, Readable, UnfitError

_ALGORITHMS = ("sha256", "sha384", "sha512")


def put(wanted: Wanted, member: Member | None, prefix: Path, *, dry_run: bool) -> None:
    """Put a file in its place, checked before and after; *member* None: only its mode or link.

    *dry_run*: all but that. A file that somebody has open stays as it is for him. Raises
    UnfitError, and OSError where it may not be written.
    """
    path = Path(wanted.path)
    _check_place(path, prefix)
    link = wanted.link if member is None else member.link
    if dry_run:
        if member is not None and link is None:
            with member.open() as source:
                _check(_copied(source, None, wanted.digest), wanted)
        return
    with _writable(path.parent):
        if link is not None:
            _replace_by_link(path, link)
        elif member is None:
            path.chmod(wanted.mode or 0)
        else:
            _replace(path, wanted, member)


def digest_of(path: str | Path, like: str) -> str | None:
    """Return the hash of a file, written as in RECORD and of the kind of *like*; None: no file."""
    try:
        with open_regular(path) as stream:
            return _copied(stream, None, like)
    except OSError:
        return None


def _check_place(path: Path, prefix: Path) -> None:
    """Raise UnfitError for a file that does not lie in the prefix, or whose place is taken."""
    above = next(each for each in path.parents if os.path.lexists(each))
    if not is_below(os.path.realpath(above), os.path.realpath(prefix)):
        raise UnfitError("it does not lie in the environment")
    if not above.is_dir():
        raise UnfitError(f"{above} is no folder")
    if path.is_dir() and not path.is_symlink():
        raise UnfitError("a folder is in its place")


def _replace(path: Path, wanted: Wanted, member: Member) -> None:
    number, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    try:
        with os.fdopen(number, "wb") as stream, member.open() as source:
            _check(_copied(source, stream, wanted.digest), wanted)
            os.fchmod(stream.fileno(), _mode(wanted, member))
            stream.flush()
            os.fsync(stream.fileno())
        if wanted.mtime is not None:
            os.utime(name, ns=(wanted.mtime, wanted.mtime))
        # What was written, not what was meant to be: a disk may be full or broken.
        _check(digest_of(name, wanted.digest), wanted)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def _replace_by_link(path: Path, link: str) -> None:
    with tempfile.TemporaryDirectory(prefix=".link.", dir=path.parent) as folder:
        made = Path(folder, "link")
        made.symlink_to(link)
        made.replace(path)


def _mode(wanted: Wanted, member: Member) -> int:
    """Return the permissions of a file: as recorded, as packed, or as its installer left others."""
    if wanted.mode is not None:
        return wanted.mode
    if member.mode is not None:
        return member.mode
    try:
        record = wanted.package.record if wanted.package else None
        like = stat.S_IMODE(record.stat().st_mode) & 0o666 if record else 0o644
    except OSError:
        like = 0o644
    return like | (like & 0o444) >> 2 if member.executable else like


def _copied(source: Readable, target: IO[bytes] | None, like: str) -> str:
    """Copy a file, or only read it; return its hash."""
    algorithm = like.partition("=")[0]
    whole = hashlib.new(algorithm if algorithm in _ALGORITHMS else "sha256")
    while chunk := source.read(CHUNK):
        whole.update(chunk)
        if target is not None:
            target.write(chunk)
    return f"{whole.name}={base64.urlsafe_b64encode(whole.digest()).decode().rstrip('=')}"


def _check(found: str | None, wanted: Wanted) -> None:
    if wanted.digest and found != wanted.digest.rstrip("="):
        raise UnfitError("what its package holds has another hash than was recorded")


@contextlib.contextmanager
def _writable(folder: Path) -> Iterator[None]:
    """Make a folder where it is missing, and writable for a while where it is read-only.

    A published prefix is read-only. Folders that are made get the permissions of the one above.
    """
    missing = [each for each in (folder, *folder.parents) if not os.path.lexists(each)]
    above = folder if not missing else missing[-1].parent
    mode = stat.S_IMODE(above.stat().st_mode)
    if not mode & stat.S_IWUSR:
        above.chmod(mode | stat.S_IWUSR)
    try:
        for each in reversed(missing):
            each.mkdir()
        yield
    finally:
        for each in missing:
            if each.is_dir():
                each.chmod(mode)
        if not mode & stat.S_IWUSR:
            above.chmod(mode)
