"""A log as lines, each of the rank that wrote it: streamed, whatever its size and its bytes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import NamedTuple, Protocol

# Longer lines are read in pieces: a file without line ends is no line of a gigabyte.
LONGEST = 4000
# So many bytes are read at once.
_SIZE = 1 << 18
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


class LogText(NamedTuple):
    """A line, or a piece of a long one, without its tag. ``rank``: the tag's, if it has one."""

    number: int
    text: str
    rank: int | None


class ByteSource(Protocol):
    """A file, or what reads one. No bytes: the end, or none have come yet."""

    def read(self, size: int, /) -> bytes: ...


class LogLines:
    """The lines of a log. What is no UTF-8 is replaced. ``count``: how many were read.

    A line whose text was there ``REPEATED`` times, apart from its numbers, is read and counted,
    but yielded only near other lines and at the end of the log.
    """

    def __init__(self, stream: ByteSource) -> None:
        self.count = 0
        self._stream = stream
        self._rest = b""
        self._begins = True
        self._shapes: Counter[bytes] = Counter()
        self._tags: set[bytes] = set()

    def read(self, *, is_final: bool = True) -> Iterator[LogText]:
        """Yield the lines that have come; *is_final*: also the last one, without its end."""
        left: _Chunk | None = None
        while True:
            read = self._stream.read(_SIZE)
            text = self._rest + read
            if not read and not (is_final and text):
                break
            end = text.rfind(b"\n") + 1
            if not end and (not read or len(text) > 2 * _SIZE):
                end = len(text)
            self._rest = text[end:]
            if end:
                chunk = self._chunk(text[:end])
                if chunk.near is None or any(chunk.near):
                    yield from _texts([*_far(left), *_near(chunk)])
                left = chunk
        yield from _texts(_far(left))
        if is_final and not self._begins:
            self.count += 1

    def _chunk(self, text: bytes) -> _Chunk:
        """Count the lines of a text, and find those that are near one that is not repeated."""
        shapes = text.translate(None, _DIGITS).split(b"\n")
        ends = text.endswith(b"\n")
        if ends:
            shapes.pop()
        chunk = _Chunk(text, self.count + 1, self._begins, self._near(shapes, text))
        self.count += len(shapes) - (not ends)
        self._begins = ends
        return chunk

    def _near(self, shapes: Sequence[bytes], text: bytes) -> bytearray | None:
        """Return which lines are near one that is not repeated; None: all are."""
        known = self._shapes
        fresh = {shape for shape in set(shapes) if known.get(shape, 0) < REPEATED}
        numbers = range(len(shapes))
        indices = list(compress(numbers, map(fresh.__contains__, shapes))) if fresh else []
        if len(known) < _MOST_SHAPES:
            known.update([shapes[index] for index in indices])
        indices += self._of_new_ranks(text)
        if len(indices) * 2 > len(shapes):
            return None
        near = bytearray(len(shapes))
        for index in indices:
            first, last = max(0, index - _AROUND), index + _AROUND + 1
            near[first:last] = b"\1" * (min(last, len(shapes)) - first)
        return near

    def _of_new_ranks(self, text: bytes) -> list[int]:
        """Return the lines of ranks that no earlier chunk has."""
        tags = set(_TAGS.findall(b"\n" + text))
        new = tuple(tags - self._tags)
        if not new or len(self._tags) > MOST_RANKS:
            return []
        self._tags.update(new)
        return [index for index, line in enumerate(text.split(b"\n")) if line.startswith(new)]


class _Chunk(NamedTuple):
    """Lines that were read at once, from the number *first* on. *begins*: the first is whole."""

    text: bytes
    first: int
    begins: bool
    near: bytearray | None


_Piece = tuple[int, bytes, bool]


def _near(chunk: _Chunk) -> Iterator[_Piece]:
    """Yield the pieces of the lines that are near."""
    lines = chunk.text.removesuffix(b"\n").split(b"\n")
    numbers = range(len(lines))
    near = numbers if chunk.near is None else compress(numbers, chunk.near)
    for index in near:
        yield from _pieces(chunk, index, lines[index])


def _far(chunk: _Chunk | None) -> Iterator[_Piece]:
    """Yield the pieces of the last lines of a chunk that are not near."""
    if chunk is not None and chunk.near is not None:
        lines = chunk.text.removesuffix(b"\n").rsplit(b"\n", _TAIL)[-_TAIL:]
        first = len(chunk.near) - len(lines)
        for index, line in enumerate(lines, first):
            if not chunk.near[index]:
                yield from _pieces(chunk, index, line)


def _pieces(chunk: _Chunk, index: int, line: bytes) -> Iterator[_Piece]:
    for start in range(0, len(line) or 1, LONGEST):
        begins = not start and (chunk.begins or index > 0)
        yield chunk.first + index, line[start : start + LONGEST], begins


def _texts(pieces: Iterable[_Piece]) -> Iterator[LogText]:
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
