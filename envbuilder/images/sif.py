"""The header of a SIF file, as Apptainer and Singularity write it.

Its layout: pkg/sif/sif.go of github.com/apptainer/sif (Version 01). 32 bytes of a line that starts
it, 10 of a magic word, 3 of the version and 3 of the architecture, each number as text with a NUL
byte behind it.
"""

from __future__ import annotations

from pathlib import Path

MAGIC = b"SIF_MAGIC\0"
_MAGIC_AT, _ARCH_AT = 32, 45
_ARCHES = {b"02": "x86_64", b"04": "aarch64", b"06": "ppc64le"}


def arch_of(file: Path) -> str | None:
    """Return the architecture that a SIF file is for; None where it names another than recipes do.

    Raises ValueError for a file that is none.
    """
    with file.open("rb") as stream:
        head = stream.read(_ARCH_AT + 3)
    if head[_MAGIC_AT : _MAGIC_AT + len(MAGIC)] != MAGIC:
        raise ValueError(f"{file} is no SIF file")
    return _ARCHES.get(head[_ARCH_AT : _ARCH_AT + 2])
