"""A bundle's archive, read without unpacking anything: its files, their hashes, its few texts.

Whoever sends an archive chooses all that it says. So a member is a file or a folder below the one
folder of the bundle, each is there once, and how much is read is bounded by the archive's own size.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ..errors import DriftError, UsageError
from ..target_tools.bundle import TEXT_BYTES, TEXTS, BundleContents, is_inside
from ..target_tools.files import CHUNK
from ..text import shown

# Wheels are packed already, scripts shrink to a tenth: what unpacks to more than so many times its
# size, and more than so much, is no bundle.
RATIO = 20
FREE_BYTES = 64 * 2**20
# A bundle has some hundred files; those of tools and runtime come to no more.
MOST_MEMBERS = 100_000
# The longest header that is read in one go: names and the like.
HEADER_BYTES = 2**20
_KINDS = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}


def read_archive(path: Path, packed: IO[bytes]) -> BundleContents:
    """Return what lies in the archive of a bundle, an open file. Nothing is written.

    Raises UsageError for a file that is no archive of that kind, DriftError for one that no
    ``create --bundle`` has written, OSError.
    """
    if packed.read(2) != b"\x1f\x8b":
        raise UsageError(
            "bundle.not-a-bundle",
            f"{path} is not a bundle: it must be a folder or a .tar.gz",
            "create one with envbuild create --bundle",
        )
    packed.seek(0)
    size = os.fstat(packed.fileno()).st_size
    try:
        with gzip.GzipFile(fileobj=packed) as unpacked:
            return _read(_Bounded(unpacked, FREE_BYTES + RATIO * size))
    except _NoBundleError as error:
        raise _refusal(path, str(error)) from error
    except (EOFError, OSError, ValueError, OverflowError, zlib.error, tarfile.TarError) as error:
        raise _refusal(path, f"the archive is damaged: {error}") from error


class _NoBundleError(Exception):
    """An archive holds what no bundle holds."""


def _refusal(path: Path, reason: str) -> DriftError:
    return DriftError(
        "bundle.archive-damaged",
        f"{path} is not a valid bundle: {reason}",
        "nothing was unpacked; copy it again and compare its sha256 with the original",
    )


class _Bounded:
    """A stream for tarfile, which goes one byte back at most: no more is read than is allowed."""

    def __init__(self, stream: gzip.GzipFile, allowed: int) -> None:
        self._stream = stream
        self._allowed = allowed
        self._position = 0
        self._last = b""
        self._held = b""

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> None:
        if position == self._position - 1 and not self._held:
            self._held, self._position = self._last, position
        elif position < self._position:
            raise _NoBundleError("two members overlap")
        while self._position < position:
            if not self.read(min(CHUNK, position - self._position)):
                raise _NoBundleError("the archive is cut off")

    def read(self, size: int) -> bytes:
        if not 0 <= size <= max(CHUNK, HEADER_BYTES):
            raise _NoBundleError(f"a header has {size} bytes")
        held, self._held = self._held[:size], self._held[size:]
        data = held + self._stream.read(size - len(held))
        self._position += len(data)
        self._last = data[-1:] or self._last
        if self._position > self._allowed:
            raise _NoBundleError(f"the archive unpacks to more than {self._allowed / 1e6:.0f} MB")
        return data


def _read(stream: _Bounded) -> BundleContents:
    files: dict[str, str | None] = {}
    texts: dict[str, bytes] = {}
    folders: set[str] = set()
    tops: set[str] = set()
    # Its own mode for streams would collect a header of any length before anybody could say no.
    with tarfile.TarFile(fileobj=stream, mode="r") as archive:  # type: ignore[arg-type]
        for number, member in enumerate(archive, start=1):
            if number > MOST_MEMBERS:
                raise _NoBundleError(f"the archive has more than {MOST_MEMBERS} members")
            name = _name(member, tops)
            if name in files or name in folders:
                raise _NoBundleError(f"{shown(member.name)} is in the archive twice")
            if member.isdir():
                folders.add(name)
                continue
            if name in TEXTS and member.size > TEXT_BYTES:
                raise _NoBundleError(f"{name} has {member.size} bytes")
            whole = hashlib.sha256()
            for chunk in _chunks(stream, member):
                whole.update(chunk)
                if name in TEXTS:
                    texts[name] = texts.get(name, b"") + chunk
            files[name] = whole.hexdigest()
        _check_end(stream)
    return BundleContents(files, texts)


def _name(member: tarfile.TarInfo, tops: set[str]) -> str:
    """Return the path of a member in its bundle."""
    top, slash, name = member.name.partition("/")
    called = shown(member.name)
    kind = _KINDS.get(member.type)
    if kind:
        raise _NoBundleError(f"{called} is {kind}; a bundle contains only files and folders")
    plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE)
    if not plain or member.sparse is not None or member.size < 0:
        raise _NoBundleError(f"{called} is neither a file nor a folder")
    if not is_inside(member.name):
        raise _NoBundleError(f"{called} is outside of the folder of the bundle")
    tops.add(top)
    # The folder itself need not be a member: create writes none.
    if len(tops) > 1 or not (slash or member.isdir()):
        raise _NoBundleError(f"{called} is not in the single folder of the bundle")
    return name


def _chunks(stream: _Bounded, member: tarfile.TarInfo) -> Iterator[bytes]:
    stream.seek(member.offset_data)
    rest = member.size
    while rest:
        chunk = stream.read(min(CHUNK, rest))
        if not chunk:
            raise _NoBundleError(f"the archive ends within {shown(member.name)}")
        rest -= len(chunk)
        yield chunk


def _check_end(stream: _Bounded) -> None:
    """Read on to the end of the file, where gzip keeps its checksum: nothing may follow."""
    while chunk := stream.read(CHUNK):
        if chunk.strip(b"\0"):
            raise _NoBundleError("there is data after the end of the archive")
