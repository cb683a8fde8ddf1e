"""``envbuild diagnose --follow``: logs that grow, read by the same search as they grow."""

from __future__ import annotations

import io
import os
import select
import stat
import time
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


class GrowingLog:
    """A log that is being written, read without waiting.

    ``closed``: it is a pipe, and its writer has ended.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.closed = False
        self._stream = stream
        try:
            is_file = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
            self._pipe = None if is_file else stream.fileno()
        except io.UnsupportedOperation:
            is_file, self._pipe = False, None
        self._is_file = is_file

    def read(self, size: int, /) -> bytes:
        """Return what has come, at most *size* bytes."""
        if self._pipe is not None and not select.select([self._pipe], [], [], 0)[0]:
            return b""
        text: bytes = self._stream.read1(size)  # type: ignore[attr-defined]
        self.closed = not text and not self._is_file
        return text


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
            quiet = time.monotonic() - since >= QUIET
            ended = all(
                stream.closed or (quiet and _shows_end(search.found, index))
                for stream, search in zip(streams.values(), searches, strict=True)
            )
            grown = [search.read(is_final=ended) for search in searches]
            changed = changed or any(grown)
            if changed:
                yield conclude(list(streams), [search.found for search in searches], index)
                changed, since = False, time.monotonic()
            if ended:
                return
            time.sleep(_PAUSE)


def _shows_end(found: Findings, index: SymptomIndex) -> bool:
    return any(
        hit.line > found.lines - _NEAR_END
        for source in index.sources
        for form in ("finished", "ended")
        for hit in found.hits.get(f"{source.id}/{form}", ())
    )
