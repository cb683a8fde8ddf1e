"""What tests of images read, without Apptainer: a system with a root in it, and SIF files."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tests.cli.published import planned, publish_plan

# Where Apptainer has them: behind the header, and behind all descriptors that there may be.
DESCRIPTORS, DATA, MOST = 4096, 36864, 48


def system(folder: Path) -> Path:
    """Make the tree of an image: a root in it, with a published environment."""
    root = folder / "opt" / "envbuild"
    publish_plan(root, planned("allreduce"), {"pyvenv.cfg": "home = /usr/bin\n"}, attested=True)
    return folder


def sif(file: Path, squashfs: bytes, arch: bytes = b"02") -> Path:
    """Write a SIF file: a definition file, and the system."""
    text = b"Bootstrap: localimage\n"
    head = struct.pack(
        "<32s10s3s3s16s8q",
        *(b"#!/usr/bin/env run-singularity\n", b"SIF_MAGIC\0", b"01\0", arch + b"\0", bytes(16)),
        *(0, 0, MOST - 2, MOST, DESCRIPTORS, MOST * 585, DATA - 100, 100 + len(squashfs)),
    )
    more = struct.pack("<ii3s", 1, 2, arch)
    parts = descriptor(0x4001, 1, DATA - 100, len(text)) + descriptor(
        0x4004, 2, DATA, len(squashfs), more
    )
    image = bytearray(DATA)
    image[: len(head)] = head
    image[DESCRIPTORS : DESCRIPTORS + len(parts)] = parts
    image[DATA - 100 : DATA - 100 + len(text)] = text
    file.write_bytes(bytes(image) + squashfs)
    return file


def descriptor(kind: int, number: int, offset: int, size: int, more: bytes = b"") -> bytes:
    numbers = (offset, size, size, 0, 0, 0, 0)
    return struct.pack("<iBIII7q128s384s", kind, 1, number, 1, 0, *numbers, b"name", more)


def squashfs(folder: Path, file: Path) -> bytes:
    """Return a SquashFS of a folder; the test is skipped where nothing packs and reads one."""
    for program in ("mksquashfs", "unsquashfs"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not on PATH: it is in Debian's squashfs-tools")
    words = ["mksquashfs", str(folder), str(file), "-quiet", "-no-progress", "-noappend"]
    subprocess.run(words, check=True, capture_output=True)
    return file.read_bytes()
