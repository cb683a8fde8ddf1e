"""The MPIs that come together in one process, and what starts the ranks."""

from __future__ import annotations

from collections.abc import Iterator

from ...inspect.facts import Environment
from ...inspect.loaded import first_launcher, loaded_mpis
from ...inspect.observation import seen
from .protocol import NOT_SEARCHED, Outcome, Undecided, Violation, checks
from .together import two


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


CHECKS = checks(
    {
        "mpi.two-in-process": lambda environment: two(environment, loaded_mpis(environment)),
        "mpi.other-launcher": _other_launcher,
    }
)
