"""The launch lines: one small function for each launcher, from a request to words.

Sources of the options: Horovod's docs/mpi.rst and horovod/runner/mpi_run.py, the man pages of
mpirun (Open MPI 3, 4, 5), mpiexec (hydra), srun and jsrun, OLCF's user guide for Summit, IBM's
documentation of ddlrun, and torchrun's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..errors import UsageError
from .hosts import text_of
from .request import JobHosts, Kind, LaunchRequest, Mpi, check_request, used_hosts

Words = tuple[str, ...]

# Ports below are taken by services, those above are handed out to whoever asks.
RENDEZVOUS_PORT = 29400

# IBM licensed DDL for so many nodes of Summit (OLCF user guide).
_DDL_NODES = 954

# `srun --mpi=`: what the libraries of each MPI were built to speak. Spectrum MPI comes with its
# own launchers.
_PMI: Mapping[str, str] = {"openmpi": "pmix", "mpich": "pmi2"}


def launch_line(request: LaunchRequest) -> Words:
    """Return the words that start the program on all ranks.

    Raises UsageError, with what to do instead, for requests that contradict themselves, the
    site's shape or the launcher.
    """
    check_request(request)
    return (*_LINES[request.kind](request), *request.program)


def _openmpi(request: LaunchRequest) -> Words:
    """``mpirun`` of Open MPI.

    Long options have two hyphens: Open MPI 5 takes ``-bind-to none`` for the program's name, and
    all series know the long form.
    """
    mpi = _known(request, "openmpi")
    rdma = ("HOROVOD_MPI_THREADS_DISABLE=1",) if request.wire.rdma else ()
    return (
        *(request.command or ("mpirun",)),
        "-n",
        str(request.ranks),
        *_hosts(request, "--host"),
        *("--bind-to", "none", "--map-by", "slot"),
        *_exports_by(request, "-x", rdma),
        *_transport(request, mpi),
    )


def _transport(request: LaunchRequest, mpi: Mpi) -> Words:
    if mpi.series >= 4:
        return ("--mca", "pml", "ucx") if request.wire.ucx else ()
    # The openib transport does not go together with threads; the RDMA form does without those.
    without = () if request.wire.rdma else ("--mca", "btl", "^openib")
    return ("--mca", "pml", "ob1", *without)


def _spectrum(request: LaunchRequest) -> Words:
    """``mpirun`` of IBM Spectrum MPI: Open MPI's options, but transports of its own.

    Its binding is what horovodrun gives it (horovod/runner/mpi_run.py).
    """
    return (
        *(request.command or ("mpirun",)),
        *(("-gpu",) if request.wire.cuda_aware else ()),
        "-n",
        str(request.ranks),
        *_hosts(request, "--host"),
        *("--bind-to", "socket", "--map-by", "socket", "--rank-by", "core"),
        *_exports_by(request, "-x"),
    )


def _hydra(request: LaunchRequest) -> Words:
    """``mpiexec`` of MPICH: binds nothing by itself, and hands on the whole environment."""
    return (
        *_with_values(request),
        *(request.command or ("mpiexec",)),
        "-n",
        str(request.ranks),
        *_hosts(request, "-hosts"),
    )


def _srun(request: LaunchRequest) -> Words:
    """``srun``, inside an allocation or for one of its own."""
    per_node = request.per_node()
    if per_node is None and not request.all_slots:
        raise UsageError(
            "srun --ntasks-per-node wants the same number of ranks on every node",
            "ask for as many on each: -H host:2,host2:2",
            "or take the launcher of its MPI, which takes any: --launcher openmpi",
        )
    return (
        *_with_values(request),
        *_srun_words(request, _command_of_srun(request), request.ranks, per_node),
    )


def _command_of_srun(request: LaunchRequest) -> Words:
    command = request.command or ("srun",)
    pmi = _PMI.get(request.mpi.component) if request.mpi else None
    stated = any(word.startswith("--mpi") for word in command)
    return command if stated or pmi is None else (*command, f"--mpi={pmi}")


def _srun_words(request: LaunchRequest, command: Words, tasks: int, per_node: int | None) -> Words:
    """*per_node*: None for a whole allocation with more slots on some nodes, which Slurm knows."""
    words = (
        *command,
        f"--nodes={request.nodes}",
        f"--ntasks={tasks}",
        *((f"--ntasks-per-node={per_node}",) if per_node else ()),
        # Those that are left would wait for one that died, until the job's time is up.
        "--kill-on-bad-exit=1",
    )
    names = _names(request)
    return (*words, f"--nodelist={names}") if names else words


def _jsrun(request: LaunchRequest) -> Words:
    """``jsrun`` with one resource set a node that holds all its GPUs, as on Summit.

    NCCL and DDL between the ranks of a node need all its GPUs in one set. Cores are dealt out
    evenly, where nobody said how many a rank needs, and each rank is bound to its own.
    """
    per_node = request.per_node()
    if per_node is None:
        raise UsageError(
            "jsrun's resource sets are all alike: every node must get as many ranks",
            "ask for a multiple of the nodes",
        )
    _in_lsf_job(request)
    each = request.cores_per_rank or max(1, _cores(request) // per_node)
    smpi = ("--smpiargs=-gpu",) if request.wire.cuda_aware else ()
    return (
        *_with_values(request),
        *(request.command or ("jsrun",)),
        *smpi,
        *_resource_sets(request, tasks=per_node, bind=f"packed:{each}"),
    )


def _in_lsf_job(request: LaunchRequest) -> None:
    if request.scheduler != "lsf":
        raise UsageError(
            "jsrun starts ranks inside a job of LSF only, and here is none",
            "get one first: bsub -Is -nnodes 1 -W 30 -P ACCOUNT $SHELL",
            "or render a job: envbuild render RECIPE --as lsf",
        )
    if request.named:
        raise UsageError(
            "jsrun takes the nodes of its job and no list of hosts",
            "leave the hosts out; ask the scheduler for nodes",
        )


def _resource_sets(request: LaunchRequest, *, tasks: int, bind: str) -> Words:
    gpus = request.shape.gpus_per_node
    if request.gpus and gpus is None:
        raise UsageError(
            "jsrun hands out no GPU that it is not told of, and how many a node has is not known",
            "state facts: {gpus-per-node: 6} in the site file",
        )
    return (
        f"-n{request.nodes}",
        "-r1",
        f"-g{(gpus or 0) if request.gpus else 0}",
        f"-a{tasks}",
        f"-c{_cores(request)}",
        f"-b{bind}",
    )


def _cores(request: LaunchRequest) -> int:
    cores = request.shape.cores_per_node
    if cores is None:
        raise UsageError(
            "jsrun must be told how many cores a node has",
            "state facts: {cores-per-node: 42} in the site file",
        )
    return cores


def _ddlrun(request: LaunchRequest) -> Words:
    """``ddlrun``: one rank for every GPU of every node; inside an LSF job it knows the nodes."""
    gpus, per_node = request.shape.gpus_per_node, request.per_node()
    if per_node is None or (gpus is not None and per_node != gpus):
        raise UsageError(
            f"ddlrun starts a rank on every GPU of every node, not {request.ranks} on "
            f"{request.nodes} nodes" + (f" with {gpus} GPUs each" if gpus else ""),
            f"ask for {request.nodes * gpus} ranks" if gpus else "give every host as many slots",
        )
    if request.nodes > _DDL_NODES:
        raise UsageError(
            f"DDL is licensed for {_DDL_NODES} nodes, not {request.nodes}",
            "use a Horovod that is built on NCCL",
        )
    words = request.command or ("ddlrun",)
    # Of jobs it knows those of LSF alone.
    knows = request.allocated and request.scheduler == "lsf"
    names = _names(replace(request, allocated=knows))
    if names:
        # It counts the GPUs itself and takes no slots.
        words = (*words, "-H", names)
    elif request.scheduler != "lsf" and request.nodes > 1:
        raise UsageError(
            "outside an LSF job ddlrun must be told the hosts", "name them: -H host1,host2"
        )
    for export in request.exports:
        words = (*words, "--mpiarg", f"-x {export}")
    return words


def _horovodrun(request: LaunchRequest) -> Words:
    """``horovodrun``, by MPI or by Gloo; both since 0.18. It hands on the environment itself."""
    mpi = request.mpi
    if not request.wire.gloo and mpi and mpi.component == "openmpi" and mpi.series >= 5:
        raise UsageError(
            f"horovodrun --mpi gives mpirun options that Open MPI {mpi.version} does not take "
            "(-bind-to none)",
            "start the program by mpirun itself",
            "or by horovodrun --gloo",
        )
    return (
        *_with_values(request),
        *(request.command or ("horovodrun",)),
        "--gloo" if request.wire.gloo else "--mpi",
        "-np",
        str(request.ranks),
        *_named_hosts(request),
    )


def _torchrun(request: LaunchRequest) -> Words:
    """``torchrun``, once on every node. It would take ``python`` for a script of Python's."""
    per_node = request.per_node()
    if per_node is None:
        raise UsageError(
            "torchrun starts as many ranks on every node",
            "ask for as many on each: -H host:2,host2:2",
        )
    values, command = _with_values(request), request.command or ("torchrun",)
    each = (f"--nproc_per_node={per_node}", "--no_python")
    if request.nodes == 1:
        return (*values, *command, "--standalone", "--nnodes=1", *each)
    start = _once_a_node(request)
    rendezvous = ("--rdzv_backend=c10d", "--rdzv_endpoint", _endpoint(request))
    return (*values, *start, *command, f"--nnodes={request.nodes}", *each, *rendezvous)


def _endpoint(request: LaunchRequest) -> str:
    hosts = request.hosts
    if isinstance(hosts, JobHosts) and hosts.endpoint is not None:
        return hosts.endpoint
    if isinstance(hosts, tuple) and hosts:
        return f"{hosts[0].name}:{RENDEZVOUS_PORT}"
    raise _no_names(request)


def _once_a_node(request: LaunchRequest) -> Words:
    """Return the words that start one process on every node."""
    if request.scheduler == "slurm":
        return _srun_words(request, ("srun",), request.nodes, 1)
    if request.scheduler == "lsf":
        return ("jsrun", *_resource_sets(request, tasks=1, bind="none"))
    raise UsageError(
        "torchrun must be started on every node, and outside a job nothing does that",
        "run it in a job of Slurm or LSF",
        "or start a program that knows MPI by mpirun",
    )


def _runtime(request: LaunchRequest) -> Words:
    """The collective runtime's launcher, in the lower case spelling."""
    return (
        *_with_values(request),
        *(request.command or ("distributed-dl-trainingrun",)),
        *(("--gloo",) if request.wire.gloo else ()),
        "-np",
        str(request.ranks),
        *_named_hosts(request),
    )


def _custom(request: LaunchRequest) -> Words:
    """A command that the site states whole, before ``-n RANKS PROGRAM``."""
    if not request.command:
        raise UsageError(
            "a custom launcher has no command",
            "state it in the site file: launcher: {command: [mpirun, --mca, pml, ucx]}",
        )
    if request.named:
        raise UsageError(
            "how a custom launcher takes hosts is not known",
            "name its kind in the site file, or start the program inside a job",
        )
    return (*_with_values(request), *request.command, "-n", str(request.ranks))


def _known(request: LaunchRequest, component: str) -> Mpi:
    if request.mpi is None or request.mpi.component != component or not request.mpi.series:
        raise UsageError(
            "which Open MPI it is must be known: its options differ from 3 to 5",
            "pin openmpi in the recipe's stack",
        )
    return request.mpi


def _hosts(request: LaunchRequest, option: str) -> Words:
    """Return the hosts for an MPI's launcher, which finds those of a job by itself."""
    return (option, text_of(request.named)) if request.named else ()


def _named_hosts(request: LaunchRequest) -> Words:
    """Return the hosts for a launcher that asks no scheduler."""
    hosts = request.hosts
    if not isinstance(hosts, JobHosts):
        return ("-H", text_of(hosts)) if hosts else ()
    if hosts.nodes == 1:
        return ()
    if hosts.names is None:
        raise _no_names(request)
    return ("-H", hosts.names)


def _names(request: LaunchRequest) -> str:
    """Return the hosts with ranks, ``host,host2``; empty where the job knows them.

    Of a job's hosts some are named: else the scheduler would choose which.
    """
    hosts = request.hosts if isinstance(request.hosts, tuple) else ()
    used = used_hosts(hosts, request.ranks)
    known = request.allocated and len(used) == len(hosts)
    return "" if known else ",".join(host.name for host in used)


def _no_names(request: LaunchRequest) -> UsageError:
    return UsageError(
        f"{request.kind} asks no scheduler: for {request.nodes} nodes it must be told the hosts",
        "name them: -H host:4,host2:4",
        "or start the program in a job: envbuild render RECIPE --as job makes its script",
    )


def _exports_by(request: LaunchRequest, option: str, more: Words = ()) -> Words:
    return tuple(word for each in (*request.exports, *more) for word in (option, each))


def _with_values(request: LaunchRequest) -> Words:
    """Return what sets variables for a launcher that hands on the whole environment."""
    values = tuple(each for each in request.exports if "=" in each)
    return ("env", *values) if values else ()


_LINES: Mapping[Kind, Callable[[LaunchRequest], Words]] = {
    "openmpi": _openmpi,
    "spectrum-mpi": _spectrum,
    "hydra": _hydra,
    "srun": _srun,
    "jsrun": _jsrun,
    "ddlrun": _ddlrun,
    "horovodrun": _horovodrun,
    "torchrun": _torchrun,
    "distributed-dl-trainingrun": _runtime,
    "custom": _custom,
}

KINDS: tuple[Kind, ...] = tuple(_LINES)
"""Every launcher that there is a line for."""
