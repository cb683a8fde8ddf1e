"""What a plan must prove, and whose MPI its ranks must load."""

from __future__ import annotations

from typing import Literal

from .plan import Pin, Plan, Proof

# What fulfils mpi in locks of before pins said so themselves. No further MPI belongs here: which
# components fulfil it stands in components.yaml.
_EARLIER_MPIS = frozenset({"mpich", "openmpi", "spectrum-mpi", "mvapich2", "impi"})


def proofs_of(plan: Plan) -> tuple[Proof, ...]:
    """Return the smoke tests that an environment of *plan* must pass, in their order.

    A plan that names none proves the bundled runtime over MPI, which every such plan holds.
    """
    return plan.proofs or (Proof(api="numpy", transport="mpi", launcher=plan.launcher),)


def mpi_of(plan: Plan) -> Pin | None:
    """Return the MPI that the plan holds, or None."""
    return next(filter(is_mpi, plan.pins), None)


def mpi_from(plan: Plan) -> Literal["prefix", "wrapper"] | None:
    """Return who knows where libmpi must lie: for pip and our own builds it is the prefix."""
    pin = mpi_of(plan)
    if pin is None:
        return None
    return "wrapper" if pin.origin in ("module", "system") else "prefix"


def is_mpi(pin: Pin) -> bool:
    """Whether a pin is an MPI."""
    return "mpi" in pin.fulfils or pin.component in _EARLIER_MPIS
