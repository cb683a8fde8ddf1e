"""What packages hold, to be found by hash: wheels, and unpacked conda packages."""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import stat
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Protocol

from ..target_tools.conda_packages import originals
from ..target_tools.distributions import LARGEST_RECORD, parse_record
from ..target_tools.files import open_regular
from ..target_tools.relocate import CannotError, in_binary, in_text
from ..text import shown

# What zipfile raises for an archive that is none, whatever it is that is wrong with it.
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError)
_NO_FILE = "{} has no file of the hash that was recorded"


class Readable(Protocol):
    """Of a file, what is asked of it."""

    def read(self, size: int, /) -> bytes: ...


class UnfitError(Exception):
    """Why a file cannot be had from where it was looked for; its text is for a user."""


@dataclass(frozen=True)
class Member:
    """A file of a package. ``link``: where it leads, for one that is a link.

    ``mode``: as the package has it; None where its installer decides, but for ``executable``.
    ``source``: the package's file or folder, for a message.
    """

    open: Callable[[], AbstractContextManager[Readable]]
    source: str
    executable: bool = False
    mode: int | None = None
    link: str | None = None


class Wheel:
    """A wheel's file. Raises UnfitError for one that is none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._archive = zipfile.ZipFile(path)
            self._members = self._by_digest()
        except (OSError, ValueError, *_DAMAGED) as error:
            raise UnfitError(f"{path.name} is no wheel that can be read: {error}") from error

    def _by_digest(self) -> Mapping[str, Sequence[str]]:
        """Return what lies in it under each hash, as its RECORD says; that is checked when read."""
        names = [each for each in self._archive.namelist() if each.endswith(".dist-info/RECORD")]
        found: dict[str, list[str]] = defaultdict(list)
        for name in names:
            with self._archive.open(name) as stream:
                text = stream.read(LARGEST_RECORD).decode("utf-8", "surrogateescape")
            for path, (digest, _) in parse_record(text).items():
                found[digest.rstrip("=")].append(path)
        return found

    def find(self, path: str, digest: str) -> Member:
        """Return a file of that hash, of several the one that is named most alike."""
        names = self._members.get(digest.rstrip("="), ())
        there = set(self._archive.namelist())
        name = max((n for n in names if n in there), key=lambda n: _alike(n, path), default=None)
        if name is None:
            raise UnfitError(_NO_FILE.format(self._path.name))
        info = self._archive.getinfo(name)
        return Member(
            lambda: self._reading(info),
            self._path.name,
            executable=bool(info.external_attr >> 16 & 0o111),
        )

    @contextmanager
    def _reading(self, info: zipfile.ZipInfo) -> Iterator[_Reader]:
        """Give a file of it. Raises UnfitError where it turns out to be damaged."""
        try:
            stream = self._archive.open(info)
        except (OSError, ValueError, *_DAMAGED) as error:
            raise UnfitError(f"{self._path.name} is damaged: {error}") from error
        with stream:
            yield _Reader(stream, self._path.name)


class _Reader:
    """A file of a wheel, which may turn out to be damaged wherever it is read: UnfitError."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream, self._name = stream, name

    def read(self, size: int) -> bytes:
        try:
            return self._stream.read(size)
        except (OSError, ValueError, *_DAMAGED) as error:
            raise UnfitError(f"{self._name} is damaged: {error}") from error


def _alike(one: str, other: str) -> int:
    """Return how many of the last parts of two paths are the same."""
    pairs = zip(reversed(one.split("/")), reversed(other.split("/")), strict=False)
    number = 0
    for a, b in pairs:
        if a != b:
            break
        number += 1
    return number


@dataclass(frozen=True)
class CondaFile:
    """A file as conda's record has it: what it is in the package, and in the prefix.

    ``sha256``: of the package's. ``inside``: of the one in the prefix, where the record says so.
    ``placeholder``: what the prefix takes the place of; ``binary``: in a file that is no text.
    """

    name: str
    sha256: str | None
    inside: str | None
    placeholder: str | None
    binary: bool
    link: bool

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> CondaFile:
        """Return what an entry of paths_data says. Raises UnfitError for what is not unpacked."""
        kind = entry.get("path_type")
        if kind not in ("hardlink", "softlink"):
            raise UnfitError(f"its installer wrote it ({shown(str(kind))}), no package holds it")
        texts = [entry.get(key) for key in ("sha256", "sha256_in_prefix", "prefix_placeholder")]
        sha256, inside, placeholder = (t if isinstance(t, str) and t else None for t in texts)
        mode = entry.get("file_mode") == "binary"
        return cls(entry["_path"], sha256, inside, placeholder, mode, kind == "softlink")


def unpacked_file(folder: Path, file: CondaFile, prefix: Path) -> Member:
    """Return a file of an unpacked conda package as it is in a prefix. Raises UnfitError."""
    for path in (folder / each for each in originals(file.name)):
        if file.link and path.is_symlink():
            return Member(io.BytesIO, str(folder), link=os.readlink(path))  # noqa: PTH115 - text
        if not file.link and path.is_file():
            mode = stat.S_IMODE(path.stat().st_mode)
            if file.placeholder is None:
                return Member(partial(open_regular, path), str(folder), mode=mode)
            return Member(partial(io.BytesIO, _filled(path, file, prefix)), str(folder), mode=mode)
    raise UnfitError(_NO_FILE.format(folder.name))


def _filled(path: Path, file: CondaFile, prefix: Path) -> bytes:
    """Return a file in which the prefix stands, as conda writes it."""
    with open_regular(path) as stream:
        data: bytes = stream.read()
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise UnfitError(f"{path} is not as its package has it")
    old, new = (file.placeholder or "").encode(), os.fsencode(prefix)
    try:
        filled = in_binary(data, old, new, file.name) if file.binary else in_text(data, old, new)
    except CannotError as error:
        raise UnfitError(str(error)) from error
    return bytes(filled)
