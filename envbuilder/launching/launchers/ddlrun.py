"""``ddlrun``: one rank for every GPU of every node; inside a job of LSF it knows the nodes.

Sources: IBM's documentation of DDL, OLCF's user guide for Summit.
"""

from __future__ import annotations

from ...errors import UsageError
from ...model.launch import LaunchRequest, Words
from .options import host_names
from .protocol import JobTraits, LineTraits, MpiTraits, Traits

COMMAND: Words = ("ddlrun",)
TRAITS = Traits(
    mpi=MpiTraits(only=True),
    job=JobTraits(outside_image=True, asks_scheduler=True, on_every_gpu=True),
    line=LineTraits(exports=True, inherits=True),
)

# IBM licensed DDL for so many nodes of Summit (OLCF user guide).
_LICENSED_NODES = 954

# The scheduler whose jobs it knows the nodes of.
_KNOWS = "lsf"


def options(request: LaunchRequest) -> Words:
    """Return its options: hosts without slots, for it counts the GPUs itself."""
    gpus, per_node = request.shape.gpus_per_node, request.per_node()
    if per_node is None or (gpus is not None and per_node != gpus):
        raise UsageError(
            "launch.rank-per-gpu",
            f"ddlrun starts one rank per GPU, not {request.ranks} ranks on "
            f"{request.nodes} nodes" + (f" with {gpus} GPUs each" if gpus else ""),
            f"use {request.nodes * gpus} ranks"
            if gpus
            else "give each host the same number of slots",
        )
    if request.nodes > _LICENSED_NODES:
        raise UsageError(
            "launch.ddl-licence",
            f"DDL is licensed for {_LICENSED_NODES} nodes, not {request.nodes}",
            "use a Horovod that is built with NCCL",
        )
    knows = request.scheduler == _KNOWS
    names = host_names(request, known=request.allocated and knows)
    if not names and not knows and request.nodes > 1:
        raise UsageError(
            "launch.hosts-required",
            "ddlrun needs hosts outside a job of LSF",
            "give hosts: -H host1,host2",
        )
    exports = (word for each in request.exports for word in ("--mpiarg", f"-x {each}"))
    # Of a node whose GPUs the site does not state, ddlrun uses all unless it is told a number.
    stated = per_node > 1 and gpus is None and not request.allocated
    count = ("--accelerators", str(per_node)) if stated else ()
    return (*(("-H", names) if names else ()), *count, *exports)
