"""``mpirun`` of Open MPI. Sources: its man pages of releases 3, 4 and 5; Horovod's docs/mpi.rst."""

from __future__ import annotations

from ..errors import UsageError
from ..model.launch import LaunchRequest, Mpi, Words
from .options import exports_by, hosts_option
from .protocol import Traits

# Open MPI refuses to run as root without these, which a container or a test machine needs.
ROOT_VARIABLES = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")

COMMAND: Words = ("mpirun",)
TRAITS = Traits(
    own_of={"openmpi": ("mpiexec",)},
    mpi_only=True,
    asks_scheduler=True,
    rdma=True,
    ucx=True,
    exports=True,
    inherits=False,
    root_variables=ROOT_VARIABLES,
)


def options(request: LaunchRequest) -> Words:
    """Return its options, with two hyphens.

    Open MPI 5 takes ``-bind-to none`` for the program's name; all series know the long form.
    """
    mpi = request.mpi
    if mpi is None or mpi.component != "openmpi" or not mpi.series:
        raise UsageError(
            "which Open MPI it is must be known: its options differ from 3 to 5",
            "pin openmpi in the recipe's stack",
        )
    rdma = ("HOROVOD_MPI_THREADS_DISABLE=1",) if request.transport.rdma else ()
    return (
        "-n",
        str(request.ranks),
        *hosts_option(request, "--host"),
        *("--bind-to", "none", "--map-by"),
        "slot:OVERSUBSCRIBE" if request.oversubscribe else "slot",
        *exports_by(request, "-x", rdma),
        *_transport(request, mpi),
    )


def _transport(request: LaunchRequest, mpi: Mpi) -> Words:
    if mpi.series >= 4:
        return ("--mca", "pml", "ucx") if request.transport.ucx else ()
    # The openib transport does not go together with threads; the RDMA form does without those.
    without = () if request.transport.rdma else ("--mca", "btl", "^openib")
    return ("--mca", "pml", "ob1", *without)
