"""``envbuild diagnose --follow``: logs that grow, read by the same search as they grow."""

from __future__ import annotations

import io
import os
import select
import stat
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import BinaryIO

from ..workflow.context import Context
from .command import log_files, open_log
from .conclusion import conclude
from .index import SymptomIndex
from .search import Findings, LogSearch
from .values import Diagnosis

_PAUSE = 0.5
"""Seconds between two looks at the logs."""
QUIET = 5.0
"""So many seconds after the last line a program has ended, if the lines before show its end."""
_NEAR_END = 100
_CHUNK = 1 << 20


class GrowingLog:
    """The whole lines of a log that is being written.

    ``closed``: it is a pipe, and its writer has ended.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.closed = False
        self._stream = stream
        self._rest = b""
        self._lines: deque[bytes] = deque()
        try:
            self._number: int | None = stream.fileno()
            self._is_file = stat.S_ISREG(os.fstat(self._number).st_mode)
        except io.UnsupportedOperation:
            self._number, self._is_file = None, False

    def readline(self, size: int, /) -> bytes:
        """Return the next line, or *size* bytes of a longer one; b"": none has come yet."""
        if not self._lines:
            self._fill()
        if not self._lines:
            return b""
        line = self._lines.popleft()
        if len(line) > size:
            self._lines.appendleft(line[size:])
        return line[:size]

    def _fill(self) -> None:
        while not self._lines and not self.closed and self._is_ready():
            chunk = self._stream.read1(_CHUNK)  # type: ignore[attr-defined]
            *whole, self._rest = (self._rest + chunk).split(b"\n")
            self._lines.extend(line + b"\n" for line in whole)
            if not chunk and self._is_file:
                return
            if not chunk:
                self.closed = True
                self._lines.extend([self._rest] if self._rest else [])

    def _is_ready(self) -> bool:
        if self._is_file or self._number is None:
            return True
        return bool(select.select([self._number], [], [], 0)[0])


def follow(names: Sequence[str], pipe: BinaryIO, context: Context) -> Iterator[Diagnosis]:
    """Yield what logs say, first at once, then each time they grew, until their programs end.

    A program has ended if one of the last lines shows it and no further line has come for ``QUIET``
    seconds, or if the pipe is closed. Raises UsageError for what cannot be read or is no log.
    """
    index = SymptomIndex(context.knowledge)
    with ExitStack() as stack:
        streams = {
            name: GrowingLog(stack.enter_context(open_log(name, path, pipe)))
            for name, path in log_files(names, context)
        }
        searches = [LogSearch(stream, index.signs) for stream in streams.values()]
        changed, since = True, time.monotonic()
        while True:
            grown = [search.read() for search in searches]
            changed = changed or any(grown)
            if changed:
                yield conclude(list(streams), [search.found for search in searches], index)
                changed, since = False, time.monotonic()
            quiet = time.monotonic() - since >= QUIET
            if all(
                stream.closed or (quiet and _shows_end(search.found, index))
                for stream, search in zip(streams.values(), searches, strict=True)
            ):
                return
            time.sleep(_PAUSE)


def _shows_end(found: Findings, index: SymptomIndex) -> bool:
    return any(
        hit.line > found.lines - _NEAR_END
        for source in index.sources
        for form in ("finished", "ended")
        for hit in found.hits.get(f"{source.id}/{form}", ())
    )
