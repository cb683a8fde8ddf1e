"""How ranks, places and exit codes are named in reasons."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from .records import RankRecord

# So many names are spelt out; of more, only the first ones and their number.
SPELT_OUT = 4
LINE_LENGTH = 500


def one_line(text: str) -> str:
    """Return *text* as one printable line that fits a field of the evidence."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if len(flat) > LINE_LENGTH:
        flat = flat[: LINE_LENGTH - 3] + "..."
    return flat or "-"


def listing(names: Sequence[str]) -> str:
    """Return names joined to a phrase: ``rank 0, rank 1 and rank 2``."""
    if len(names) > SPELT_OUT:
        names = [*names[: SPELT_OUT - 1], f"{len(names) - SPELT_OUT + 1} more"]
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def name_ranks(ranks: Iterable[RankRecord]) -> dict[str, str]:
    """Return a name for each record's source: its rank, and the process where that is not enough.

    Processes that each believe to be rank 0 must be told apart.
    """
    ranks = list(ranks)
    times = Counter(record.rank for record in ranks)
    names = {}
    for record in ranks:
        process = f"process {record.start.pid} on {record.start.host}"
        if record.rank is None:
            names[record.source] = process
        elif times[record.rank] > 1:
            names[record.source] = f"rank {record.rank} ({process})"
        else:
            names[record.source] = f"rank {record.rank}"
    return names


def place(record: RankRecord) -> str:
    """Return where a record stops: inside a check, or after one."""
    if record.current:
        return f"in {record.current.label}"
    if record.done:
        return f"after {record.done[-1].label}"
    return "before import"


def by_place(ranks: Iterable[RankRecord], names: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Return (place, names of the ranks there), the place that was reached first in front.

    Ranks wait for the one that is behind, so that one tells most.
    """
    groups: dict[str, list[str]] = {}
    for record in sorted(ranks, key=lambda record: len(record.events)):
        groups.setdefault(place(record), []).append(names[record.source])
    return [(where, sorted(group)) for where, group in groups.items()]


def exit_text(code: int | None) -> str:
    """Return an exit code in words; a shell reports a signal as 128 and its number."""
    if code is None:
        return "no exit code"
    if code < 0:
        return signal_text(-code)
    if code > 128 and _signal_name(code - 128):
        return f"exit code {code} ({signal_text(code - 128)})"
    return f"exit code {code}"


def signal_text(number: int) -> str:
    """Return ``signal 9 (SIGKILL)``."""
    name = _signal_name(number)
    return f"signal {number} ({name})" if name else f"signal {number}"


def _signal_name(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
