"""What a launcher's module has. It starts nothing: a request comes in, words go out.

A new launcher is a module with these names, and its line in LAUNCHERS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from ...model.launch import LaunchRequest, Words


class MpiTraits(NamedTuple):
    """The MPIs whose programs a launcher starts: read where a launcher is chosen for a plan.

    ``own_of``: the MPIs that bring it, each with the command that they call it by. ``not_of``: MPIs
    whose ranks it does not start: each would be rank 0 of 1. ``only``: it starts only MPI programs.
    Which runtimes bring a launcher, these state.
    """

    own_of: Mapping[str, Words] = MappingProxyType({})
    not_of: frozenset[str] = frozenset()
    only: bool = False


class JobTraits(NamedTuple):
    """How a launcher works in a job: read where hosts, job scripts and images are prepared.

    ``scheduler``: the one that it belongs to, and ``once_a_node``: returns the words by which it
    starts one process on every node of a job, the command among them. ``job_only``: it works only
    inside a job of that scheduler. ``outside_image``: it is the host's, and not inside an image.
    ``asks_scheduler``: it finds the hosts of a job by itself, and starts a step of the job on them.
    ``one_per_node``: it is started once on every node and starts the ranks there. ``on_every_gpu``:
    it starts a rank on every GPU, and takes no number. ``launch_node``: jobs have a node of their
    own for the script (LSF with IBM's CSM).
    """

    scheduler: str | None = None
    once_a_node: Callable[[LaunchRequest], Words] | None = None
    job_only: bool = False
    outside_image: bool = False
    asks_scheduler: bool = False
    one_per_node: bool = False
    on_every_gpu: bool = False
    launch_node: bool = False


class LineTraits(NamedTuple):
    """What a launch line can state: read where the line is checked and written.

    ``cuda_aware``: an option for an MPI that is handed GPU memory. ``rdma``: the form for Open
    MPI's own RDMA. ``ucx``: an option for UCX. ``exports``: the variables that an option names;
    ``inherits``: without such an option, every variable is handed on. ``root_variables``: what root
    must set to 1 to start ranks. ``variables``: returns those that the launcher is started with, as
    NAME=VALUE. ``cores``: an option for the cores of a rank, or what starts it on every node has.
    ``options``: those that a site or recipe may state besides, each with a pattern of what follows
    its name; none that ``options()`` writes, unless it leaves its own out.
    """

    cuda_aware: bool = False
    rdma: bool = False
    ucx: bool = False
    exports: bool = False
    inherits: bool = True
    root_variables: Words = ()
    variables: Callable[[LaunchRequest], Words] | None = None
    cores: bool = False
    options: Mapping[str, str] = MappingProxyType({})


class Traits(NamedTuple):
    """What is particular about a launcher, by who reads it."""

    mpi: MpiTraits = MpiTraits()
    job: JobTraits = JobTraits()
    line: LineTraits = LineTraits()


class Launcher(Protocol):
    """One launcher. ``COMMAND``: its name where the site states no other; () for none."""

    COMMAND: Words
    TRAITS: Traits

    def options(self, request: LaunchRequest) -> Words:
        """Return the words between command and program.

        Raises UsageError, with what to do instead, for what this launcher cannot start.
        """
