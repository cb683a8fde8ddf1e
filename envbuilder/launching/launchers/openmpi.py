"""``mpirun`` of Open MPI. Sources: its man pages of releases 3, 4 and 5; Horovod's docs/mpi.rst."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import UsageError
from ...model.launch import JobHosts, LaunchRequest, Mpi, Words, text_of
from .options import exports_by, hosts_option, is_stated
from .protocol import JobTraits, LineTraits, MpiTraits, Traits

# Open MPI refuses to run as root without these, which a container or a test machine needs.
ROOT_VARIABLES = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")

COMMAND: Words = ("mpirun",)

# Which jobs it knows the hosts of only if it is built with the library of their scheduler, which
# no wheel and no package of a distribution is.
_TOLD = "pbs"


def hosts_of_job(request: LaunchRequest) -> Words:
    """Return the hosts, those of a job too where they must be told."""
    hosts = request.hosts
    if request.named or request.scheduler != _TOLD or hosts is None:
        return hosts_option(request, "--host")
    names = hosts.names if isinstance(hosts, JobHosts) else text_of(hosts)
    return ("--host", names) if names else ()


def once_a_node(request: LaunchRequest) -> Words:
    """Return what starts one process on every node, which may use all of it."""
    command = MPI_COMMANDS[request.mpi.component] if request.mpi else COMMAND
    return (
        *(*command, "-n", str(request.nodes), *hosts_of_job(request)),
        *("--bind-to", "none", "--map-by", "ppr:1:node"),
    )


OPTIONS: Mapping[str, str] = {
    "--mca": r" \w+ \S+",
    **dict.fromkeys(("--bind-to", "--map-by", "--rank-by"), r" [\w:=,-]+"),
    "--cpu-list": r" [\d,-]+",
    "--prefix": r" /\S+",
    **dict.fromkeys(("--report-bindings", "--display-map", "--display-allocation"), ""),
    **dict.fromkeys(("--tag-output", "--timestamp-output", "--merge-stderr-to-stdout"), ""),
    "--use-hwthread-cpus": "",
}
"""Those of the man page of release 4 that place ranks, or their output, or set parameters."""

# The MPIs that these options are of, and what each brings.
MPI_COMMANDS: Mapping[str, Words] = {"openmpi": ("mpiexec",), "spectrum-mpi": ("mpirun",)}

TRAITS = Traits(
    mpi=MpiTraits(own_of={"openmpi": MPI_COMMANDS["openmpi"]}, only=True),
    job=JobTraits(once_a_node=once_a_node, asks_scheduler=True),
    line=LineTraits(
        rdma=True,
        ucx=True,
        exports=True,
        inherits=False,
        root_variables=ROOT_VARIABLES,
        cores=True,
        options=OPTIONS,
    ),
)


def options(request: LaunchRequest) -> Words:
    """Return its options, with two hyphens.

    Open MPI 5 takes ``-bind-to none`` for the program's name; all series know the long form.
    """
    mpi = request.mpi
    if mpi is None or mpi.component != "openmpi" or not mpi.series:
        raise UsageError(
            "launch.unknown-openmpi-release",
            "the release of Open MPI is unknown; the options of mpirun depend on it",
            "pin openmpi in the stack of the recipe",
        )
    rdma = ("HOROVOD_MPI_THREADS_DISABLE=1",) if request.transport.rdma else ()
    return (
        "-n",
        str(request.ranks),
        *hosts_of_job(request),
        *_places(request),
        *exports_by(request, "-x", rdma),
        *_transport(request, mpi),
    )


def _places(request: LaunchRequest) -> Words:
    """Return how ranks are bound and mapped, but for what site or recipe state.

    mpirun refuses the number of cores of a rank beside a binding that is not to them.
    """
    cores = request.cores_per_rank
    bind = ("--bind-to", "core" if cores else "none")
    slot = "slot:OVERSUBSCRIBE" if request.oversubscribe else "slot"
    place = ("--map-by", f"slot:PE={cores}" if cores else slot)
    return (
        *(() if is_stated(request, "--bind-to") and not cores else bind),
        *(() if is_stated(request, "--map-by") and not cores else place),
    )


def _transport(request: LaunchRequest, mpi: Mpi) -> Words:
    wanted = {"pml": "ucx"} if request.transport.ucx else {}
    if mpi.series < 4:
        # openib does not go together with threads; the RDMA form does without those.
        wanted = {"pml": "ob1", **({} if request.transport.rdma else {"btl": "^openib"})}
    stated = {option.split()[1] for option in request.options if option.startswith("--mca ")}
    own = ((key, value) for key, value in wanted.items() if key not in stated)
    return tuple(word for key, value in own for word in ("--mca", key, value))
