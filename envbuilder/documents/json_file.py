"""JSON that a program wrote, read with the same care as what people write.

The good file is read in one go. Only a faulty one is read a second time, into nodes that know
their lines, so that its problems have places and words like those of any other document.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from json.decoder import JSONDecodeError
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from ..errors import DocumentError, Problem
from ..knowledge.entries import Entries
from ..text import shown
from .json_nodes import nodes
from .messages import all_of, problems
from .source import Source, place_of, read
from .tree import Node, Pairs

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
