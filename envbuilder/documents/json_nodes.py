"""JSON as a tree of nodes that know their lines, for the messages about faulty files."""

from __future__ import annotations

import bisect
import re
from json import JSONDecoder

from ..errors import Place
from .source import Source
from .tree import Items, Node, Pairs, Scalar

_BLANK = re.compile(r"[ \t\r\n]*")
_TEXT = JSONDecoder()
_ATOM = re.compile(r"[^\s,\]}]+")


def nodes(source: Source) -> Node:
    """Return the tree of text that is known to be JSON. Of doubled keys the last one counts."""
    return _JsonReader(source).value(0)[0]


class _JsonReader:
    """Reads values one after the other; each method returns what it read and where that ends."""

    def __init__(self, source: Source) -> None:
        self._file = source.file
        self._text = source.text
        # Counted once, not for every node: a snapshot may have a hundred thousand of them.
        self._lines = [0, *(match.end() for match in re.finditer("\n", source.text))]

    def value(self, at: int) -> tuple[Node, int]:
        at = self._skip(at)
        first = self._text[at]
        if first == "{":
            return self._pairs(at)
        if first == "[":
            return self._items(at)
        return self._scalar(at)

    def _scalar(self, at: int) -> tuple[Scalar, int]:
        if self._text[at] == '"':
            text, end = _TEXT.raw_decode(self._text, at)
            return Scalar(self._place(at), text, plain=False), end
        match = _ATOM.match(self._text, at)
        atom = match.group() if match else ""
        return Scalar(self._place(at), atom, plain=True), at + len(atom)

    def _pairs(self, begin: int) -> tuple[Pairs, int]:
        pairs: dict[str, tuple[Scalar, Node]] = {}
        at = self._skip(begin + 1)
        while self._text[at] != "}":
            key, at = self._scalar(at)
            node, at = self.value(self._skip(at) + 1)
            pairs[key.text] = (key, node)
            at = self._next(at)
        return Pairs(self._place(begin), tuple(pairs.values())), at + 1

    def _items(self, begin: int) -> tuple[Items, int]:
        items: list[Node] = []
        at = self._skip(begin + 1)
        while self._text[at] != "]":
            node, at = self.value(at)
            items.append(node)
            at = self._next(at)
        return Items(self._place(begin), tuple(items)), at + 1

    def _next(self, at: int) -> int:
        """Return where the next entry or the closing bracket stands."""
        at = self._skip(at)
        return self._skip(at + 1) if self._text[at] == "," else at

    def _skip(self, at: int) -> int:
        match = _BLANK.match(self._text, at)
        return match.end() if match else at

    def _place(self, at: int) -> Place:
        line = bisect.bisect_right(self._lines, at)
        return Place(self._file, line, at - self._lines[line - 1] + 1)
