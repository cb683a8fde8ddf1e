"""``torchrun``, once on every node. Source: PyTorch's documentation of torch.distributed.run."""

from __future__ import annotations

from collections.abc import Mapping

from ...model.launch import LaunchRequest, Words
from .options import endpoint, even_ranks
from .protocol import JobTraits, LineTraits, Traits

COMMAND: Words = ("torchrun",)
OPTIONS: Mapping[str, str] = {
    **dict.fromkeys(("--max_restarts", "--monitor_interval"), r"=[\d.]+"),
    **dict.fromkeys(("--role", "--log_dir", "--rdzv_conf", "--local_addr"), r"=\S+"),
    **dict.fromkeys(("--tee", "--redirects"), r"=[\d:,]+"),
}
"""Those of the parser of torch.distributed.run 1.10 and later, with underscores."""

TRAITS = Traits(job=JobTraits(one_per_node=True), line=LineTraits(cores=True, options=OPTIONS))


def options(request: LaunchRequest) -> Words:
    """Return its options. It would take ``python`` for a script of Python's.

    Underscores: the spelling that all releases take.
    """
    each = (f"--nproc_per_node={even_ranks(request)}", "--no_python")
    if request.nodes == 1:
        return ("--standalone", "--nnodes=1", *each)
    rendezvous = ("--rdzv_backend=c10d", "--rdzv_endpoint", endpoint(request))
    return (f"--nnodes={request.nodes}", *each, *rendezvous)
