"""What the records of all ranks say together: checks, timings, libraries, what carried the data."""

import time
from pathlib import PurePosixPath

from ..files import is_below
from ..messages import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping, Sequence

    from .judge import LauncherNode
    from .records import Event, RankRecord

# Seconds by which a clock that processors share may disagree with itself; the program lets a rank
# come 100 times later than this.
CLOCK_TOLERANCE = 0.001
BARRIER = "barrier"
TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
KINDS = {"libmpi": "mpi", "libnccl": "nccl", "libgloo": "gloo"}


def or_none(text: "str | None") -> "str | None":
    """Return a text as one line; None for None."""
    return None if text is None else one_line(text)


def checks(
    ranks: "Sequence[RankRecord]", expected_ranks: int, names: "Mapping[str, str]"
) -> "list[dict[str, Any]]":
    """Return every check that began on any rank, in order.

    A check passed if it ended and passed on *expected_ranks* ranks.
    """
    ended: "dict[tuple[str, str | None, int | None], list[tuple[RankRecord, Event]]]" = {}
    for record in ranks:
        for event in record.events:
            if event.event in ("begin", "done"):
                results = ended.setdefault((event.check, event.dtype, event.bytes), [])
                results += [(record, event)] if event.event == "done" else []
    late = barrier_problem(ranks, names)
    found = []
    for (check, dtype, size), results in ended.items():
        wrong = problem(results, expected_ranks, names) or (late if check == BARRIER else None)
        said = dict.fromkeys(done.said for _, done in results if done.said)
        found.append(
            {
                "name": one_line(check),
                "dtype": or_none(dtype),
                "bytes": size,
                "passed": wrong is None,
                "ranks": len(results),
                "detail": or_none(wrong),
                # What the ranks said, each thing once, by rank.
                "said": one_line(", ".join(said)) if said else None,
            }
        )
    return found


def problem(
    results: "list[tuple[RankRecord, Event]]", expected_ranks: int, names: "Mapping[str, str]"
) -> "str | None":
    """Return the problem of one check, or None."""
    for record, done in results:
        if not done.passed:
            return f"{names[record.source]}: {done.problem}"
    if len(results) != expected_ranks:
        return f"{len(results)} of {expected_ranks} ranks completed it"
    return None


def barrier_problem(ranks: "Sequence[RankRecord]", names: "Mapping[str, str]") -> "str | None":
    """Return which rank left a barrier before another one entered it, or None.

    Only ranks that share a clock can be compared; each barrier is an item of ``entered`` and
    ``left``.
    """
    groups: "dict[str, list[tuple[str, Event]]]" = {}
    for record in ranks:
        for done in record.done:
            if done.check == BARRIER and record.world and record.world.size > 1:
                clock = record.start.clock or record.start.host
                groups.setdefault(clock, []).append((names[record.source], done))
    for group in groups.values():
        # Ranks that stopped early have fewer items: compare what all have.
        entries = zip(*(done.entered for _, done in group))
        exits = zip(*(done.left for _, done in group))
        for entered, left in zip(entries, exits):
            last, first = max(entered), min(left)
            if first < last - CLOCK_TOLERANCE:
                early, late = group[left.index(first)][0], group[entered.index(last)][0]
                return f"{early} left it {last - first:.3f} s before {late} reached it"
    return None


def execution(ranks: "Sequence[RankRecord]") -> str:
    """Return ``native``, or ``emulated`` where any rank was: see ``proc.execution``."""
    told = {record.start.execution for record in ranks}
    return "native" if told <= {"native"} else "emulated"


def timings(ranks: "Sequence[RankRecord]", expected_ranks: int) -> "list[dict[str, Any]]":
    """Return the speed for each size that all ranks timed; the slowest rank counts.

    [] for emulated ranks, whose speed is that of the emulator.
    """
    if execution(ranks) != "native":
        return []
    if any(record.world is None or record.world.size != expected_ranks for record in ranks):
        return []
    by_size: "dict[int, list[Event]]" = {}
    for record in ranks:
        for done in record.done:
            if done.median is not None and done.bytes is not None:
                by_size.setdefault(done.bytes, []).append(done)
    values = []
    for size, results in sorted(by_size.items()):
        if len(results) == expected_ranks:
            seconds = max(done.median for done in results)
            values.append(
                {
                    "bytes": size,
                    "latency-us": significant(seconds * 1e6),
                    "bus-bandwidth": significant(bus_bandwidth(expected_ranks, size, seconds)),
                    "repetitions": min(done.repetitions or 0 for done in results),
                }
            )
    return values


def significant(value: float) -> float:
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


def libraries(
    ranks: "Sequence[RankRecord]", prefix: str, host: "Iterable[str]" = ()
) -> "list[dict[str, str]]":
    """Return the communication libraries that any rank had mapped, sorted, with their owners.

    *host*: the libraries of the host, if the ranks run in an image.
    """
    owners = dict.fromkeys(host, "host")
    paths = {path for record in ranks if record.libraries for path in record.libraries.paths}
    named = [(path, PurePosixPath(path).name) for path in sorted(paths)]
    return [
        {
            "kind": kind,
            "path": one_line(path),
            "owner": owners.get(path, "prefix" if is_below(path, prefix) else "system"),
        }
        for path, name in named
        for start, kind in KINDS.items()
        if name.startswith(start)
    ]


def carried(ranks: "Sequence[RankRecord]") -> "list[dict[str, str]]":
    """Return the claims of all ranks about transports, without duplicates, sorted."""
    names = ("operation", "transport", "source")
    events = (event for record in ranks for event in record.all("carried"))
    claims = {tuple(claim[n] for n in names) for event in events for claim in event.claims}
    return [dict(zip(names, map(one_line, claim))) for claim in sorted(claims)]


def end_time(ranks: "Iterable[RankRecord]", otherwise: float) -> str:
    """Return when the last rank ended, in UTC; *otherwise*: for ranks that record no end."""
    ends = [record.end.unix for record in ranks if record.end]
    return time.strftime(TIME_FORMAT, time.gmtime(max(ends, default=otherwise)))


def processes(
    ranks: "Sequence[RankRecord]", observation: "LauncherNode | None"
) -> "list[dict[str, Any]]":
    """Return what each rank recorded of itself, and whether its process was observed.

    [] of a run that an earlier release made.
    """
    if observation is None:
        return []
    return [
        {
            "rank": record.rank,
            "host": one_line(record.start.host),
            "boot-id": or_none(record.start.clock or None),
            "pid": record.start.pid,
            "observed": record.source in observation.observed,
            "job-step": or_none(record.start.job_step),
            "container": or_none(record.start.container),
            "cpu": or_none(record.start.cpu),
            "gpus": [one_line(each) for each in record.start.gpus],
        }
        for record in ranks
    ]


def left_out(ranks: "Sequence[RankRecord]") -> "list[dict[str, Any]]":
    """Return the checks that were not made, each once, in their order."""
    events = (event for record in ranks for event in record.all("left out"))
    each = dict.fromkeys((event.check, event.dtype, event.why) for event in events)
    return [
        {"name": one_line(name), "dtype": or_none(dtype), "why": one_line(why)}
        for name, dtype, why in each
    ]
