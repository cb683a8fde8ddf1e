"""Launchers: the words that start a program on all ranks, from one request, in one place.

Sources of the options stand in each launcher's module.
"""

from __future__ import annotations

from ..errors import UsageError
from ..model.launch import LaunchRequest, Words
from ..model.site import Launcher as SiteLauncher
from . import (
    custom,
    ddlrun,
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
from .protocol import Launcher, Traits
from .shape import check_node, site_shape

LAUNCHERS: dict[str, Launcher] = {
    "openmpi": openmpi,
    "spectrum-mpi": spectrum_mpi,
    "hydra": hydra,
    "srun": srun,
    "jsrun": jsrun,
    "ddlrun": ddlrun,
    "horovodrun": horovodrun,
    "torchrun": torchrun,
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
    return (
        *_variables(request, launcher.TRAITS),
        *_on_every_node(request, launcher.TRAITS),
        *(request.command or launcher.COMMAND),
        *launcher.options(request),
    )


def own_launcher(mpi: str) -> SiteLauncher | None:
    """Return what an MPI (its component) brings to start its ranks; None: none is known."""
    for kind, launcher in LAUNCHERS.items():
        command = launcher.TRAITS.own_of.get(mpi)
        if command is not None:
            return SiteLauncher(kind=kind, command=command)
    return None


def runtime_launcher(runtime: str | None) -> SiteLauncher | None:
    """Return the one launcher of a runtime's programs; None: any will do."""
    for kind, launcher in LAUNCHERS.items():
        if runtime is not None and launcher.TRAITS.only_for == runtime:
            return SiteLauncher(kind=kind, command=launcher.COMMAND)
    return None


def api_launcher(api: str) -> SiteLauncher | None:
    """Return the launcher that the programs of an API bring along; None: they bring none."""
    for kind, launcher in LAUNCHERS.items():
        if api in launcher.TRAITS.apis:
            return SiteLauncher(kind=kind, command=launcher.COMMAND)
    return None


def programs() -> tuple[str, ...]:
    """Return what the launchers' programs are called, and those that an MPI brings, each once."""
    commands = (
        command
        for launcher in LAUNCHERS.values()
        for command in (launcher.COMMAND, *launcher.TRAITS.own_of.values())
    )
    return tuple(sorted({command[0] for command in commands if command}))


def _variables(request: LaunchRequest, traits: Traits) -> Words:
    """Return what sets variables: for a launcher that hands on all, and for its own step."""
    values = () if traits.exports else tuple(each for each in request.exports if "=" in each)
    if request.step and traits.asks_scheduler and request.nodes > 1:
        values = (*values, request.step.variable)
    return ("env", *values) if values else ()


def _on_every_node(request: LaunchRequest, traits: Traits) -> Words:
    """Return what starts the launcher itself on every node, where it must be."""
    if not traits.one_per_node or request.nodes == 1:
        return ()
    starters = (
        each.once_a_node(request)
        for each in LAUNCHERS.values()
        if request.scheduler is not None and each.TRAITS.scheduler == request.scheduler
    )
    words = next(filter(None, starters), None)
    if words is None:
        raise UsageError(
            f"{request.kind} must be started on every node, and outside a job nothing does that",
            "run it in a job of Slurm or LSF",
            "or start a program that knows MPI by mpirun",
        )
    return words


__all__ = [
    "LAUNCHERS",
    "Launcher",
    "Traits",
    "api_launcher",
    "check_node",
    "launch_line",
    "launch_words",
    "own_launcher",
    "programs",
    "runtime_launcher",
    "site_shape",
]
