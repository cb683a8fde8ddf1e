"""What really carried the data: libraries that are mapped, and what the runtimes write of it."""

import re
from collections import Counter

from .recorder import read

LIBRARY = re.compile(r" (/.*/(?:libmpi|libnccl|libgloo)[^/]*\.so[^/]*)$")

# An event that begins in Horovod's timeline, as all releases write it; the list need not be closed
# and may have several events on a line.
BEGINS = re.compile(r'"ph": "B", "name": "([A-Z_]+)", "ts": [0-9]+, "pid": ([0-9]+)')
# Activities that move data (horovod/common/common.h of 0.16 to 0.28), and the operations that
# they are part of.
ACTIVITY = re.compile(r"(MPI|NCCL|GLOO|DDL|CCL|MLSL)_")
OPERATIONS = {"ALLREDUCE": "allreduce", "ALLGATHER": "allgather", "BROADCAST": "broadcast"}

# What NCCL writes under NCCL_DEBUG=INFO once it has its own network, and once a group stands.
NETWORK = re.compile(r"NCCL INFO (Using network \S+)")
GROUP = re.compile(r"NCCL INFO .*\b(nranks \d+)\b.*Init COMPLETE")


def libraries():
    """Return the communication libraries that this process has mapped, sorted by path."""
    found = (LIBRARY.search(line) for line in read("/proc/self/maps").splitlines())
    return sorted({match.group(1) for match in found if match})


def claim(operation, transport, source):
    """Return that *transport* carried *operation*, and who says so."""
    return {"operation": operation, "transport": transport, "source": source}


def from_timeline(text):
    """Return which transport carried which operation, as Horovod's timeline has it.

    Rank 0 writes it for all: a tensor (``pid``) begins an operation, and inside it the activities
    that move its data.
    """
    inside, seen = {}, Counter()
    for name, tensor in BEGINS.findall(text):
        if name in OPERATIONS:
            inside[tensor] = OPERATIONS[name]
        elif ACTIVITY.match(name) and tensor in inside:
            seen[inside[tensor], name] += 1
    return [
        claim(
            operation,
            activity.partition("_")[0].lower(),
            f"Horovod's timeline: {activity} {times} times",
        )
        for (operation, activity), times in sorted(seen.items())
    ]


def from_nccl(text):
    """Return the words of NCCL's log that tell of groups and of the network it uses itself."""
    found = [*GROUP.findall(text), *NETWORK.findall(text)]
    return ", ".join(dict.fromkeys(found))
