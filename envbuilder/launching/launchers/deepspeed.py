"""``deepspeed`` on one node. Sources: its help and launcher/runner.py (0.19).

On several nodes it reads a hostfile and starts itself by ssh or by another launcher.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import UsageError
from ...model.launch import LaunchRequest, Words
from .protocol import JobTraits, LineTraits, Traits

COMMAND: Words = ("deepspeed",)
OPTIONS: Mapping[str, str] = {
    **dict.fromkeys(("--bind_cores_to_rank", "--save_pid", "--quiet"), ""),
    "--bind_core_list": r"=[\d,-]+",
    "--enable_each_rank_log": r"=\S+",
    "--log_level": "=(debug|info|warning|error|critical)",
    "--master_port": r"=\d+",
}
TRAITS = Traits(job=JobTraits(one_per_node=True), line=LineTraits(cores=True, options=OPTIONS))


def options(request: LaunchRequest) -> Words:
    """Return its options. The program finds its rank in the environment, not in an argument."""
    if request.nodes > 1:
        raise UsageError(
            "launch.one-node",
            "deepspeed starts ranks on one node; on several it needs a hostfile and ssh",
            "use --launcher torchrun: deepspeed.initialize reads the variables that it sets",
        )
    return (
        f"--num_gpus={request.ranks}",
        f"--master_port={request.port}",
        "--no_python",
        "--no_local_rank",
    )
