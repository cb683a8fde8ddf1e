"""The header of a SIF file, as Apptainer and Singularity write it.

Its layout: pkg/sif/sif.go of github.com/apptainer/sif (Version 01). 32 bytes of a line that starts
it, 10 of a magic word, 3 of the version and 3 of the architecture, each number as text with a NUL
byte behind it; then 16 of an id and eight numbers of 8 bytes. Descriptors say where in the file
each part lies; one of them is the file system that a container begins with.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from .. import process
from ..errors import DriftError, UsageError

MAGIC = b"SIF_MAGIC\0"
_MAGIC_AT, _ARCH_AT = 32, 45
_ARCHES = {b"02": "x86_64", b"04": "aarch64", b"06": "ppc64le"}
# Little-endian, without padding: times, descriptors free and there, where they lie, where data is.
_NUMBERS = struct.Struct("<8q")
_NUMBERS_AT = 64
# type, used, id, group, link, offset, size, size with padding, times, owners, name, more
_DESCRIPTOR = struct.Struct("<i?IIIqqqqqqq128s384s")
_PARTITION = 0x4004
# What the more of a partition begins with: the kind of file system, and what it is for.
_KIND = struct.Struct("<ii")
_SQUASHFS, _SYSTEM = 1, 2
# Apptainer makes 48.
_MOST_DESCRIPTORS = 4096


@dataclass(frozen=True)
class SifHeader:
    """What a SIF file says of itself.

    ``arch``: None for one that no recipe has. ``offset``, ``size``: of its SquashFS, in bytes.
    """

    arch: str | None
    offset: int
    size: int


class _Part(NamedTuple):
    kind: int
    offset: int
    size: int
    more: bytes


def arch_of(file: Path) -> str | None:
    """Return the architecture that a SIF file is for; None where it names another than recipes do.

    Raises ValueError for a file that is none.
    """
    with file.open("rb") as stream:
        return _arch(stream.read(_ARCH_AT + 3), file)


def is_sif(head: bytes) -> bool:
    """Whether a file that begins so is a SIF file."""
    return head[_MAGIC_AT : _MAGIC_AT + len(MAGIC)] == MAGIC


def _arch(head: bytes, file: Path) -> str | None:
    if not is_sif(head):
        raise ValueError(f"{file} is not a SIF file")
    return _ARCHES.get(head[_ARCH_AT : _ARCH_AT + 2])


def read_header(file: Path) -> SifHeader:
    """Return what a SIF file says of itself.

    Raises ValueError for a file that is none, DriftError for one that is damaged, OSError.
    """
    with file.open("rb") as stream:
        return header_of(stream, file)


def header_of(stream: IO[bytes], file: Path) -> SifHeader:
    """Return what an open SIF file says of itself; *file*: its name. Raises as ``read_header``."""
    whole = os.fstat(stream.fileno()).st_size
    stream.seek(0)
    head = stream.read(_NUMBERS_AT + _NUMBERS.size)
    arch = _arch(head, file)
    try:
        parts = list(_parts(stream, head, whole))
        system = next(each for each in parts if _is_system(each))
    except StopIteration:
        raise damaged(file, "it contains no readable system") from None
    except (struct.error, ValueError) as error:
        raise damaged(file, str(error)) from error
    return SifHeader(arch, system.offset, system.size)


def _parts(stream: IO[bytes], head: bytes, whole: int) -> Iterator[_Part]:
    """Yield the parts of a file. Raises ValueError, struct.error."""
    _, _, free, there, where, _, _, _ = _NUMBERS.unpack(head[_NUMBERS_AT:])
    if not 0 <= free <= there <= _MOST_DESCRIPTORS:
        raise ValueError(f"the header states {there} parts")
    for number in range(there):
        at = where + number * _DESCRIPTOR.size
        if not 0 <= at <= whole - _DESCRIPTOR.size:
            raise ValueError("the file ends before the list of its parts")
        stream.seek(at)
        values = _DESCRIPTOR.unpack(stream.read(_DESCRIPTOR.size))
        part = _Part(values[0], values[5], values[6], values[-1])
        if not values[1]:
            continue
        if part.offset < 0 or part.size < 0 or part.offset + part.size > whole:
            end = part.offset + part.size
            raise ValueError(f"the file is cut off: it has {whole} bytes, but a part ends at {end}")
        yield part


def _is_system(part: _Part) -> bool:
    return part.kind == _PARTITION and _KIND.unpack_from(part.more) == (_SQUASHFS, _SYSTEM)


def damaged(file: Path, why: str) -> DriftError:
    """Return the error of an image that is not as it was written."""
    return DriftError(
        "image.damaged",
        f"{file} is not a complete image: {why}",
        "copy it again, or build it again",
    )


def unreadable(image: Path, done: process.Finished) -> DriftError:
    """Return the error of an image that unsquashfs does not read."""
    said = [line for line in done.stderr.splitlines() if line.strip()]
    why = "in time" if done.code is None else said[0] if said else f"exit code {done.code}"
    return DriftError(
        "image.unreadable",
        f"cannot read {image}: {why}",
        "copy it again, or build it again",
    )


def no_environment(image: Path, inside: Path) -> UsageError:
    """Return the error of an image that has no root of environments where it belongs."""
    return UsageError(
        "image.no-environment",
        f"{image} contains no environment of envbuild: {inside} is missing",
        "create such an image with envbuild image",
    )
