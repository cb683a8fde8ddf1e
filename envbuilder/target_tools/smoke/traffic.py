"""What really carried the data: libraries that are mapped, and what the runtimes write of it."""

import re
from collections import Counter

from .. import proc

LIBRARY = re.compile(r"/(?:libmpi|libnccl|libgloo)[^/]*\.so[^/]*$")

# An event that begins in Horovod's timeline, as all releases write it; the list need not be closed
# and may have several events on a line.
BEGINS = re.compile(r'"ph": "B", "name": "([A-Z_]+)", "ts": [0-9]+, "pid": ([0-9]+)')
# Activities that move data (horovod/common/common.h of 0.16 to 0.28), and the operations that
# they are part of.
ACTIVITY = re.compile(r"(MPI|NCCL|GLOO|DDL|CCL|MLSL)_")
OPERATIONS = {"ALLREDUCE": "allreduce", "ALLGATHER": "allgather", "BROADCAST": "broadcast"}

# What NCCL writes under NCCL_DEBUG=INFO: which one it is, once a group stands, by which way each
# channel to another rank goes (of 2.28: "Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0"),
# and which network it has for other nodes, also where no channel needs it.
VERSION = re.compile(r"\b(NCCL) version (\d\S*)")
GROUP = re.compile(r"NCCL INFO .*\b(nranks \d+)\b.*Init COMPLETE")
WAY = re.compile(r"NCCL INFO Channel \d.* -> .* (via) (\S+)")
NETWORK = re.compile(r"NCCL INFO (Using network \S+)")
# The number of a network card.
CARD = re.compile(r"/\d+")


def libraries() -> "list[str]":
    """Return the communication libraries that this process has mapped, sorted by path."""
    return [path for path in proc.mapped_libraries() if LIBRARY.search(path)]


def claim(operation: str, transport: str, source: str) -> "dict[str, str]":
    """Return the claim that *transport* carried *operation*, with its source."""
    return {"operation": operation, "transport": transport, "source": source}


def from_timeline(text: str) -> "list[dict[str, str]]":
    """Return the claims about transports in Horovod's timeline.

    Rank 0 writes it for all: a tensor (``pid``) begins an operation, and inside it the activities
    that move its data.
    """
    inside: "dict[str, str]" = {}
    seen: "Counter[tuple[str, str]]" = Counter()
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


def from_nccl(text: str) -> str:
    """Return the words of NCCL's log about its version, groups, channels and network."""
    told = [" ".join(words) for words in VERSION.findall(text)]
    ways = [f"{via} {CARD.sub('', way)}" for via, way in WAY.findall(text)]
    found = [*told, *GROUP.findall(text), *ways, *NETWORK.findall(text)]
    return ", ".join(dict.fromkeys(found))
