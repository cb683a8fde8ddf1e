"""Launchers: the words that start a program on all ranks, from one request, in one place.

Sources of the options stand in each launcher's module.
"""

from __future__ import annotations

from itertools import chain

from ...errors import UsageError
from ...model.launch import LaunchRequest, Shape, Words
from ...model.site import Partition, Site
from ...model.site import SiteLauncher as SiteLauncher
from . import (
    accelerate,
    custom,
    ddlrun,
    deepspeed,
    distributed_dl_trainingrun,
    horovodrun,
    hydra,
    jsrun,
    openmpi,
    spectrum_mpi,
    srun,
    torchrun,
)
from .checks import check_request
from .options import option_words
from .protocol import Launcher, Traits

LAUNCHERS: dict[str, Launcher] = {
    "openmpi": openmpi,
    "spectrum-mpi": spectrum_mpi,
    "hydra": hydra,
    "srun": srun,
    "jsrun": jsrun,
    "ddlrun": ddlrun,
    "horovodrun": horovodrun,
    "torchrun": torchrun,
    "accelerate": accelerate,
    "deepspeed": deepspeed,
    "distributed-dl-trainingrun": distributed_dl_trainingrun,
    "custom": custom,
}
"""Every launcher, by the name that site documents and ``envbuild launch --launcher`` use."""


def launch_line(request: LaunchRequest) -> Words:
    """Return the words that start the program on all ranks, the program last.

    Raises UsageError, with what to do instead, for requests that contradict themselves, the
    site's shape or the launcher.
    """
    return (*launch_words(request), *request.program)


def launch_words(request: LaunchRequest) -> Words:
    """Return the words before the program: the one place that makes them. Errors as above."""
    launcher = LAUNCHERS[request.kind]
    check_request(request, launcher.TRAITS)
    options = launcher.options(request)
    return (
        *_variables(request, launcher.TRAITS),
        *_on_every_node(request, launcher.TRAITS),
        *(request.command or launcher.COMMAND),
        # Of two values of one option the launchers take the last one.
        *option_words(request),
        *options,
    )


def own_launcher(mpi: str) -> SiteLauncher | None:
    """Return what an MPI (its component) brings to start its ranks; None: none is known."""
    commands = ((kind, each.TRAITS.mpi.own_of.get(mpi)) for kind, each in LAUNCHERS.items())
    return next((SiteLauncher(kind=kind, command=words) for kind, words in commands if words), None)


def programs() -> tuple[str, ...]:
    """Return what the launchers' programs are called, and those that an MPI brings, each once."""
    commands = ((each.COMMAND, *each.TRAITS.mpi.own_of.values()) for each in LAUNCHERS.values())
    return tuple(sorted({command[0] for own in commands for command in own if command}))


def _variables(request: LaunchRequest, traits: Traits) -> Words:
    """Return what sets variables: for a launcher that hands on all, and for its own step."""
    values = () if traits.line.exports else tuple(each for each in request.exports if "=" in each)
    if request.step and traits.job.asks_scheduler and request.nodes > 1:
        values = (*values, request.step.variable)
    if traits.line.variables:
        values = (*values, *traits.line.variables(request))
    return ("env", *values) if values else ()


def _on_every_node(request: LaunchRequest, traits: Traits) -> Words:
    """Return what starts the launcher itself on every node, where it must be."""
    if not traits.job.one_per_node or request.nodes == 1:
        return ()
    mpi = request.mpi.component if request.mpi else None
    able = [each.TRAITS for each in LAUNCHERS.values() if each.TRAITS.job.once_a_node]
    # jsrun belongs to CSM: where LSF is without it, a stack has the launcher of its MPI.
    schedulers = (
        each
        for each in able
        if each.job.scheduler == request.scheduler and not (each.job.launch_node and request.by_mpi)
    )
    mpis = (each for each in able if mpi in each.mpi.own_of)
    starter = next(chain(schedulers, mpis), None) if request.scheduler else None
    if starter is None or starter.job.once_a_node is None:
        raise UsageError(
            "launch.outside-job",
            f"{request.kind} must start on every node, which requires a job",
            "run it in a job of Slurm, LSF or PBS",
            "or start an MPI program with mpirun",
        )
    return starter.job.once_a_node(request)


def site_shape(site: Site, partition: Partition | None = None) -> Shape:
    """Return the shape of the site's nodes; what the partition states wins."""
    own = partition.facts if partition else ()
    stated = {name: value for name, value in own if value is not None}
    facts = site.facts.model_copy(update=stated)
    return Shape(facts.gpus_per_node, facts.cores_per_node)
