"""Texts in reports: on one line, lists of names, exit codes in words."""

import signal
from collections.abc import Sequence

# So many names are spelt out; of more, only the first ones and their number.
SPELT_OUT = 4
# A line of a report or of the evidence, in characters: what the models admit.
LINE_LENGTH = 500


def one_line(text: str, length: int = LINE_LENGTH) -> str:
    """Return *text* as one printable line of at most *length* characters, never empty."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split()) or "-"
    return flat if len(flat) <= length else flat[: length - 3] + "..."


def listing(names: "Sequence[str]") -> str:
    """Return names joined to a phrase: ``rank 0, rank 1 and rank 2``."""
    if len(names) > SPELT_OUT:
        names = [*names[: SPELT_OUT - 1], f"{len(names) - SPELT_OUT + 1} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def exit_text(code: "int | None") -> str:
    """Return an exit code in words; a shell reports a signal as 128 and its number."""
    if code is None:
        return "no exit code"
    if code < 0:
        return signal_text(-code)
    killed = f" ({signal_text(code - 128)})" if signal_name(code - 128) else ""
    return f"exit code {code}{killed}"


def signal_text(number: int) -> str:
    """Return ``signal 9 (SIGKILL)``."""
    name = signal_name(number)
    return f"signal {number} ({name})" if name else f"signal {number}"


def signal_name(number: int) -> "str | None":
    """Return the name of a signal; None for an unknown number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
