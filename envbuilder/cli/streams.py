"""The standard streams, such that neither a closed one nor a vanished reader ends the work."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO

    from _typeshed import ReadableBuffer


class _Patient(io.FileIO):
    """Where messages go. Who reads them may go away: what cannot be written is dropped."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def prepare() -> None:
    """Set up standard output and standard error for the whole run."""
    # Give closed streams a place, before another file gets their number.
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Paths hold what the terminal's encoding may lack: show it escaped.
        sys.stdout.reconfigure(errors="backslashreplace")
    encoding = sys.stderr.encoding if sys.stderr else None
    messages = io.BufferedWriter(_Patient(2, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(
        messages, encoding=encoding, errors="backslashreplace", line_buffering=True
    )


def drop_output() -> None:
    """Forget what standard output did not take, so that the end of the program does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def pipe() -> BinaryIO:
    """Return standard input as bytes; an empty one where it is closed."""
    return sys.stdin.buffer if sys.stdin else io.BytesIO()
