"""The search for signs in a log."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .reading import MOST_RANKS, ByteSource, LogLines, LogText
from .signs import WORD, Sign

# So much text is searched at once, in characters.
_BATCH = 1 << 19
# So many lines are searched again with what follows them: a message may go over several.
_AGAIN = 40
# A match has at most so many lines.
_LONGEST = 320
# Of each sign so many matches are kept for each rank, and so many are counted.
_KEPT = 3
COUNTED = 1000
# Of a sign with different texts so many are kept.
_DISTINCT = 40
# So many lines are shown around a match.
_AROUND = 2
# So many lines of a match are shown.
_SPAN = 8


@dataclass(frozen=True)
class Hit:
    """A match in a log: its first line, what it says, and what stands around it."""

    line: int
    last: int
    rank: int | None
    text: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    groups: Mapping[str, str]
    shape: str = ""


@dataclass
class Findings:
    """What was found in one log. ``harmless``: stacks of lines that report no failure."""

    lines: int = 0
    ranks: set[int] = field(default_factory=set)
    hits: dict[str, list[Hit]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    harmless: list[Hit] = field(default_factory=list)


class LogSearch:
    """The search of one log, in memory that does not grow with it. ``found``: what it found."""

    def __init__(self, stream: ByteSource, signs: Sequence[Sign]) -> None:
        self.found = Findings()
        self._signs = signs
        self._log = LogLines(stream)
        self._buffers: dict[int | None, list[LogText]] = {}

    def read(self, *, is_final: bool = True) -> bool:
        """Search the lines that have come; return whether there were any.

        *is_final*: the last line counts, although its end has not come.
        """
        lines, size = self.found.lines, 0
        for each in self._log.read(is_final=is_final):
            known = each.rank in self._buffers or len(self._buffers) <= MOST_RANKS
            self._buffers.setdefault(each.rank if known else None, []).append(each)
            size += len(each.text) + 1
            if size >= _BATCH:
                _search_all(self._buffers, self._signs, self.found)
                size = 0
        _search_all(self._buffers, self._signs, self.found)
        self.found.lines = self._log.count
        self.found.ranks = {rank for rank in self._buffers if rank is not None}
        return self.found.lines > lines


def search(stream: ByteSource, signs: Sequence[Sign]) -> Findings:
    """Return where the signs are in a log."""
    log = LogSearch(stream, signs)
    log.read()
    return log.found


def _search_all(
    buffers: dict[int | None, list[LogText]], signs: Sequence[Sign], found: Findings
) -> None:
    """Search what came since, each rank's lines for themselves, and keep the last ones."""
    for rank, those in buffers.items():
        fresh = next(
            (i for i, each in enumerate(those) if not isinstance(each, _SearchedLine)), None
        )
        if fresh is not None:
            _Batch(those, fresh, rank).search(signs, found)
        buffers[rank] = [
            _SearchedLine(each.number, each.text, each.rank) for each in those[-_AGAIN:]
        ]


class _SearchedLine(LogText):
    """A line that was searched before."""


class _Batch:
    """Lines of one rank. ``fresh``: the index of the first that was not searched yet."""

    def __init__(self, those: Sequence[LogText], fresh: int, rank: int | None) -> None:
        self.lines, self.rank = those, rank
        self.text = "\n".join(each.text for each in those)
        self.starts = list(_starts(those))
        self.fresh = self.starts[fresh]

    def search(self, signs: Iterable[Sign], found: Findings) -> None:
        lower = self.text.lower()
        words = "\n".join(set(WORD.findall(lower)))
        for sign in signs:
            if found.counts.get(sign.id, 0) >= _limit(sign):
                continue
            if sign.needles is not None and not any(
                word in words and needle in lower for needle, word in sign.words
            ):
                continue
            if sign.keep == "last":
                self._last_match(sign, lower, found)
            else:
                self._matches(sign, lower, found)

    def _windows(self, sign: Sign, lower: str) -> Iterable[tuple[int, int]]:
        """Return the parts of the text, in lines, where a sign may match."""
        if sign.needles is None or len(lower) != len(self.text):
            return [(0, len(self.lines) - 1)]
        before, after = (0, 0) if sign.one_line else (_AGAIN, _LONGEST)
        places: set[int] = set()
        for needle in sign.needles:
            place = lower.find(needle)
            while place >= 0:
                index = self._index(place)
                places.add(index)
                place = lower.find(needle, max(self._end(index), place + 1))
        windows: list[tuple[int, int]] = []
        for index in sorted(places):
            first, last = max(0, index - before), min(len(self.lines) - 1, index + after)
            if windows and after and first <= windows[-1][1] + 1:
                windows[-1] = (windows[-1][0], last)
            else:
                windows.append((first, last))
        return windows

    def _last_match(self, sign: Sign, lower: str, found: Findings) -> None:
        """Keep the last line that matches."""
        for first, last in reversed(list(self._windows(sign, lower))):
            for number in range(last, first - 1, -1):
                start, end = self.starts[number], self._end(number)
                if match := sign.expression.search(self.text, start, end):
                    found.hits[sign.id] = [self._hit(match)]
                    return

    def _matches(self, sign: Sign, lower: str, found: Findings) -> None:
        before = -1
        for first, last in self._windows(sign, lower):
            start, end = self.starts[first], self._end(last)
            for match in sign.expression.finditer(self.text, start, end):
                line = self._index(match.start())
                if match.end() <= self.fresh or line == before:
                    continue
                before = line
                if sign.exception and sign.exception.search(match[0]):
                    if "\n" in match[0]:
                        found.harmless = [*found.harmless, self._hit(match)][-_DISTINCT:]
                    continue
                if not self._keep(sign, match, found):
                    return

    def _keep(self, sign: Sign, match: re.Match[str], found: Findings) -> bool:
        """Keep a match, if it is one of the first; return whether more are counted."""
        count = found.counts[sign.id] = found.counts.get(sign.id, 0) + 1
        found.last[sign.id] = self.lines[self._index(match.end() - 1)].number
        kept = found.hits.setdefault(sign.id, [])
        if sign.keep == "distinct":
            if len(kept) < _DISTINCT and all(each.shape != _shape(match) for each in kept):
                kept.append(self._hit(match))
        elif sum(each.rank == self.rank for each in kept) < _KEPT:
            kept.append(self._hit(match))
        return count < _limit(sign)

    def _end(self, number: int) -> int:
        return self.starts[number] + len(self.lines[number].text)

    def _hit(self, match: re.Match[str]) -> Hit:
        first = self._index(match.start())
        last = self._index(max(match.start(), match.end() - 1))
        words = [each.text for each in self.lines]
        shown = words[first : last + 1]
        if len(shown) > _SPAN:
            shown = [*shown[: _SPAN - 1], shown[-1]]
        return Hit(
            line=self.lines[first].number,
            last=self.lines[last].number,
            rank=self.rank,
            text=tuple(shown),
            before=tuple(words[max(0, first - _AROUND) : first]),
            after=tuple(words[last + 1 : last + 1 + _AROUND]),
            groups={name: text for name, text in match.groupdict().items() if text is not None},
            shape=_shape(match),
        )

    def _index(self, place: int) -> int:
        return bisect_right(self.starts, place) - 1


def _limit(sign: Sign) -> int:
    """Return how many matches of a sign are counted."""
    return 1 if sign.keep == "once" else COUNTED


def _shape(match: re.Match[str]) -> str:
    """Return the text of a match without its numbers, or its groups, which state facts."""
    groups = match.groupdict("")
    reasons = [text for name, text in groups.items() if text and name.startswith(_REASONS)]
    if groups and not reasons:
        return "\n".join(groups.values())
    return _NUMBERS.sub("#", reasons[0] if reasons else match[0])


# The groups that state the reason of an error; those of facts have other names.
_REASONS = ("root", "other", "report", "wrapper")
_NUMBERS = re.compile(r"(?:0x)?[0-9a-f]*\d[0-9a-f]*")


def _starts(those: Sequence[LogText]) -> Iterator[int]:
    place = 0
    for each in those:
        yield place
        place += len(each.text) + 1
