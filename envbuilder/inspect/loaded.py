"""The libraries that extension modules load, and the MPI that starts ranks."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache

from ..machine.host import LocalMachine
from ..model.validation import Observation
from ..target_tools.files import is_below
from .facts import Environment, NativeLibrary
from .mpi import MPI_LIBRARY, MpiFile, launcher_of, mpi_of
from .observation import seen

LAUNCHERS = ("mpiexec", "mpirun")


@dataclass(frozen=True, eq=False)
class Loaded:
    """A library that an extension module loads, by the name that it, or what it loads, needs."""

    native: NativeLibrary
    name: str
    path: str

    @property
    def real(self) -> str:
        return os.path.realpath(self.path)

    @property
    def words(self) -> str:
        """What it is, for people."""
        return self.name

    def evidence(self, environment: Environment) -> Observation:
        """Return where it was read."""
        how = "NEEDED" if self.name in self.native.library.needed else "NEEDED of what it needs"
        where = f"{self.name} => {environment.short(self.path)}"
        return seen(environment.short(self.native.path), how, where)


def loaded(environment: Environment, pattern: re.Pattern[str]) -> dict[str, list[Loaded]]:
    """Return the libraries of a kind by the modules that load them: path up to the first dot."""
    found: dict[str, list[Loaded]] = {}
    for native in (*environment.libraries, *environment.outer):
        for name in native.tree if native.module or native.variant else ():
            path = environment.loaded(native, name) if pattern.match(name) else None
            if path is not None:
                found.setdefault(native.stem, []).append(Loaded(native, name, path))
    return found


@dataclass(frozen=True, eq=False)
class LoadedMpi(Loaded):
    """An MPI that an extension module loads."""

    mpi: MpiFile

    @property
    def words(self) -> str:
        return str(self.mpi)


@lru_cache(maxsize=1)
def loaded_mpis(environment: Environment) -> dict[str, list[LoadedMpi]]:
    """Return the MPIs of what Python can import, by the module's path up to the first dot.

    Of the variants of one module, MPI.mpich and MPI.openmpi of mpi4py, one is loaded: that whose
    MPI lies in the environment, or else that of the launcher, or else any.
    """
    found: dict[str, list[LoadedMpi]] = {}
    for stem, those in loaded(environment, MPI_LIBRARY).items():
        mpis = [
            LoadedMpi(each.native, each.name, each.path, mpi)
            for each in those
            if (mpi := mpi_of(each.path)) is not None
        ]
        if mpis:
            found[stem] = _chosen(mpis, environment)
    return found


def _chosen(those: list[LoadedMpi], environment: Environment) -> list[LoadedMpi]:
    if len({each.native.path for each in those}) == 1:
        return those
    prefix = os.path.realpath(environment.prefix)
    inside = [each for each in those if is_below(each.real, prefix)]
    launcher = None if inside else first_launcher(environment)
    fitting = [each for each in those if launcher and each.mpi.kin == launcher.kin]
    return inside or fitting or those


def first_launcher(environment: Environment) -> MpiFile | None:
    """Return what a shell in which the environment is active runs for mpiexec or mpirun."""
    path = f"{environment.prefix}/bin:{environment.environ.get('PATH', '')}"
    host = LocalMachine({**environment.environ, "PATH": path})
    found = (host.which(name) for name in LAUNCHERS)
    return next((mpi for each in found if each and (mpi := launcher_of(each))), None)
