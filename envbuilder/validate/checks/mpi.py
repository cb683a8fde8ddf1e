"""The MPIs that come together in one process, and what starts the ranks."""

from __future__ import annotations

from collections.abc import Iterator

from ...inspect.facts import Environment
from ...inspect.loaded import first_launcher, loaded_mpis
from ...inspect.observation import seen
from .protocol import Violation, check
from .together import two


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
