"""The MPIs that come together in one process, and what starts the ranks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from ...host import Host
from ...model.validation import Observation
from ...target_tools.files import is_below
from ..facts import Environment, NativeLibrary
from ..mpi import MPI_LIBRARY, MpiFile, launcher_of, mpi_of
from .protocol import Found, check, seen

LAUNCHERS = ("mpiexec", "mpirun")


class LoadedMpi(NamedTuple):
    """An MPI that an extension module loads, by the name that it, or what it loads, needs."""

    native: NativeLibrary
    name: str
    mpi: MpiFile

    @property
    def real(self) -> str:
        return os.path.realpath(self.mpi.path)

    def evidence(self, environment: Environment) -> Observation:
        """Return where it was read."""
        how = "NEEDED" if self.name in self.native.library.needed else "NEEDED of what it needs"
        where = f"{self.name} => {environment.short(self.mpi.path)}"
        return seen(environment.short(self.native.path), how, where)


@lru_cache(maxsize=1)
def loaded_mpis(environment: Environment) -> dict[str, list[LoadedMpi]]:
    """Return the MPIs of what Python can import, by the module's path up to the first dot.

    Of the variants of one module, MPI.mpich and MPI.openmpi of mpi4py, one is loaded: that whose
    MPI lies in the environment, or else that of the launcher, or else any.
    """
    found: dict[str, list[LoadedMpi]] = {}
    for native in environment.libraries:
        for name in native.tree if native.module or native.variant else ():
            path = environment.loaded(native, name) if MPI_LIBRARY.match(name) else None
            mpi = mpi_of(path) if path else None
            if mpi is not None:
                found.setdefault(native.stem, []).append(LoadedMpi(native, name, mpi))
    return {key: _chosen(those, environment) for key, those in found.items()}


def _chosen(those: list[LoadedMpi], environment: Environment) -> list[LoadedMpi]:
    if len({each.native.path for each in those}) == 1:
        return those
    prefix = os.path.realpath(environment.prefix)
    inside = [each for each in those if is_below(each.real, prefix)]
    launcher = None if inside else first_launcher(environment)
    fitting = [each for each in those if launcher and each.mpi.kin == launcher.kin]
    return inside or fitting or those


def _two_in_process(environment: Environment) -> Iterator[Found]:
    modules = loaded_mpis(environment)
    for those in modules.values():
        for one, other in combinations(those, 2):
            if one.native is other.native and one.real != other.real:
                yield Found(
                    f"{environment.name(one.native.path)} alone loads {one.mpi} and {other.mpi}",
                    (one.evidence(environment), other.evidence(environment)),
                )
                return
    for first, second in combinations(sorted(modules), 2):
        ones, others = modules[first], modules[second]
        if {each.real for each in ones}.isdisjoint(each.real for each in others):
            one, other = ones[0], others[0]
            yield Found(
                f"{environment.name(one.native.path)} loads {one.mpi}, "
                f"{environment.name(other.native.path)} loads {other.mpi}",
                (one.evidence(environment), other.evidence(environment)),
                confidence="likely",
            )
            return


def _other_launcher(environment: Environment) -> Iterator[Found]:
    launcher = first_launcher(environment)
    if launcher is None:
        return
    for those in loaded_mpis(environment).values():
        if launcher.kin not in {each.mpi.kin for each in those}:
            one = those[0]
            what, where = environment.name(one.native.path), environment.short(launcher.path)
            yield Found(
                f"{what} loads {one.mpi}, {where} starts ranks of {launcher}",
                (one.evidence(environment), seen(where, "belongs to", launcher)),
                confidence="likely",
            )


def first_launcher(environment: Environment) -> MpiFile | None:
    """Return what a shell in which the environment is active runs for mpiexec or mpirun."""
    path = f"{environment.prefix}/bin:{environment.environ.get('PATH', '')}"
    host = Host({**environment.environ, "PATH": path})
    found = (host.which(name) for name in LAUNCHERS)
    return next((mpi for each in found if each and (mpi := launcher_of(each))), None)


CHECKS = (
    check(
        _two_in_process,
        id="mpi.two-in-process",
        severity="error",
        title="two MPIs come together in one process",
        why="they share names such as MPI_Init and MPI_COMM_WORLD with different meanings: ranks "
        "hang, crash, or each takes itself for rank 0 of 1",
        fix="build or install all that uses MPI against the one that starts the ranks",
        source="https://github.com/horovod/horovod/blob/2626dc87/docs/troubleshooting.rst",
    ),
    check(
        _other_launcher,
        id="mpi.other-launcher",
        severity="error",
        title="what starts the ranks belongs to another MPI than what they load",
        why="the ranks do not find each other: each is rank 0 of 1, or all wait for a start-up "
        "that never comes",
        fix="put the mpiexec of the MPI that is loaded first on PATH, or rebuild against the other",
        source="https://mpi4py.readthedocs.io/en/stable/install.html",
    ),
)
