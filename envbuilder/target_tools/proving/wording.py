"""How ranks, places and exit codes are named in reasons."""

import signal
from collections import Counter

# So many names are spelt out; of more, only the first ones and their number.
SPELT_OUT = 4
LINE_LENGTH = 500


def one_line(text):
    """Return *text* as one printable line that fits a field of the evidence."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if len(flat) > LINE_LENGTH:
        flat = flat[: LINE_LENGTH - 3] + "..."
    return flat or "-"


def listing(names):
    """Return names joined to a phrase: ``rank 0, rank 1 and rank 2``."""
    if len(names) > SPELT_OUT:
        names = [*names[: SPELT_OUT - 1], f"{len(names) - SPELT_OUT + 1} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def name_ranks(ranks):
    """Return a name for each record's source: its rank, and the process where that is not enough.

    Processes that each believe to be rank 0 must be told apart.
    """
    times = Counter(record.rank for record in ranks)
    names = {}
    for record in ranks:
        name = f"process {record.start.pid} on {one_line(record.start.host)}"
        if record.rank is not None:
            name = f"rank {record.rank}" + (f" ({name})" if times[record.rank] > 1 else "")
        names[record.source] = name
    return names


def place(record):
    """Return where a record stops: inside a check, or after one."""
    if record.current:
        return f"in {one_line(record.current.label)}"
    return f"after {one_line(record.done[-1].label)}" if record.done else "before import"


def by_place(ranks, names):
    """Return (place, names of the ranks there), the place that was reached first in front.

    Ranks wait for the one that is behind, so that one tells most.
    """
    groups = {}
    for record in sorted(ranks, key=lambda record: len(record.events)):
        groups.setdefault(place(record), []).append(names[record.source])
    return [(where, sorted(group)) for where, group in groups.items()]


def exit_text(code):
    """Return an exit code in words; a shell reports a signal as 128 and its number."""
    if code is None:
        return "no exit code"
    if code < 0:
        return signal_text(-code)
    killed = f" ({signal_text(code - 128)})" if signal_name(code - 128) else ""
    return f"exit code {code}{killed}"


def signal_text(number):
    """Return ``signal 9 (SIGKILL)``."""
    name = signal_name(number)
    return f"signal {number} ({name})" if name else f"signal {number}"


def signal_name(number):
    """Return the name of a signal; None if there is none of that number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
