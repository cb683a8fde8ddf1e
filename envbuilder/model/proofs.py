"""What a plan must prove, and whose MPI its ranks must load."""

from __future__ import annotations

from .plan import Pin, Plan, Proof

MPI_COMPONENTS = ("mpich", "openmpi", "spectrum-mpi", "mvapich2", "impi")


def proofs_of(plan: Plan) -> tuple[Proof, ...]:
    """Return the smoke tests that an environment of *plan* must pass, in their order.

    A plan that names none proves the bundled runtime over MPI, which every such plan holds.
    """
    return plan.proofs or (Proof(api="numpy", transport="mpi", launcher=plan.launcher),)


def mpi_of(plan: Plan) -> Pin | None:
    """Return the MPI that the plan holds, or None."""
    return next((pin for pin in plan.pins if pin.component in MPI_COMPONENTS), None)
