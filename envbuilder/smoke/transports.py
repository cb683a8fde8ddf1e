"""What really carried the data, and whether that is what the proof asks for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..model.evidence import SkippedCheck, TransportUse
from .findings import libraries
from .outcome import Expectations
from .phrases import listing, one_line
from .records import Claims, RankRecord, SkippedRecord

# NCCL carries the data of a node, or of all nodes; Horovod's hierarchical allreduce leaves the
# way between nodes to MPI.
BESIDE = {"nccl": frozenset({"nccl", "mpi"})}
ALLREDUCE = "allreduce"


def carried(ranks: Iterable[RankRecord]) -> tuple[TransportUse, ...]:
    """Return what any rank said of what carried an operation, each once, sorted."""
    claims = {
        (claim.operation, claim.transport, claim.source)
        for record in ranks
        for event in record.events
        if isinstance(event, Claims)
        for claim in event.claims
    }
    return tuple(
        TransportUse(
            operation=one_line(operation), transport=one_line(transport), source=one_line(source)
        )
        for operation, transport, source in sorted(claims)
    )


def left_out(ranks: Iterable[RankRecord]) -> tuple[SkippedCheck, ...]:
    """Return the checks that were not made, each once, in their order."""
    events = (
        event for record in ranks for event in record.events if isinstance(event, SkippedRecord)
    )
    each = dict.fromkeys((event.check, event.dtype, event.why) for event in events)
    return tuple(
        SkippedCheck(name=one_line(name), dtype=dtype, why=one_line(why))
        for name, dtype, why in each
    )


def wrong_api(ranks: Sequence[RankRecord], expected: Expectations) -> list[str]:
    """The ranks talked through something that the proof is not about."""
    others = sorted({record.start.api for record in ranks} - {expected.api})
    reason = f"the ranks talked through {listing(others)}" if others else ""
    return [f"{reason}; the proof is about {expected.api}"] if reason else []


def wrong_transport(ranks: Sequence[RankRecord], expected: Expectations) -> list[str]:
    """Something else carried the allreduce than the proof asks for; or nobody knows what did."""
    came_so_far = any(isinstance(event, Claims) for record in ranks for event in record.events)
    if expected.transport is None or not came_so_far:
        return []
    sums = [each for each in carried(ranks) if each.operation == ALLREDUCE]
    transports = {each.transport for each in sums}
    if not transports:
        return [
            f"the proof asks for {expected.transport}, but nothing tells what carried the allreduce"
        ]
    if expected.transport in transports <= BESIDE.get(expected.transport, {expected.transport}):
        return []
    reason = "; ".join(f"{each.transport} ({each.source})" for each in sums)
    return [f"the proof asks for {expected.transport}, but the allreduce was carried by {reason}"]


def wrong_library(ranks: Sequence[RankRecord], expected: Expectations) -> list[str]:
    """The MPI library that was loaded is not the plan's.

    A run over another transport need not load any, but what it loads must be right.
    """
    mpi = expected.mpi
    if mpi is None or not any(record.libraries for record in ranks):
        return []
    by_kind = libraries(ranks, expected.prefix)
    loaded = [library for library in by_kind if library.kind == "mpi"]
    needed = expected.transport in (None, "mpi")
    if not loaded:
        none = f"no rank had loaded a libmpi; the plan takes MPI from {mpi.source}"
        return [none] if needed else []
    if not mpi.known:
        paths = ", ".join(library.path for library in loaded)
        return [f"cannot tell whether {paths} is the plan's MPI, that of {mpi.source}"]
    return [
        f"the ranks loaded {library.path} ({library.owner}); the plan takes MPI from {mpi.source}"
        for library in loaded
        if not mpi.holds(library.path)
    ]
