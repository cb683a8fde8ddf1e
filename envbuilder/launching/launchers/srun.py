"""``srun`` of Slurm, inside an allocation or for one of its own. Source: its man page."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import UsageError
from ...model.launch import JobHosts, LaunchRequest, Words, slots_of, used_hosts
from .options import host_names, is_stated
from .protocol import JobTraits, LineTraits, Traits

COMMAND: Words = ("srun",)

# `srun --mpi=`: what the libraries of each MPI were built to speak. Spectrum MPI comes with its
# own launchers.
PMI: Mapping[str, str] = {"openmpi": "pmix", "mpich": "pmi2"}

_COUNT, _SIZE = r"=\d+", r"=\d+[KMGT]?"
_CPUS = ("--cpus-per-task", "-c", "--cpus-per-gpu")
OPTIONS: Mapping[str, str] = {
    "-c": r" \d+",
    **dict.fromkeys(("--cpus-per-task", "--cpus-per-gpu", "--ntasks-per-gpu"), _COUNT),
    **dict.fromkeys(("--threads-per-core", "--ntasks-per-core", "--ntasks-per-socket"), _COUNT),
    **dict.fromkeys(("--mem", "--mem-per-cpu", "--mem-per-gpu"), _SIZE),
    **dict.fromkeys(("--gpus-per-task", "--gpus-per-node"), r"=(\w+:)?\d+"),
    "--gpu-bind": r"=(verbose,)?(none|closest|(map_gpu|mask_gpu|single|per_task):[\w,*]+)",
    "--gpu-freq": r"=[\w=,]+",
    "--gres": r"=[\w:,.-]+",
    "--gres-flags": r"=[\w-]+",
    "--accel-bind": r"=[gnv]+",
    "--cpu-bind": r"=[\w:,*]+",
    "--cpu-freq": r"=[\w:-]+",
    "--mem-bind": r"=[\w:,*]+",
    "--distribution": r"=[\w*:,=]+",
    "--hint": r"=\w+",
    "--network": r"=[\w=,]+",
    "--mpi": r"=\w+",
    **dict.fromkeys(("--exact", "--exclusive", "--label", "--unbuffered", "--quiet"), ""),
}
"""Those of the man page that place ranks, or their output, and ask for no other allocation."""


def options(request: LaunchRequest) -> Words:
    """Return its options, the protocol of the MPI first: where the site's default is none, every
    rank would be rank 0 of 1.
    """
    per_node = request.per_node()
    if per_node is None and not request.all_slots:
        raise UsageError(
            "launch.uneven-ranks",
            "srun --ntasks-per-node needs the same number of ranks on every node",
            "give each host the same number of slots: -H host:2,host2:2",
            "or use the launcher of the MPI, which has no such limit: --launcher openmpi",
        )
    slots = slots_of(request.hosts)
    more = request.oversubscribe and request.hosts and request.ranks > slots
    distribution = is_stated(request, "--distribution")
    return (
        *_protocol(request),
        *_step(request, request.ranks, per_node),
        # Ranks that share CPUs cannot have as many each.
        *_cpus(None if more else _cores(request)),
        *(("--distribution=block",) if request.in_order and not distribution else ()),
        *(("--overcommit",) if more else ()),
    )


def _cores(request: LaunchRequest) -> int | None:
    """Return the CPUs of a rank; what the command line asks for counts before other statements."""
    stated = None if is_stated(request, *_CPUS) else request.task.cpus
    return request.cores_per_rank or stated


def _once_a_node(request: LaunchRequest) -> Words:
    """Return ``srun`` with one task on every node, which has all that the job has of it."""
    hosts = request.hosts if isinstance(request.hosts, tuple) else ()
    used = used_hosts(hosts, request.ranks)
    # A job without GPUs that is still to be asked for has a CPU for each rank: see job_script.
    one = 1 if isinstance(request.hosts, JobHosts) and not request.gpus else 0
    cpus = (request.cores_per_rank or one) * (request.per_node() or 0)
    if request.task.cpus and not cpus:
        cpus = min((host.cpus for host in used if host.cpus), default=0)
    gpus = min((host.gpus for host in used if host.gpus), default=0) if request.task.gpus else 0
    all_gpus = (f"--gpus-per-node={gpus}",) if gpus else ()
    return (*COMMAND, *_step(request, request.nodes, 1), *_cpus(cpus), *all_gpus)


def _cpus(number: int | None) -> Words:
    """Return the CPUs of each task: from 22.05 on a step does not take them from its job."""
    return (f"--cpus-per-task={number}",) if number else ()


def _protocol(request: LaunchRequest) -> Words:
    pmi = PMI.get(request.mpi.component) if request.mpi else None
    stated = is_stated(request, "--mpi") or any(w.startswith("--mpi") for w in request.command)
    return () if stated or pmi is None else (f"--mpi={pmi}",)


def _step(request: LaunchRequest, tasks: int, per_node: int | None) -> Words:
    """*per_node*: None for a whole allocation with more slots on some nodes, which Slurm knows."""
    known = request.allocated or not isinstance(request.hosts, tuple)
    names = host_names(request, known=known)
    overlap = request.step.option if request.step else None
    return (
        *((overlap,) if overlap else ()),
        f"--nodes={request.nodes}",
        f"--ntasks={tasks}",
        *((f"--ntasks-per-node={per_node}",) if per_node else ()),
        # Those that are left would wait for one that died, until the job's time is up.
        "--kill-on-bad-exit=1",
        *((f"--nodelist={names}",) if names else ()),
    )


TRAITS = Traits(
    job=JobTraits(scheduler="slurm", once_a_node=_once_a_node, outside_image=True),
    line=LineTraits(cores=True, options=OPTIONS),
)
