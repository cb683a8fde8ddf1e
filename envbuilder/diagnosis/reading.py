"""A log as lines, each of the rank that wrote it: streamed, whatever its size and its bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

# Longer lines are read in pieces: a file without line ends is no line of a gigabyte.
LONGEST = 4000
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


def lines(stream: BinaryIO) -> Iterator[LogText]:
    """Yield the lines of a log. What is no UTF-8 is replaced."""
    number, begins = 1, True
    while piece := stream.readline(LONGEST):
        ends = piece.endswith(b"\n")
        text = piece.decode("utf-8", "replace").rstrip("\r\n")
        if "\x1b" in text:
            text = _TERMINAL.sub("", text)
        # A progress bar writes one line over and over.
        for part in text.split("\r") if "\r" in text else (text,):
            tag = _TAG.match(part) if begins and part[:1] in _TAG_BEGINS else None
            yield (
                LogText(number, part[tag.end() :], _rank(tag))
                if tag
                else LogText(number, part, None)
            )
        number += ends
        begins = ends


_TAG_BEGINS = frozenset("[0123456789")


def _rank(tag: re.Match[str]) -> int:
    return int(next(each for each in tag.groups() if each is not None))
