"""Horovod: where a plan has it, and what its build variables leave in."""

from __future__ import annotations

from collections.abc import Mapping

from .plan import Plan, SourceBuild

HOROVOD = "horovod"
"""Its component; the packages of frameworks that it works for state their part of it."""


def horovod_of(plan: Plan) -> SourceBuild | None:
    """Return the Horovod that a plan builds, or that a module brings; None: it has none."""
    builds = (*plan.builds, *plan.verified)
    return next((each for each in builds if each.component == HOROVOD), None)


def has_part(flags: Mapping[str, str], part: str) -> bool:
    """Whether the flags leave a part in: MPI, GLOO, or a framework such as PYTORCH."""
    return flags.get(f"HOROVOD_WITHOUT_{part}") != "1"


def by_nccl(flags: Mapping[str, str]) -> bool:
    """Whether the flags have NCCL reduce GPU memory."""
    return (flags.get("HOROVOD_GPU_ALLREDUCE") or flags.get("HOROVOD_GPU_OPERATIONS")) == "NCCL"
