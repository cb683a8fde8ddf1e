"""The system in an image, unpacked to be looked at, and where Pythons lie in it; nothing is run."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .. import process
from ..errors import DriftError, MissingToolError, UsageError
from ..machine.host import LocalMachine, names_in
from .sif import SifHeader, unreadable

_SECONDS = 3600.0
# Bytes and files: nobody's image holds more, and a forged one may say anything.
_LARGEST, _MOST_FILES = 200 * 2**30, 5_000_000
# As ``unsquashfs -lls`` prints: mode, owners, size or device, time, path and where a link leads.
_LINE = re.compile(r"(\S)\S{9} +\S+ +([0-9]+|[0-9]+, *[0-9]+) \S+ \S+ squashfs-root(/.*)?")
_LEFT_OUT = frozenset({"proc", "sys", "dev", "site-packages", "share", "include", "pkgs", "tmp"})
# So deep in an image nobody puts an environment.
_DEEPEST = 6


class ImageEntry(NamedTuple):
    """A file of an image. ``kind``: - d l ..., as ls has it."""

    kind: str
    size: int
    path: str


def unpack_system(
    image: Path, header: SifHeader, folder: Path, host: LocalMachine, only: Sequence[str] = ()
) -> None:
    """Unpack the system of an image into a folder that is not there yet.

    *only*: patterns of paths in it; none: all of it.

    Raises MissingToolError, UsageError where it does not fit here, DriftError for an image that
    cannot be read, or that says what no image holds.
    """
    program = host.which("unsquashfs")
    if program is None:
        raise MissingToolError(
            "image.no-unsquashfs",
            "cannot read images: unsquashfs is not on PATH",
            "install the package squashfs-tools; Apptainer needs it too",
        )
    words = [program, "-offset", str(header.offset)]
    listed = _run([*words, "-lls", str(image.resolve()), *only], image, host.environ)
    size = check_listing(image, entries(listed))
    free = shutil.disk_usage(folder.parent).free
    if size > free:
        raise UsageError(
            "image.no-space",
            f"{image} needs {size / 2**30:.1f} GiB, {folder.parent} has {free / 2**30:.1f}",
            "set TMPDIR to a folder with more space",
        )
    # No attributes of files, and no devices for those who may not make them.
    options = ["-no-progress", "-no-xattrs", "-ignore-errors", "-no-exit-code"]
    rest = ["-dest", str(folder), str(image.resolve()), *only]
    _run([*words, *options, *rest], image, host.environ)


def entries(listing: str) -> Iterator[ImageEntry]:
    """Yield what ``unsquashfs -lls`` printed; a name with a line break in it is several lines."""
    for line in listing.splitlines():
        found = _LINE.fullmatch(line)
        if found:
            kind, size, path = found.groups()
            yield ImageEntry(kind, int(size) if size.isdigit() else 0, path or "/")


def check_listing(image: Path, listed: Iterator[ImageEntry]) -> int:
    """Return the bytes that an image unpacks to. Raises DriftError for what no image holds.

    A link with something below it would lead what is unpacked out of its folder: CVE-2021-41072.
    """
    links, folders, size = set(), set(), 0
    for number, each in enumerate(listed):
        size += each.size if each.kind == "-" else 0
        name = each.path.partition(" -> ")[0]
        if ".." in name.split("/") or size > _LARGEST or number > _MOST_FILES:
            raise _forged(image)
        if each.kind == "l":
            links.add(name)
        folders.add(name.rpartition("/")[0])
    if links & folders:
        raise _forged(image)
    return size


def _forged(image: Path) -> DriftError:
    return DriftError(
        "image.unsafe-contents", f"{image} contains unsafe entries", "nothing was unpacked"
    )


def _run(words: list[str], image: Path, environ: Mapping[str, str]) -> str:
    done = process.run(words, env=environ, timeout=_SECONDS)
    if not done.ok:
        raise unreadable(image, done)
    return done.stdout


def environments(root: Path) -> Iterator[Path]:
    """Yield the environments of Python in a system, virtualenvs first, then conda, then Pythons."""
    found: list[tuple[int, Path]] = []
    for here, folders, files in os.walk(root):
        path = Path(here)
        depth = len(path.relative_to(root).parts)
        kind = _kind(path, folders, files)
        if kind is not None:
            found.append((kind, path))
        inner = [] if depth >= _DEEPEST or (kind is not None and kind < _SYSTEM) else folders
        folders[:] = sorted(each for each in inner if each not in _LEFT_OUT)
    best = min((kind for kind, _ in found), default=None)
    yield from (path for kind, path in sorted(found) if kind == best)


_VIRTUALENV, _CONDA, _SYSTEM = range(3)


def _kind(path: Path, folders: list[str], files: list[str]) -> int | None:
    if "pyvenv.cfg" in files:
        return _VIRTUALENV
    if "conda-meta" in folders:
        return _CONDA
    programs = {"python", "python3"} & set(names_in(path / "bin"))
    if programs and any(name.startswith("python3") for name in names_in(path / "lib")):
        return _SYSTEM
    return None
