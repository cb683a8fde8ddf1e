"""The MPIs that come together in one process, and what starts the ranks."""

from __future__ import annotations

from collections.abc import Iterator

from ...inspect.facts import Environment
from ...inspect.loaded import first_launcher, loaded_mpis
from ...inspect.observation import seen
from .protocol import NOT_SEARCHED, Outcome, Undecided, Violation, check
from .together import two


def _two_in_process(environment: Environment) -> Iterator[Outcome]:
    yield from two(environment, loaded_mpis(environment))


def _other_launcher(environment: Environment) -> Iterator[Outcome]:
    if not environment.native:
        yield Undecided(NOT_SEARCHED)
        return
    launcher, mpis = first_launcher(environment), loaded_mpis(environment)
    if launcher is None:
        if mpis:
            yield Undecided("no launcher of an MPI is on PATH")
        return
    for those in mpis.values():
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
        layer="ABI",
        faults=("another release", "hidden"),
        severity="error",
        title="one process loads two MPIs",
        why="both define symbols such as MPI_Init and MPI_COMM_WORLD: ranks hang, crash, or each "
        "becomes rank 0 of 1",
        fix="build or install all packages that use MPI against the MPI that starts the ranks",
        source="https://github.com/horovod/horovod/blob/2626dc87/docs/troubleshooting.rst",
    ),
    check(
        _other_launcher,
        id="mpi.other-launcher",
        layer="ABI",
        faults=("another release",),
        severity="error",
        title="the launcher belongs to another MPI than the one that the ranks load",
        why="the ranks do not find each other: each becomes rank 0 of 1, or all wait forever at "
        "start-up",
        fix="put the mpiexec of the loaded MPI first on PATH, or rebuild against the other MPI",
        source="https://mpi4py.readthedocs.io/en/stable/install.html",
    ),
)
