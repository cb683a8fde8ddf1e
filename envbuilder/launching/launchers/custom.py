"""A command that the site states whole, before ``-n RANKS PROGRAM``."""

from __future__ import annotations

from ...errors import UsageError
from ...model.launch import LaunchRequest, Words
from .protocol import JobTraits, LineTraits, Traits

COMMAND: Words = ()


def _variables(request: LaunchRequest) -> Words:
    """Return what tells an srun in the command the CPUs of each task: see srun's own module."""
    cpus = (request.cores_per_rank or request.task.cpus) if request.scheduler == "slurm" else None
    return (f"SRUN_CPUS_PER_TASK={cpus}",) if cpus else ()


TRAITS = Traits(
    job=JobTraits(outside_image=True), line=LineTraits(variables=_variables, cores=True)
)


def options(request: LaunchRequest) -> Words:
    """Return the number of ranks; nothing else is known of it."""
    if not request.command:
        raise UsageError(
            "launch.no-command",
            "a custom launcher has no command",
            "state it in the site file: launcher: {command: [mpirun, --mca, pml, ucx]}",
        )
    if request.named:
        raise UsageError(
            "launch.custom-hosts",
            "a custom launcher does not accept hosts",
            "state its kind in the site file, or start the program inside a job",
        )
    return ("-n", str(request.ranks))
