"""The MPIs that come together in one process, and what starts the ranks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ...inspect.facts import Environment
from ...inspect.mpi import MPI_LIBRARY, MpiFile, launcher_of, mpi_of
from ...machine.host import Host
from ...target_tools.files import is_below
from .protocol import Violation, check, seen
from .together import Loaded, loaded, two

LAUNCHERS = ("mpiexec", "mpirun")


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


def _two_in_process(environment: Environment) -> Iterator[Violation]:
    yield from two(environment, loaded_mpis(environment))


def _other_launcher(environment: Environment) -> Iterator[Violation]:
    launcher = first_launcher(environment)
    if launcher is None:
        return
    for those in loaded_mpis(environment).values():
        if launcher.kin not in {each.mpi.kin for each in those}:
            one = those[0]
            what, where = environment.name(one.native.path), environment.short(launcher.path)
            yield Violation(
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
