"""Schedulers: job scripts, the hosts of a job, and what starts a process on each of them."""

from __future__ import annotations

from collections.abc import Mapping

from . import lsf, pbs, slurm
from .protocol import Scheduler

SCHEDULERS: dict[str, Scheduler] = {"slurm": slurm, "lsf": lsf, "pbs": pbs}
"""Every scheduler by the name that site documents and ``envbuild render --as`` use."""


def current_scheduler(environ: Mapping[str, str]) -> str | None:
    """Return the name of the scheduler in whose job *environ* is, None outside of one."""
    return next((name for name, each in SCHEDULERS.items() if each.JOB_ID in environ), None)
