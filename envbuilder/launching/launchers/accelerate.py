"""``accelerate launch``, once on every node. Sources: its help and commands/launch.py (1.15).

It starts the ranks as torchrun does, from torch.distributed.run.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import UsageError
from ...model.launch import LaunchRequest, Words
from .options import endpoint_parts, even_ranks, is_stated
from .protocol import JobTraits, LineTraits, Traits

COMMAND: Words = ("accelerate", "launch")
# Without it, and without these, it starts one rank, or the ranks of mpirun.
_PARADIGM, _OTHERS = "--multi_gpu", ("--use_fsdp", "--use_megatron_lm")
OPTIONS: Mapping[str, str] = {
    **dict.fromkeys((*_OTHERS, "--enable_cpu_affinity", "--debug", "--quiet"), ""),
    "--config_file": r"=\S+",
    "--mixed_precision": "=(no|fp16|bf16|fp8)",
    "--dynamo_backend": r"=\w+",
    **dict.fromkeys(("--num_cpu_threads_per_process", "--max_restarts"), r"=\d+"),
    "--monitor_interval": r"=[\d.]+",
    **dict.fromkeys(("--role", "--log_dir", "--rdzv_conf"), r"=\S+"),
    "--tee": r"=[\d:,]+",
}
TRAITS = Traits(job=JobTraits(one_per_node=True), line=LineTraits(cores=True, options=OPTIONS))


def options(request: LaunchRequest) -> Words:
    """Return its options, with underscores: the spelling that all releases take."""
    even_ranks(request)
    if request.ranks < 2:
        raise UsageError(
            "launch.one-rank",
            "accelerate starts two ranks or more",
            "use --launcher torchrun for one rank",
        )
    paradigm = () if is_stated(request, *_OTHERS) else (_PARADIGM,)
    ranks = (f"--num_machines={request.nodes}", f"--num_processes={request.ranks}")
    if request.nodes == 1:
        return (*paradigm, *ranks, "--main_process_port=0", "--no_python")
    host, port = endpoint_parts(request)
    # The rendezvous numbers the nodes. Number 0 would look first whether another one has the port.
    rendezvous = ("--rdzv_backend=c10d", "--machine_rank=1")
    address = ("--main_process_ip", host, "--main_process_port", port)
    return (*paradigm, *ranks, *rendezvous, *address, "--no_python")
