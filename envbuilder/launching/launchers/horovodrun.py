"""``horovodrun``, by MPI or by Gloo; both since 0.18. It hands on the environment itself.

Its --mpi and --gloo say who starts the ranks and negotiates; NCCL is told apart from them at build
time, and started by MPI.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import UsageError
from ...model.launch import LaunchRequest, Words
from .openmpi import ROOT_VARIABLES
from .options import hosts_and_slots
from .protocol import LineTraits, Traits

COMMAND: Words = ("horovodrun",)
# --mpi hands the variables of root on to mpirun.
OPTIONS: Mapping[str, str] = {
    **dict.fromkeys(("--start-timeout", "--fusion-threshold-mb", "--cache-capacity"), r" \d+"),
    "--cycle-time-ms": r" [\d.]+",
    **dict.fromkeys(("--network-interfaces", "--output-filename", "--config-file"), r" \S+"),
    **dict.fromkeys(("--timeline-filename", "--autotune-log-file"), r" \S+"),
    **dict.fromkeys(("--verbose", "--disable-cache", "--autotune"), ""),
    **dict.fromkeys(("--hierarchical-allreduce", "--hierarchical-allgather"), ""),
}
"""Those of the parser in horovod/runner/launch.py."""

TRAITS = Traits(line=LineTraits(root_variables=ROOT_VARIABLES, options=OPTIONS))


def options(request: LaunchRequest) -> Words:
    """Return its options."""
    mpi = request.mpi
    if not request.transport.gloo and mpi and mpi.component == "openmpi" and mpi.series >= 5:
        raise UsageError(
            "launch.horovodrun-openmpi",
            f"horovodrun --mpi passes options that Open MPI {mpi.version} does not accept "
            "(-bind-to none)",
            "start the program with mpirun",
            "or with horovodrun --gloo",
        )
    how = "--gloo" if request.transport.gloo else "--mpi"
    return (how, "-np", str(request.ranks), *hosts_and_slots(request))
