"""A log as lines, each of the rank that wrote it: streamed, whatever its size and its bytes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress, islice
from typing import Protocol

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
_DIGITS = b"0123456789"
# Of so many ranks the lines are told apart; those of more count as nobody's.
MOST_RANKS = 4096

# Colours, titles of windows and what else a program tells a terminal.
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
# The beginnings of the tags below.
_TAGS = re.compile(rb"\n(\[\d+,\d+\]<std|\[\d+\]<std|\[(?:rank|default)\d+\]:|\[\d+\] |\d{1,5}: )")
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


class LineSource(Protocol):
    """A file, or what gives a file's lines. No line: the end, or none has come yet."""

    def readline(self, size: int, /) -> bytes: ...


class LogLines:
    """The lines of a log. What is no UTF-8 is replaced. ``count``: how many were read.

    A log that grows is iterated again: then its new lines come.

    A line whose text was there ``REPEATED`` times, apart from its numbers, is read and counted,
    but yielded only near other lines and at the end of the log.
    """

    def __init__(self, stream: LineSource) -> None:
        self.count = 0
        self._stream = stream
        self._shapes: Counter[bytes] = Counter()
        self._tags: set[bytes] = set()

    def __iter__(self) -> Iterator[LogText]:
        begins = True
        tail: list[_Piece] = []
        pieces = iter(partial(self._stream.readline, LONGEST), b"")
        while batch := list(islice(pieces, _BATCH)):
            text = b"".join(batch)
            whole = begins and text.count(b"\n") == len(batch)
            near = self._near(batch, text if whole else None)
            if near is None:
                chosen = self._numbered(batch, begins, whole)
                far: list[_Piece] = []
            else:
                chosen, far = self._chosen(batch, begins, whole, near)
            if chosen:
                yield from _texts([*tail, *chosen])
            tail = far
            begins = batch[-1][-1:] == b"\n"
        yield from _texts(tail)
        self.count += not begins

    def _chosen(
        self, batch: Sequence[bytes], begins: bool, whole: bool, near: bytearray
    ) -> tuple[list[_Piece], list[_Piece]]:
        """Return the pieces that are near, and the last ones that are not."""
        last = range(max(0, len(batch) - _TAIL), len(batch))
        indices = list(compress(range(len(batch)), near))
        others = [index for index in last if not near[index]]
        if whole:
            first = self.count + 1
            self.count += len(batch)
            return (
                [(first + index, batch[index], True) for index in indices],
                [(first + index, batch[index], True) for index in others],
            )
        pieces = self._numbered(batch, begins, whole)
        return [pieces[index] for index in indices], [pieces[index] for index in others]

    def _numbered(self, batch: Sequence[bytes], begins: bool, whole: bool) -> list[_Piece]:
        """Return the pieces with the numbers of their lines, and whether they begin one."""
        if whole:
            first = self.count + 1
            self.count += len(batch)
            return [(number, piece, True) for number, piece in enumerate(batch, first)]
        pieces = []
        for piece in batch:
            pieces.append((self.count + 1, piece, begins))
            begins = piece[-1:] == b"\n"
            self.count += begins
        return pieces

    def _near(self, batch: Sequence[bytes], text: bytes | None) -> bytearray | None:
        """Return which lines are near one that is not repeated; None: all are.

        *text*: that of the batch, if its pieces are whole lines.
        """
        if text is None:
            shapes = [piece.translate(None, _DIGITS).rstrip(b"\n") for piece in batch]
        else:
            shapes = text.translate(None, _DIGITS).split(b"\n")[:-1]
        known = self._shapes
        fresh = {shape for shape in set(shapes) if known[shape] < REPEATED}
        indices = [index for index, shape in enumerate(shapes) if shape in fresh] if fresh else []
        if len(known) < _MOST_SHAPES:
            known.update([shapes[index] for index in indices])
        indices += self._of_new_ranks(batch, text)
        if len(indices) * 2 > len(batch):
            return None
        near = bytearray(len(batch))
        for index in indices:
            first, last = max(0, index - _AROUND), index + _AROUND + 1
            near[first:last] = b"\1" * (min(last, len(batch)) - first)
        return near

    def _of_new_ranks(self, batch: Sequence[bytes], text: bytes | None) -> list[int]:
        """Return the lines of ranks that no earlier batch has."""
        tags = set(_TAGS.findall(b"\n" + (b"\n".join(batch) if text is None else text)))
        new = tuple(tags - self._tags)
        if not new or len(self._tags) > MOST_RANKS:
            return []
        self._tags.update(new)
        return [index for index, piece in enumerate(batch) if piece.startswith(new)]


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
# That of a build of an image (#8 12.3), of a quotation (>), of GitHub's runners (a time with Z).
_LOGGER = re.compile(
    r"(?:#\d+ \d+\.\d+ |> |\d{4}-\d\d-\d\dT[\d:.]+Z )?"
    r"(?:\((?:[\w.:<>=-]+ ){0,3}pid=\d+(?:, ip=[\d.]+)?\) ?)?"
    r"(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?\S{1,200}\.py:\d+\] ?)?"
)
_LOGGER_BEGINS = frozenset("(DIWEC#>2")


def _without_logger(text: str) -> str:
    prefix = _LOGGER.match(text) if text[:1] in _LOGGER_BEGINS else None
    return text[prefix.end() :] if prefix else text


def _rank(tag: re.Match[str]) -> int:
    return int(tag[tag.lastindex or 0])
