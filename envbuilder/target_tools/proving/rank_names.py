"""How ranks, and the places where they stop, are named in reasons."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ..messages import one_line
from .records import RankRecord


def name_ranks(ranks: "Sequence[RankRecord]") -> "dict[str, str]":
    """Return a name for each record's source: its rank, and its process if the rank is not unique.

    Several processes may each believe to be rank 0.
    """
    times = Counter(record.rank for record in ranks)
    names = {}
    for record in ranks:
        name = f"process {record.start.pid} on {one_line(record.start.host)}"
        if record.rank is not None:
            name = f"rank {record.rank}" + (f" ({name})" if times[record.rank] > 1 else "")
        names[record.source] = name
    return names


def place(record: "RankRecord") -> str:
    """Return where a record stops: inside a check, or after one."""
    if record.current:
        return f"in {one_line(record.current.label)}"
    return f"after {one_line(record.done[-1].label)}" if record.done else "before import"


def by_place(
    ranks: "Iterable[RankRecord]", names: "Mapping[str, str]"
) -> "list[tuple[str, list[str]]]":
    """Return (place, names of the ranks there), the place that was reached first in front.

    Ranks wait for the one that is behind, so that one tells most.
    """
    groups: "dict[str, list[str]]" = {}
    for record in sorted(ranks, key=lambda record: len(record.events)):
        groups.setdefault(place(record), []).append(names[record.source])
    return [(where, sorted(group)) for where, group in groups.items()]
