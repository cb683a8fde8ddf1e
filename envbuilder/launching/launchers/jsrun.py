"""``jsrun`` with one resource set a node that holds all its GPUs, as on Summit.

NCCL and DDL between the ranks of a node need all its GPUs in one set. Sources: IBM's documentation
of JSM, OLCF's user guide for Summit.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import UsageError
from ...model.launch import LaunchRequest, Words
from .options import is_stated
from .protocol import JobTraits, LineTraits, MpiTraits, Traits

COMMAND: Words = ("jsrun",)

# A resource set with all GPUs of a node leaves nothing to distribute.
_LATENCY = r"(?i:(gpu|cpu)-(gpu|cpu|memory)(,(gpu|cpu)-(gpu|cpu|memory))*)"
OPTIONS: Mapping[str, str] = {
    "--smpiargs": r"=.*",
    "--latency_priority": f"[= ]{_LATENCY}",
    "-l": f" {_LATENCY}",
    "-E": r" [A-Za-z_]\w*(=\S*)?",
}


def options(request: LaunchRequest) -> Words:
    """Return its options.

    Cores are dealt out evenly, where nobody said how many a rank needs, and each rank is bound to
    its own.
    """
    per_node = request.per_node()
    if per_node is None:
        raise UsageError(
            "launch.uneven-ranks",
            "resource sets of jsrun are equal: every node needs the same number of ranks",
            "use a multiple of the number of nodes",
        )
    if request.named:
        raise UsageError(
            "launch.hosts-not-accepted",
            "jsrun uses the nodes of its job and does not accept hosts",
            "remove the hosts and request nodes from the scheduler",
        )
    each = request.cores_per_rank or max(1, _cores(request) // per_node)
    aware = request.transport.cuda_aware and not is_stated(request, "--smpiargs")
    smpi = ("--smpiargs=-gpu",) if aware else ()
    return (*smpi, *_resource_sets(request, tasks=per_node, bind=f"packed:{each}"))


def _once_a_node(request: LaunchRequest) -> Words:
    """Return ``jsrun`` with one task in the resource set of every node."""
    return (*COMMAND, *_resource_sets(request, tasks=1, bind="none"))


def _resource_sets(request: LaunchRequest, *, tasks: int, bind: str) -> Words:
    gpus = request.shape.gpus_per_node
    if request.gpus and gpus is None:
        raise UsageError(
            "launch.unknown-gpu-count",
            "jsrun needs the number of GPUs per node, which is unknown",
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
            "launch.unknown-core-count",
            "jsrun needs the number of cores per node, which is unknown",
            "state facts: {cores-per-node: 42} in the site file",
        )
    return cores


TRAITS = Traits(
    mpi=MpiTraits(not_of=frozenset({"mpich"}), only=True),
    job=JobTraits(
        scheduler="lsf",
        once_a_node=_once_a_node,
        job_only=True,
        outside_image=True,
        launch_node=True,
    ),
    line=LineTraits(cuda_aware=True, cores=True, options=OPTIONS),
)
