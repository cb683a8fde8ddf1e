"""A log as lines, each of the rank that wrote it: streamed, whatever its size and its bytes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress, islice
from typing import BinaryIO

# Longer lines are read in pieces: a file without line ends is no line of a gigabyte.
LONGEST = 4000
# Lines are read in batches of so many.
_BATCH = 1 << 13
# A line that was there so often is repeated. So many texts are known.
REPEATED = 1000
_MOST_SHAPES = 100_000
# So many lines are near, before and after; so many are read at the end of a log.
_AROUND = 40
_TAIL = 200
# So many bytes of a line may name its rank: their numbers count.
_TAG_BYTES = 10
_DIGITS = b"0123456789"
# Of so many ranks the lines are told apart; those of more count as nobody's.
MOST_RANKS = 4096

# Colours, titles of windows and what else a program tells a terminal.
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
# mpiexec --tag-output (Open MPI: [job,rank]<stdout>:, 5 with a blank), horovodrun [rank]<stdout>:,
# torchrun [rank3]: and [default3]:, mpiexec -l (hydra) [3], srun -l 3:
_TAG = re.compile(
    r"\[\d+,(\d+)\]<std(?:out|err)>: ?|\[(\d+)\]<std(?:out|err)>:|\[(?:rank|default)(\d+)\]: ?|"
    r"\[(\d+)\] |(\d{1,5}): "
)


@dataclass(frozen=True)
class LogText:
    """A line, or a piece of a long one, without its tag. ``rank``: the tag's, if it has one."""

    number: int
    text: str
    rank: int | None


class LogLines:
    """The lines of a log. What is no UTF-8 is replaced. ``count``: how many were read.

    A line whose text was there ``REPEATED`` times, apart from its numbers, is read and counted,
    but yielded only near other lines and at the end of the log.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.count = 0
        self._pieces = iter(partial(stream.readline, LONGEST), b"")
        self._shapes: Counter[bytes] = Counter()

    def __iter__(self) -> Iterator[LogText]:
        begins = True
        tail: list[_Piece] = []
        while batch := list(islice(self._pieces, _BATCH)):
            near = self._near(batch)
            pieces = self._numbered(batch, begins)
            chosen = pieces if near is None else list(compress(pieces, near))
            if chosen:
                yield from _texts([*tail, *chosen])
            tail = []
            if near is not None:
                far = bytes(not is_near for is_near in near[-_TAIL:])
                tail = list(compress(pieces[-_TAIL:], far))
            begins = batch[-1][-1:] == b"\n"
        yield from _texts(tail)
        self.count += not begins

    def _numbered(self, batch: Sequence[bytes], begins: bool) -> list[_Piece]:
        """Return the pieces with the numbers of their lines, and whether they begin one."""
        first = self.count + 1
        if begins and b"".join(batch).count(b"\n") == len(batch):
            self.count += len(batch)
            return [(number, piece, True) for number, piece in enumerate(batch, first)]
        pieces = []
        for piece in batch:
            pieces.append((self.count + 1, piece, begins))
            begins = piece[-1:] == b"\n"
            self.count += begins
        return pieces

    def _near(self, batch: Sequence[bytes]) -> bytearray | None:
        """Return which lines are near one that is not repeated; None: all are."""
        shapes = [piece[:_TAG_BYTES] + piece.translate(None, _DIGITS) for piece in batch]
        known = self._shapes
        fresh = {shape for shape in set(shapes) if known[shape] < REPEATED}
        if len(known) < _MOST_SHAPES:
            known.update(shapes)
        near = bytearray(len(batch))
        if len(fresh) * 2 > len(batch):
            return None
        for index, shape in enumerate(shapes) if fresh else ():
            if shape in fresh:
                first, last = max(0, index - _AROUND), index + _AROUND + 1
                near[first:last] = b"\1" * (min(last, len(batch)) - first)
        return near


_Piece = tuple[int, bytes, bool]


def _texts(pieces: Sequence[_Piece]) -> Iterator[LogText]:
    for number, piece, begins in pieces:
        text = piece.decode("utf-8", "replace").rstrip("\r\n")
        if "\x1b" in text:
            text = _TERMINAL.sub("", text)
        # A progress bar writes one line over and over.
        for part in text.split("\r") if "\r" in text else (text,):
            tag = _TAG.match(part) if begins and part[:1] in _TAG_BEGINS else None
            yield (
                LogText(number, _without_logger(part[tag.end() :]), _rank(tag))
                if tag
                else LogText(number, _without_logger(part) if begins else part, None)
            )


_TAG_BEGINS = frozenset("[0123456789")
# Ray's prefix, and that of a logger: (RayWorker pid=12, ip=192.0.2.1) ERROR 04-07 00:57:46 f.py:45]
_LOGGER = re.compile(
    r"(?:\((?:[\w.:<>=-]+ ){0,3}pid=\d+(?:, ip=[\d.]+)?\) ?)?"
    r"(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?\S{1,200}\.py:\d+\] ?)?"
)
_LOGGER_BEGINS = frozenset("(DIWEC")


def _without_logger(text: str) -> str:
    prefix = _LOGGER.match(text) if text[:1] in _LOGGER_BEGINS else None
    return text[prefix.end() :] if prefix else text


def _rank(tag: re.Match[str]) -> int:
    return int(next(each for each in tag.groups() if each is not None))
