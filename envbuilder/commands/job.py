"""Jobs of an environment: of its smoke test's size or as asked for, with its own launch line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import UsageError
from ..launching import (
    JobHosts,
    LaunchRequest,
    Mpi,
    Scheduler,
    Shape,
    launch_line,
    site_shape,
)
from ..model.plan import Plan
from ..model.profiles import program
from ..model.proofs import LAUNCHERS, mpi_of
from ..model.site import Launcher
from ..render.job import ENDPOINT, HOSTS, Job, program_words
from .load import Material

# The run time that a rendered job asks for: half an hour, which every queue takes.
JOB_MINUTES = 30

# The launcher that works with the other scheduler only.
_OTHERS: Mapping[str, str] = {"slurm": "jsrun", "lsf": "srun"}

# What is in a stack for the sake of GPUs.
_GPU = frozenset({"cuda", "cudatoolkit", "nccl", "ddl"})

DDLRUN = Launcher(kind="ddlrun", command=("ddlrun",))
"""What starts programs of DDL, wherever they are; nothing else does."""


@dataclass(frozen=True)
class JobSize:
    """What is asked of a job; None: as for the smoke test, or left to the scheduler."""

    nodes: int | None = None
    ranks_per_node: int | None = None
    minutes: int | None = None
    account: str | None = None
    cpus_per_rank: int | None = None


NOTHING_ASKED = JobSize()


def job_of(planned: Plan, material: Material, asked: JobSize = NOTHING_ASKED) -> Job:
    """Return the job; where nothing is asked for, of the smoke test's size, on one node.

    Raises UsageError for what no scheduler takes.
    """
    ranks = planned.smoke.ranks if asked.ranks_per_node is None else asked.ranks_per_node
    shape = site_shape(material.site, material.chosen.partition)
    return Job(
        name=planned.recipe,
        nodes=1 if asked.nodes is None else asked.nodes,
        ranks_per_node=ranks,
        minutes=JOB_MINUTES if asked.minutes is None else asked.minutes,
        gpus_per_node=ranks if uses_gpus(planned, shape) else 0,
        cpus_per_rank=asked.cpus_per_rank,
        account=asked.account,
        partition=material.chosen.partition_name or _only_partition(planned, material),
        one_task_per_node=planned.launcher.kind == "torchrun",
        launch_node=planned.launcher.kind == "jsrun",
        tf_config=planned.runtime.beside == "tf-distribute",
    )


def _only_partition(planned: Plan, material: Material) -> str | None:
    """Return the partition that a job of this architecture must go to; None: there are several."""
    fitting = [n for n, each in material.site.partitions.items() if each.arch == planned.arch]
    return fitting[0] if len(fitting) == 1 else None


def job_words(planned: Plan, job: Job, scheduler: Scheduler, material: Material) -> tuple[str, ...]:
    """Return the launch line inside a job; the program and its words are the script's own.

    Raises UsageError where nothing of the stack starts ranks in a job of that scheduler, and for
    more ranks, GPUs or cores than the site's nodes have.
    """
    launcher = launcher_in(planned, scheduler)
    return launch_line(
        LaunchRequest(
            kind=launcher.kind,
            program=program_words(job, program(planned.profile)),
            ranks=job.nodes * job.ranks_per_node,
            hosts=JobHosts(job.nodes, job.ranks_per_node, HOSTS, ENDPOINT),
            scheduler=scheduler,
            command=launcher.command,
            mpi=mpi_named(planned),
            gpus=job.gpus_per_node > 0,
            cores_per_rank=job.cpus_per_rank,
            shape=site_shape(material.site, material.chosen.partition),
        )
    )


def mpi_named(planned: Plan) -> Mpi | None:
    """Return the MPI of the plan as a launch line asks for it."""
    pin = mpi_of(planned)
    return None if pin is None else Mpi(pin.component, pin.version)


def launcher_in(planned: Plan, scheduler: Scheduler | None) -> Launcher:
    """Return what starts the plan's programs in a job of *scheduler*; None: outside of one.

    Where the plan's launcher is of the other scheduler it is the one of the plan's MPI.
    """
    if planned.runtime.beside == "ddl":
        return DDLRUN
    if scheduler is None or planned.launcher.kind != _OTHERS[scheduler]:
        return planned.launcher
    mpi = mpi_of(planned)
    own = LAUNCHERS.get(mpi.component) if mpi else None
    if own is None:
        raise UsageError(
            f"{planned.launcher.kind} starts no ranks in a job of {scheduler}, and no other "
            "launcher of this stack's MPI is known",
            f"it is for {planned.site} and the scheduler there",
        )
    return own


def uses_gpus(planned: Plan, shape: Shape) -> bool:
    """Whether each rank gets a GPU: so the stack says, or TensorFlow's strategies find some."""
    if shape.gpus_per_node is not None and planned.runtime.beside == "tf-distribute":
        return shape.gpus_per_node > 0
    return any(pin.component in _GPU for pin in (*planned.pins, *planned.brought))
