"""Columns, times and sizes as people read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import wraps
from typing import ParamSpec

_P = ParamSpec("_P")


def joined(view: Callable[_P, Iterable[str]]) -> Callable[_P, str]:
    """Make a view of the lines that *view* yields."""

    @wraps(view)
    def text(*args: _P.args, **kwargs: _P.kwargs) -> str:
        return "\n".join(view(*args, **kwargs))

    return text


def columns(rows: Iterable[Sequence[str]], indent: str = "  ") -> str:
    """Return rows as aligned columns; the last column is left as long as it is."""
    table = [tuple(row) for row in rows]
    if not table:
        return ""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]) - 1)]
    lines = []
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append((indent + "  ".join([*cells, row[-1]])).rstrip())
    return "\n".join(lines)


def how(execution: str | None, stand_ins: Sequence[str] = (), by: str | None = None) -> str:
    """Return what is put behind a tier that was not proved on such a machine, or of other things.

    *stand_ins*: what only stood in for what the recipe asks for. *by*: the API of the proof, where
    the recipe's runtime has another.
    """
    emulated = f", {execution}" if execution not in (None, "native") else ""
    emulated = f" by {by}{emulated}" if by else emulated
    return f"{emulated}, with stand-ins" if stand_ins else emulated


def moment(time: str | None) -> str:
    """Return an ISO 8601 time in UTC as people write it."""
    if time is None:
        return "never"
    return datetime.strptime(time, "%Y-%m-%dT%H:%M:%SZ").strftime("%Y-%m-%d %H:%M UTC")


def size(count: int) -> str:
    """Return a number of bytes in the largest binary unit that divides it well."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.0f} GiB"
