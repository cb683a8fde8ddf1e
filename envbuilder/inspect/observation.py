"""Where something was read in an environment."""

from __future__ import annotations

from pathlib import Path

from ..model.validation import Observation
from ..target_tools.messages import LINE_LENGTH
from ..text import shown


def seen(file: str | Path, field: str | None = None, value: object = None) -> Observation:
    """Return where something was read; what it says may be anything, and is made a line."""
    return Observation(
        file=line(str(file)),
        field=line(field) if field else None,
        value=line(str(value)) if value is not None else None,
    )


def line(text: str, length: int = LINE_LENGTH) -> str:
    """Return a text as one line of at most *length* characters that JSON can hold."""
    # Surrogates stand for bytes of a name that are no UTF-8: JSON cannot hold them.
    safe = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return shown(safe, length - 100)[:length] or "-"
