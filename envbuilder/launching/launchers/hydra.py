"""``mpiexec`` of MPICH and those made from it: binds nothing by itself, and hands on the whole
environment.
"""

from __future__ import annotations

from ...model.launch import LaunchRequest, Words, used_hosts
from .options import hosts_option
from .protocol import JobTraits, MpiTraits, Traits

COMMAND: Words = ("mpiexec",)


def _once_a_node(request: LaunchRequest) -> Words:
    """Return ``mpiexec`` with one process on every node."""
    hosts = ",".join(host.name for host in used_hosts(request.named, request.ranks))
    command = TRAITS.mpi.own_of[request.mpi.component] if request.mpi else COMMAND
    return (
        *(*command, "-n", str(request.nodes), "-ppn", "1"),
        *(("-hosts", hosts) if hosts else ()),
    )


TRAITS = Traits(
    mpi=MpiTraits(
        # Intel MPI and MVAPICH2 come with Hydra as well.
        own_of={"mpich": ("mpiexec",), "impi": ("mpiexec.hydra",), "mvapich2": ("mpiexec",)},
        not_of=frozenset({"openmpi", "spectrum-mpi"}),
        only=True,
    ),
    job=JobTraits(once_a_node=_once_a_node, asks_scheduler=True),
)


def options(request: LaunchRequest) -> Words:
    """Return its options. It starts more ranks than there are cores without a word."""
    return ("-n", str(request.ranks), *hosts_option(request, "-hosts"))
