"""``mpirun`` of IBM Spectrum MPI: Open MPI's options, but transports of its own.

Its binding is what horovodrun gives it (horovod/runner/mpi_run.py).
"""

from __future__ import annotations

from ...model.launch import LaunchRequest, Words
from .openmpi import MPI_COMMANDS, ROOT_VARIABLES, once_a_node
from .options import exports_by, hosts_option
from .protocol import JobTraits, LineTraits, MpiTraits, Traits

COMMAND: Words = ("mpirun",)
TRAITS = Traits(
    mpi=MpiTraits(
        own_of={"spectrum-mpi": MPI_COMMANDS["spectrum-mpi"]},
        not_of=frozenset({"openmpi", "mpich"}),
        only=True,
    ),
    job=JobTraits(once_a_node=once_a_node, outside_image=True, asks_scheduler=True),
    line=LineTraits(
        cuda_aware=True,
        exports=True,
        inherits=False,
        root_variables=ROOT_VARIABLES,
        options={"--mca": r" \w+ \S+"},
    ),
)


def options(request: LaunchRequest) -> Words:
    """Return its options. More ranks than cores may share a socket in a smoke test."""
    bind, place = ("socket:overload-allowed", "socket:OVERSUBSCRIBE")
    if not request.oversubscribe:
        bind = place = "socket"
    return (
        *(("-gpu",) if request.transport.cuda_aware else ()),
        "-n",
        str(request.ranks),
        *hosts_option(request, "--host"),
        *("--bind-to", bind, "--map-by", place, "--rank-by", "core"),
        *exports_by(request, "-x"),
    )
