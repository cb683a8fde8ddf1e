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
    return _Reader(source).value(0)[0]


class _Reader:
    """Reads values one after the other; each method returns what it read and where that ends."""

    def __init__(self, source: Source) -> None:
        self._file = source.file
        self._text = source.text
        # Counted once, not for every node: a snapshot may have a hundred thousand of them.
        self._lines = [0, *(match.end() for match in re.finditer("\n", source.text))]

    def value(self, at: int) -> tuple[Node, int]:
        at = self._skip(at)
        if self._text[at] not in "{[":
            return self._scalar(at)
        place, is_pairs = self._place(at), self._text[at] == "{"
        keys: list[Scalar] = []
        values: list[Node] = []
        at = self._skip(at + 1)
        while self._text[at] not in "}]":
            if is_pairs:
                key, at = self._scalar(at)
                keys.append(key)
                at = self._skip(at) + 1
            node, at = self.value(at)
            values.append(node)
            at = self._skip(at)
            if self._text[at] == ",":
                at = self._skip(at + 1)
        if not is_pairs:
            return Items(place, tuple(values)), at + 1
        pairs = {key.text: (key, node) for key, node in zip(keys, values, strict=True)}
        return Pairs(place, tuple(pairs.values())), at + 1

    def _scalar(self, at: int) -> tuple[Scalar, int]:
        if self._text[at] == '"':
            text, end = _TEXT.raw_decode(self._text, at)
            return Scalar(self._place(at), text, plain=False), end
        match = _ATOM.match(self._text, at)
        atom = match.group() if match else ""
        return Scalar(self._place(at), atom, plain=True), at + len(atom)

    def _skip(self, at: int) -> int:
        match = _BLANK.match(self._text, at)
        return match.end() if match else at

    def _place(self, at: int) -> Place:
        line = bisect.bisect_right(self._lines, at)
        return Place(self._file, line, at - self._lines[line - 1] + 1)
