"""What a plan must prove, whose MPI its ranks must load, and what starts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .plan import Pin, Plan, Proof
from .site import Launcher

MPI_COMPONENTS = ("mpich", "openmpi", "spectrum-mpi", "mvapich2", "impi")

LAUNCHERS: Mapping[str, Launcher] = {
    "mpich": Launcher(kind="hydra", command=("mpiexec",)),
    "openmpi": Launcher(kind="openmpi", command=("mpiexec",)),
    "spectrum-mpi": Launcher(kind="spectrum-mpi", command=("mpirun",)),
}
"""What an MPI brings to start its ranks, where no scheduler does."""


def proofs_of(plan: Plan) -> tuple[Proof, ...]:
    """Return the smoke tests that an environment of *plan* must pass, in their order.

    A plan that names none proves the bundled runtime over MPI, which every such plan holds.
    """
    return plan.proofs or (Proof(api="numpy", transport="mpi", launcher=plan.launcher),)


def mpi_of(plan: Plan) -> Pin | None:
    """Return the MPI that the plan holds, or None."""
    return next((pin for pin in plan.pins if pin.component in MPI_COMPONENTS), None)


def own_launcher(pins: Iterable[Pin]) -> Launcher | None:
    """Return the launcher of the first MPI among *pins*, or None."""
    return next((LAUNCHERS[pin.component] for pin in pins if pin.component in LAUNCHERS), None)
