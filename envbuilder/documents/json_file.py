"""JSON that a program wrote, read with the same care as what people write.

The good file is read in one go. Only a faulty one is read a second time, into nodes that know
their lines, so that its problems have places and words like those of any other document.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from json import JSONDecoder
from json.decoder import JSONDecodeError
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from ..errors import DocumentError, Place, Problem
from ..knowledge.entries import Entries
from ..text import shown
from .messages import all_of, problems
from .source import Source, place_of, read
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


M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class JsonFile(Generic[M]):
    """A kind of file: what it is read as, what messages call it, and how to get a good one.

    ``entries``: what says which entries it may name. ``faults``: what is wrong with a value whose
    parts are right, a line each.
    """

    model: type[M]
    called: str
    again: str
    max_bytes: int
    entries: Callable[[], Entries] | None = None
    faults: Callable[[M], Sequence[str]] = lambda _: ()

    def load(self, path: Path) -> M:
        """Read and check a file.

        Raises DocumentError with line and column of every problem, UsageError when the file cannot
        be read at all.
        """
        return self.read(read(path, self.max_bytes))

    def read(self, source: Source) -> M:
        """Check what a file holds. Raises DocumentError with line and column of every problem."""
        try:
            value = self.model.model_validate_json(
                source.text,
                strict=True,
                by_alias=True,
                by_name=False,
                context=self.entries and self.entries(),
            )
        except ValidationError as error:
            root = self._root(source)
            if not isinstance(root, Pairs):
                message = f"a {self.called} must be a mapping of keys to values"
                self._refuse("document.not-a-mapping", source, 0, message)
            found = problems(error, root, self.model)
            if not found:
                first = error.errors(include_url=False, include_input=False)[0]
                message = f"not a {self.called}: {shown(first['msg'])}"
                self._refuse("document.invalid-value", source, 0, message)
            raise all_of(found) from None
        place = place_of(source.text, 0, source.file)
        wrong = [
            Problem("lock.contradiction", each, place, (self.again,)) for each in self.faults(value)
        ]
        if wrong:
            raise all_of(wrong)
        return value

    def _root(self, source: Source) -> Node:
        """Return what was written. Raises DocumentError if the text is no JSON."""
        try:
            json.loads(source.text)
            return nodes(source)
        except JSONDecodeError as error:
            end = len(source.text.rstrip())
            cut_off = error.pos >= end or error.msg.startswith("Unterminated string")
            if end == 0:
                self._refuse("document.empty", source, 0, f"the {self.called} is empty")
            if cut_off:
                message = f"the {self.called} is truncated: it ends in the middle"
                self._refuse("document.truncated", source, end, message)
            self._refuse("document.not-json", source, error.pos, f"not JSON: {shown(error.msg)}")
        except RecursionError:
            message = f"nested too deeply for a {self.called}"
            self._refuse("document.too-deep", source, 0, message)

    def _refuse(self, problem_id: str, source: Source, at: int, message: str) -> NoReturn:
        place = place_of(source.text, at, source.file)
        raise DocumentError((Problem(problem_id, message, place, (self.again,)),))
