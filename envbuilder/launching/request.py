"""What is to be started: the request that a launch line is made from, and its checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..errors import UsageError
from ..model.site import LauncherKind
from ..text import shown
from .hosts import Hosts
from .shape import Shape, check_node

Kind = LauncherKind | Literal["distributed-dl-trainingrun"]
"""The launchers of sites, and that of the collective runtime."""

Scheduler = Literal["slurm", "lsf"]

_EXPORT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(=[^\n\0]*)?")


@dataclass(frozen=True)
class Mpi:
    """The MPI of the plan: its component (``openmpi``, ``mpich``, ...) and version."""

    component: str
    version: str

    @property
    def series(self) -> int:
        """The first number of the version: 4 for 4.1.4. 0 where it begins with none."""
        found = re.match(r"[0-9]+", self.version)
        return int(found[0]) if found else 0


@dataclass(frozen=True)
class Wire:
    """What is known or wanted of the transport.

    ``ucx``: MPI and site have UCX. ``rdma``: Open MPI's own RDMA, which cannot do with threads.
    ``gloo``: without MPI. ``cuda_aware``: the program hands the MPI pointers to GPU memory.
    """

    ucx: bool = False
    rdma: bool = False
    gloo: bool = False
    cuda_aware: bool = False


@dataclass(frozen=True)
class JobHosts:
    """As many nodes, with room for as many ranks each, whose names only the job knows.

    ``names`` and ``endpoint`` stand in the line for ``host:4,host2:4`` and for ``host:port`` of
    the first one, for launchers that ask no scheduler; they are put into it as they are.
    """

    nodes: int
    slots: int
    names: str | None = None
    endpoint: str | None = None


@dataclass(frozen=True)
class LaunchRequest:
    """Which program to start on how many ranks, and by what.

    ``hosts``: None for this machine alone; ranks fill them in their order. ``scheduler``: the line
    is for inside a job of it. ``allocated``: the hosts are all that the job has, so launchers that
    ask the scheduler are not told them. ``command``: the site's own words before the options
    (``srun --mpi=pmix``); () for the launcher's name. ``gpus``: every rank uses one GPU of its own.
    ``cores_per_rank``: None leaves it to the launcher. ``exports``: ``NAME``, or ``NAME=VALUE``,
    for every rank's environment.
    """

    kind: Kind
    program: tuple[str, ...]
    ranks: int
    hosts: Hosts | JobHosts | None = None
    scheduler: Scheduler | None = None
    allocated: bool = False
    command: tuple[str, ...] = ()
    mpi: Mpi | None = None
    wire: Wire = field(default_factory=Wire)
    gpus: bool = False
    cores_per_rank: int | None = None
    exports: tuple[str, ...] = ()
    shape: Shape = field(default_factory=Shape)

    @property
    def named(self) -> Hosts:
        """The hosts that the launcher must be told; () where there are none or the job knows."""
        return self.hosts if isinstance(self.hosts, tuple) and not self.allocated else ()

    @property
    def all_slots(self) -> bool:
        """Whether there is a rank for every slot of the job."""
        hosts = self.hosts if isinstance(self.hosts, tuple) and self.allocated else ()
        return self.ranks == sum(host.slots for host in hosts)

    @property
    def nodes(self) -> int:
        """How many nodes the ranks are on; hosts that are named but not needed do not count."""
        if isinstance(self.hosts, JobHosts):
            return self.hosts.nodes
        return len(used_hosts(self.hosts, self.ranks)) if self.hosts else 1

    def per_node(self) -> int | None:
        """Return the ranks on each node, None where that differs from node to node."""
        if isinstance(self.hosts, JobHosts):
            each, rest = divmod(self.ranks, self.hosts.nodes)
            return None if rest else each
        placed = {host.slots for host in used_hosts(self.hosts or (), self.ranks)}
        return next(iter(placed), self.ranks) if len(placed) < 2 else None

    def most_per_node(self) -> int:
        """Return the most ranks that any node gets."""
        if isinstance(self.hosts, JobHosts):
            return min(self.ranks, self.hosts.slots)
        placed = used_hosts(self.hosts or (), self.ranks)
        return max((host.slots for host in placed), default=self.ranks)


def used_hosts(hosts: Hosts, ranks: int) -> Hosts:
    """Return the hosts that *ranks* ranks fill one after another, with the ranks on each."""
    used = []
    left = ranks
    for host in hosts:
        here = min(host.slots, left)
        if here:
            used.append(type(host)(host.name, here))
        left -= here
    return tuple(used)


def check_request(request: LaunchRequest) -> None:
    """Raise UsageError for what no launcher could start, or would start and hang."""
    for check in _CHECKS:
        check(request)


def _program(request: LaunchRequest) -> None:
    if not request.program:
        raise UsageError("there is no program to start", "name it: python train.py")
    if request.program[0].startswith("-"):
        raise UsageError(
            f"the program's name begins with a hyphen: '{shown(request.program[0])}'",
            "give an executable first: python train.py --epochs 3",
        )


def _exports(request: LaunchRequest) -> None:
    wrong = next((each for each in request.exports if not _EXPORT.fullmatch(each)), None)
    if wrong is not None:
        raise UsageError(f"not a variable to export: '{shown(wrong)}'", "write NAME, or NAME=VALUE")


def _ranks(request: LaunchRequest) -> None:
    ranks, hosts = request.ranks, request.hosts
    if ranks < 1:
        raise UsageError(f"{ranks} ranks cannot be started", "ask for one or more")
    if hosts is None:
        return
    if isinstance(hosts, JobHosts):
        slots, nodes = hosts.nodes * hosts.slots, hosts.nodes
    else:
        slots, nodes = sum(host.slots for host in hosts), len(hosts)
    if ranks > slots:
        raise UsageError(
            f"{ranks} ranks are more than the {slots} slots of {nodes} "
            f"{'host' if nodes == 1 else 'hosts'}",
            "name more hosts, or give them more slots (host:4)",
            "ask for fewer ranks",
        )


def _node(request: LaunchRequest) -> None:
    most = request.most_per_node()
    check_node(
        request.shape,
        ranks=most,
        gpus=most if request.gpus else 0,
        cores_per_rank=request.cores_per_rank or 1,
    )


def _mpi(request: LaunchRequest) -> None:
    mpi = request.mpi
    others = _NOT_OF.get(request.kind, frozenset())
    if mpi is not None and mpi.component in others:
        raise UsageError(
            f"the ranks are linked to {mpi.component}, which {request.kind} does not start: each "
            "would be rank 0 of 1",
            f"start them by the launcher of {mpi.component}",
        )


def _wire(request: LaunchRequest) -> None:
    wire, mpi = request.wire, request.mpi
    if wire.gloo and (wire.rdma or wire.ucx):
        raise UsageError(
            "Gloo carries no RDMA and no UCX", "start it by MPI, or without these options"
        )
    if wire.gloo and request.kind in _ONLY_MPI:
        raise UsageError(
            f"{request.kind} starts MPI programs; Gloo has launchers of its own",
            "take --launcher horovodrun, torchrun or distributed-dl-trainingrun",
        )
    if wire.rdma and (request.kind != "openmpi" or mpi is None or mpi.component != "openmpi"):
        raise UsageError(
            "this form of RDMA is Open MPI's",
            "start the program by mpirun of Open MPI below 4, or without that option",
        )
    if wire.rdma and mpi is not None and mpi.series >= 4:
        raise UsageError(
            f"Open MPI {mpi.version} has no use for the form with HOROVOD_MPI_THREADS_DISABLE=1, "
            "which is for the openib transport of Open MPI below 4",
            "from 4.0 on UCX does RDMA, with threads: state ucx of the MPI, leave that option out",
        )


def _cuda(request: LaunchRequest) -> None:
    if request.wire.cuda_aware and request.kind not in _CUDA_OPTION:
        raise UsageError(
            f"{request.kind} has no option for an MPI that is handed GPU memory: it can, or "
            "cannot, as it was built",
            "leave --cuda-aware out; it is for Spectrum MPI and jsrun",
        )


# Those that switch it on (-gpu) where a program needs it.
_CUDA_OPTION = frozenset({"spectrum-mpi", "jsrun"})

_ONLY_MPI = frozenset({"openmpi", "spectrum-mpi", "hydra", "jsrun", "ddlrun"})

# mpirun of Open MPI asks for its own version, see there.
_NOT_OF: Mapping[Kind, frozenset[str]] = {
    "hydra": frozenset({"openmpi", "spectrum-mpi"}),
    "spectrum-mpi": frozenset({"openmpi", "mpich"}),
    "jsrun": frozenset({"mpich"}),
}

_CHECKS: Sequence[Callable[[LaunchRequest], None]] = (
    _program,
    _exports,
    _ranks,
    _node,
    _mpi,
    _wire,
    _cuda,
)
