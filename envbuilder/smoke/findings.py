"""What the records of all ranks say together: checks, timings, libraries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal

from ..model.evidence import Check, LoadedLibrary, Timing
from .phrases import one_line
from .records import Begin, Done, RankRecord

# Seconds by which a clock that processors share may disagree with itself; the program lets a rank
# come 100 times later than this.
CLOCK_TOLERANCE = 0.001
BARRIER = "barrier"
KINDS: dict[str, Literal["mpi", "nccl", "gloo"]] = {
    "libmpi": "mpi",
    "libnccl": "nccl",
    "libgloo": "gloo",
}

Key = tuple[str, str | None, int | None]


def checks(
    ranks: Sequence[RankRecord], expected_ranks: int, names: Mapping[str, str]
) -> tuple[Check, ...]:
    """Return every check that began on any rank, in order.

    It passed if *expected_ranks* ranks say so: one that did not end everywhere did not pass.
    """
    ended: dict[Key, list[tuple[RankRecord, Done]]] = {}
    for record in ranks:
        for event in record.events:
            if isinstance(event, Begin):
                ended.setdefault((event.check, event.dtype, event.bytes), [])
            elif isinstance(event, Done):
                key = (event.check, event.dtype, event.bytes)
                ended.setdefault(key, []).append((record, event))
    late = barrier_problem(ranks, names)
    all_checks = []
    for key, results in ended.items():
        problem = _problem(results, expected_ranks, names) or (late if key[0] == BARRIER else None)
        all_checks.append(
            Check(
                name=one_line(key[0]),
                dtype=key[1],
                bytes=key[2],
                passed=problem is None,
                ranks=len(results),
                detail=problem and one_line(problem),
                said=_said(results),
            )
        )
    return tuple(all_checks)


def _said(results: Sequence[tuple[RankRecord, Done]]) -> str | None:
    """Return what the ranks said, each thing once, by rank."""
    messages = dict.fromkeys(done.said for _, done in results if done.said)
    return one_line(", ".join(messages)) if messages else None


def _problem(
    results: Sequence[tuple[RankRecord, Done]], expected_ranks: int, names: Mapping[str, str]
) -> str | None:
    for record, done in results:
        if not done.passed:
            return f"{names[record.source]}: {done.problem}"
    if len(results) != expected_ranks:
        return f"{len(results)} of {expected_ranks} ranks came to its end"
    return None


def barrier_problem(ranks: Sequence[RankRecord], names: Mapping[str, str]) -> str | None:
    """Return which rank passed a barrier before another one had come to it, or None.

    Only ranks that share a clock can be compared; each barrier is an item of ``entered`` and
    ``left``.
    """
    for group in _sharing_a_clock(ranks):
        # Ranks that stopped early have fewer items: compare what all have.
        entries = zip(*(done.entered for _, done in group), strict=False)
        exits = zip(*(done.left for _, done in group), strict=False)
        for entered, left in zip(entries, exits, strict=False):
            last, first = max(entered), min(left)
            if first < last - CLOCK_TOLERANCE:
                early = names[group[left.index(first)][0].source]
                late = names[group[entered.index(last)][0].source]
                return f"{early} passed it {last - first:.3f} s before {late} came to it"
    return None


def _sharing_a_clock(ranks: Sequence[RankRecord]) -> Iterator[list[tuple[RankRecord, Done]]]:
    groups: dict[str, list[tuple[RankRecord, Done]]] = {}
    for record in ranks:
        for done in record.done:
            if done.check == BARRIER and record.world and record.world.size > 1:
                clock = record.start.clock or record.start.host
                groups.setdefault(clock, []).append((record, done))
    yield from groups.values()


def timings(ranks: Sequence[RankRecord], expected_ranks: int) -> tuple[Timing, ...]:
    """Return the speed of each size that all ranks of the right world timed; the slowest counts."""
    if any(record.world is None or record.world.size != expected_ranks for record in ranks):
        return ()
    by_size: dict[int, list[Done]] = {}
    for record in ranks:
        for done in record.done:
            if done.median is not None and done.bytes is not None:
                by_size.setdefault(done.bytes, []).append(done)
    values = []
    for size, results in sorted(by_size.items()):
        if len(results) == expected_ranks:
            seconds = max(done.median or 0.0 for done in results)
            bandwidth = bus_bandwidth(expected_ranks, size, seconds)
            values.append(
                Timing(
                    bytes=size,
                    latency_us=_significant(seconds * 1e6),
                    bus_bandwidth=_significant(bandwidth),
                    repetitions=min(done.repetitions or 0 for done in results),
                )
            )
    return tuple(values)


def _significant(value: float) -> float:
    """Return *value* with as many digits as a measurement of this kind is good for.

    Not so many decimals: 4 bytes on a busy machine take 10 ms, and their bandwidth would be 0.
    """
    return float(f"{value:.6g}")


def bus_bandwidth(ranks: int, size: int, seconds: float) -> float:
    """Return the bus bandwidth of an allreduce in GB/s: 2 (n-1)/n * bytes / time.

    As nccl-tests define it, so that numbers can be compared; it does not depend on the number of
    ranks where the links are the limit.
    """
    return 2 * (ranks - 1) / ranks * size / seconds / 1e9 if seconds > 0 else 0.0


def libraries(ranks: Sequence[RankRecord], prefix: str) -> tuple[LoadedLibrary, ...]:
    """Return the communication libraries that any rank had mapped, sorted, with their owners."""
    paths = {path for record in ranks if record.libraries for path in record.libraries.paths}
    loaded = []
    for path in sorted(paths):
        kind = next(
            (kind for start, kind in KINDS.items() if PurePosixPath(path).name.startswith(start)),
            None,
        )
        if kind:
            owner = "prefix" if PurePosixPath(path).is_relative_to(prefix) else "system"
            loaded.append(LoadedLibrary(kind=kind, path=one_line(path), owner=owner))
    return tuple(loaded)
