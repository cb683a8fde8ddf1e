"""``torchrun``, once on every node. Source: PyTorch's documentation of torch.distributed.run."""

from __future__ import annotations

from ...errors import UsageError
from ...model.launch import JobHosts, LaunchRequest, Words
from .options import needs_hosts
from .protocol import JobTraits, LineTraits, Traits

COMMAND: Words = ("torchrun",)
TRAITS = Traits(job=JobTraits(one_per_node=True), line=LineTraits(cores=True))


def options(request: LaunchRequest) -> Words:
    """Return its options. It would take ``python`` for a script of Python's.

    Underscores: the spelling that all releases take.
    """
    per_node = request.per_node()
    if per_node is None:
        raise UsageError(
            "launch.uneven-ranks",
            "torchrun needs the same number of ranks on every node",
            "give each host the same number of slots: -H host:2,host2:2",
        )
    each = (f"--nproc_per_node={per_node}", "--no_python")
    if request.nodes == 1:
        return ("--standalone", "--nnodes=1", *each)
    rendezvous = ("--rdzv_backend=c10d", "--rdzv_endpoint", _endpoint(request))
    return (f"--nnodes={request.nodes}", *each, *rendezvous)


def _endpoint(request: LaunchRequest) -> str:
    hosts = request.hosts
    if isinstance(hosts, JobHosts) and hosts.endpoint is not None:
        return hosts.endpoint
    if isinstance(hosts, tuple) and hosts:
        return f"{hosts[0].name}:{request.port}"
    raise needs_hosts(request)
