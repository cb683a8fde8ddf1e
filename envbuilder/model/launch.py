"""What is to be started: hosts, the shape of a node, and the request a launch line is made from."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import NamedTuple

Words = tuple[str, ...]

# Ports below are taken by services, those above are handed out to whoever asks.
RENDEZVOUS_PORT = 29400


def job_port(job: int) -> int:
    """Return a port of the job's own: two jobs on one node must not meet at one."""
    return 20000 + job % 10000


@dataclass(frozen=True)
class Host:
    """One host and how many ranks there is room for.

    ``gpus``, ``cpus``: those of it that a job has; None: unknown, or it is no job's. ``bare``: it
    was named without a number.
    """

    name: str
    slots: int
    gpus: int | None = None
    cpus: int | None = None
    bare: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.name}:{self.slots}"


Hosts = tuple[Host, ...]


@dataclass(frozen=True)
class JobHosts:
    """As many nodes, with room for as many ranks each, whose names only the job knows.

    ``names`` and ``endpoint`` stand in the line for ``host:4,host2:4`` and for ``host:port`` of
    the first one, for launchers that ask no scheduler; they are put into it as they are.
    ``endpoint_parts``: those of a variable, for launchers that take host and port apart.
    """

    nodes: int
    slots: int
    names: str | None = None
    endpoint: str | None = None
    endpoint_parts: tuple[str, str] | None = None


class LaunchNode(NamedTuple):
    """LSF with IBM's CSM: a job's first host takes no rank, and the slots of the others are cores.

    ``room``: how many ranks a node has room for; None: one for each core.
    """

    room: int | None


class Shape(NamedTuple):
    """GPUs and physical cores of one node; None: not stated, so nothing is checked."""

    gpus_per_node: int | None = None
    cores_per_node: int | None = None


class Mpi(NamedTuple):
    """The MPI of the plan: its component (``openmpi``, ``mpich``, ...) and version."""

    component: str
    version: str

    @property
    def series(self) -> int:
        """The first number of the version: 4 for 4.1.4. 0 where it begins with none."""
        match = re.match(r"[0-9]+", self.version)
        return int(match[0]) if match else 0


class TransportOptions(NamedTuple):
    """What is known or wanted of the transport.

    ``ucx``: MPI and site have UCX. ``rdma``: Open MPI's own RDMA, which cannot do with threads.
    ``gloo``: without MPI. ``cuda_aware``: the program hands the MPI pointers to GPU memory.
    """

    ucx: bool = False
    rdma: bool = False
    gloo: bool = False
    cuda_aware: bool = False


class JobStep(NamedTuple):
    """A step of a job that the shell itself is in (``srun --pty bash``), which holds the CPUs.

    A further step waits for them for ever unless it may share them. ``option``: what the
    scheduler's own launcher takes for that; None: this release needs none. ``variable``:
    ``NAME=VALUE``, for launchers that start the scheduler's steps themselves.
    """

    option: str | None
    variable: str


class TaskRequest(NamedTuple):
    """CPUs and GPUs that a job asks for by the task; None: it does not.

    The steps of a job do not take the CPUs from it, and take the GPUs also where they have another
    number of tasks: a line states both for its own step.
    """

    cpus: int | None = None
    gpus: int | None = None


class StartCommand(NamedTuple):
    """How a script starts a smoke test's ranks: the launch line but for the program.

    Of a module's help it is the whole line, program and all.

    ``root_variables``: what root must set to 1. ``settings``: lines of bash before the line.
    """

    ranks: int
    words: Words
    root_variables: Words = ()
    settings: Words = ()


class EnvironmentProgram(NamedTuple):
    """A program that comes with an environment: in the prefix, or in a module of the site.

    ``module``: None for one in the prefix.
    """

    name: str
    module: str | None = None


@dataclass(frozen=True)
class LaunchRequest:
    """Which program to start on how many ranks, and by what.

    ``kind``: a name of LAUNCHERS. ``hosts``: None for this machine alone; ranks fill them in their
    order. ``scheduler``: the line is for inside a job of it. ``step``: the step of the job that the
    shell is in. ``allocated``: the hosts are all that the job has, so launchers that ask the
    scheduler are not told them. ``command``: the site's own words before the options
    (``srun --mpi=pmix``); () for the launcher's name. ``gpus``: every rank uses one GPU of its own.
    ``cores_per_rank``: None leaves it to the launcher. ``task``: what the job asks for by the task.
    ``port``: where ranks without MPI meet on the first host. ``by_mpi``: the stack's launcher is
    its MPI's own, not the site's. ``in_order``: ranks must fill one host after another.
    ``exports``: ``NAME``, or ``NAME=VALUE``, for every rank's environment. ``options``: those that
    site and recipe state for this launcher, each as one text. ``in_image``: inside an
    image, where no scheduler of the host is reached. ``oversubscribe``: more ranks than slots, GPUs
    or cores are fine; a smoke test asks for it.
    """

    kind: str
    program: Words
    ranks: int
    hosts: Hosts | JobHosts | None = None
    scheduler: str | None = None
    allocated: bool = False
    command: Words = ()
    mpi: Mpi | None = None
    transport: TransportOptions = field(default_factory=TransportOptions)
    gpus: bool = False
    cores_per_rank: int | None = None
    task: TaskRequest = field(default_factory=TaskRequest)
    port: int = RENDEZVOUS_PORT
    by_mpi: bool = False
    in_order: bool = False
    exports: Words = ()
    options: Words = ()
    shape: Shape = field(default_factory=Shape)
    step: JobStep | None = None
    in_image: bool = False
    oversubscribe: bool = False

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
            used.append(replace(host, slots=here))
        left -= here
    return tuple(used)


def slots_of(hosts: Hosts | JobHosts | None) -> int:
    """Return how many ranks there is room for; 0 where no host is named."""
    if isinstance(hosts, JobHosts):
        return hosts.nodes * hosts.slots
    return sum(host.slots for host in hosts or ())


def text_of(hosts: Hosts) -> str:
    """Return the hosts as launchers take them: ``host:4,host2:4``."""
    return ",".join(str(host) for host in hosts)
