"""Which MPI a library or a launcher belongs to, by what is in its file. Nothing is run."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..machine.mpi import TITLES
from ..target_tools.distributions import parse_fields
from ..target_tools.elf import ElfError, read_library
from ..target_tools.files import open_regular

# libmpi.so.40, libmpich.so.12, libmpi_ibm.so.3: the library that is an MPI, not its C++ or Fortran.
MPI_LIBRARY = re.compile(r"lib(mpi|mpich|mpi_ibm|pmpi)\.so\b")

# Texts in the code of each, the more special ones first: MVAPICH and Intel MPI are made of MPICH,
# Spectrum MPI of Open MPI. Of launchers: OpenRTE and PRRTE start the ranks of Open MPI, Hydra those
# of MPICH and its kin.
_TEXTS: Mapping[bytes, str] = {
    b"Spectrum MPI": "spectrum-mpi",
    b"Intel(R) MPI": "intel-mpi",
    b"MVAPICH": "mvapich",
    b"OpenRTE": "openmpi",
    b"prrte": "openmpi",
    b"Open MPI": "openmpi",
    b"HYDRA": "mpich",
    b"MPICH": "mpich",
}
# What starts each other's ranks, and fits each other's interface: the MPICH ABI initiative of 2013
# (https://www.mpich.org/abi/).
_KIN = {"intel-mpi": "mpich", "mvapich": "mpich", "spectrum-mpi": "openmpi"}
_PKG_CONFIG = {
    "openmpi": ("ompi.pc", "ompi-c.pc"),
    "mpich": ("mpich.pc",),
    "mvapich": ("mvapich2.pc", "mpich.pc"),
}
_LARGEST_PC = 64 * 1024


@dataclass(frozen=True)
class MpiFile:
    """A libmpi or a launcher. ``name``: openmpi, mpich, ...; ``version``: as pkg-config says it."""

    path: str
    name: str
    version: str | None = None

    @property
    def kin(self) -> str:
        """The family: which launchers start it, and whose libmpi may take its place."""
        return _KIN.get(self.name, self.name)

    def __str__(self) -> str:
        return f"{TITLES.get(self.name, self.name)}{f' {self.version}' if self.version else ''}"


@cache
def mpi_of(path: str) -> MpiFile | None:
    """Return which MPI a file belongs to; None: it does not say."""
    real = os.path.realpath(path)
    name = next((mpi for text, mpi in _TEXTS.items() if holds(real, text)), None)
    return MpiFile(path, name, _version(path, name)) if name else None


def launcher_of(path: str) -> MpiFile | None:
    """Return the MPI whose ranks a launcher starts; None: that is not known, of a script say."""
    try:
        needed = read_library(os.path.realpath(path)).needed
    except (ElfError, OSError):
        return None
    if any(name.startswith(("libopen-rte", "libprrte")) for name in needed):
        return MpiFile(path, "openmpi")
    return mpi_of(path)


def holds(path: str, text: bytes) -> bool:
    """Whether a file has these bytes; one that cannot be read has none."""
    try:
        with (
            open_regular(path) as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as whole,
        ):
            return bool(whole.find(text) >= 0)
    except (OSError, ValueError):  # an empty file has nothing to map
        return False


def _version(path: str, name: str) -> str | None:
    """Return the version that pkg-config has of the MPI that a library belongs to."""
    for file in _pkg_config(path, name):
        try:
            with open_regular(file) as stream:
                text = stream.read(_LARGEST_PC).decode("utf-8", "replace")
        except OSError:
            continue
        # Its variables stand in front, an empty line behind them.
        fields = parse_fields("\n".join(line for line in text.splitlines() if line))
        version: str = next(iter(fields.get("version", ())), "")
        if re.fullmatch(r"\d[\w.]*", version):
            return version
    return None


def _pkg_config(path: str, name: str) -> Iterator[Path]:
    folders = dict.fromkeys((Path(path).parent, Path(os.path.realpath(path)).parent))
    for folder in folders:
        # Debian keeps libmpi in a folder of its own: lib/x86_64-linux-gnu/openmpi/lib.
        for above in (folder, *list(folder.parents)[:2]):
            yield from (above / "pkgconfig" / file for file in _PKG_CONFIG.get(name, ()))
