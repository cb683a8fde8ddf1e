"""JSON that a program wrote, read with the same care as what people write.

The good file is read in one go. Only a faulty one is read a second time, into nodes that know
their lines, so that its problems have places and words like those of any other document.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from json.decoder import JSONDecodeError
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from ..errors import DocumentError, Problem
from ..model.entries import Entries
from ..text import shown
from .json_nodes import nodes
from .messages import problem
from .source import Source, place_of, read
from .tree import Node, Pairs

M = TypeVar("M", bound=BaseModel)

# More would push the first ones off the screen.
MAX_PROBLEMS = 20

# So many of pydantic's findings are put into words, and sorted.
_ENOUGH = 500


@dataclass(frozen=True)
class JsonFile(Generic[M]):
    """A kind of file: what it is read as, what messages call it, and how to get a good one.

    ``entries``: what says which entries it may name.
    """

    model: type[M]
    called: str
    again: str
    max_bytes: int
    entries: Callable[[], Entries] | None = None

    def load(self, path: Path) -> M:
        """Read and check a file.

        Raises DocumentError with line and column of every problem, UsageError when the file cannot
        be read at all.
        """
        source = read(path, self.max_bytes)
        try:
            return self.model.model_validate_json(
                source.text,
                strict=True,
                by_alias=True,
                by_name=False,
                context=self.entries and self.entries(),
            )
        except ValidationError as error:
            self._refuse_broken(source)
            self._refuse_wrong(source, error)

    def _refuse_broken(self, source: Source) -> None:
        """Raise DocumentError if the text is no JSON."""
        try:
            json.loads(source.text)
        except JSONDecodeError as error:
            end = len(source.text.rstrip())
            cut_off = error.pos >= end or error.msg.startswith("Unterminated string")
            if end == 0:
                message = f"the {self.called} is empty"
            elif cut_off:
                message = f"the {self.called} ends in the middle: it was not written to its end"
            else:
                message = f"not JSON: {shown(error.msg)}"
            self._refuse(source, end if cut_off else error.pos, message)
        except RecursionError:
            self._refuse(source, 0, f"nested too deeply for a {self.called}")

    def _refuse_wrong(self, source: Source, error: ValidationError) -> NoReturn:
        """Raise DocumentError with what the model says of text that is JSON."""
        root = self._nodes(source)
        if not isinstance(root, Pairs):
            self._refuse(source, 0, f"a {self.called} must be keys with values")
        details = error.errors(include_url=False, include_input=False)[:_ENOUGH]
        problems = [each for one in details if (each := problem(one, root, self.model))]
        if not problems:
            self._refuse(source, 0, f"no {self.called}: {shown(details[0]['msg'])}")
        problems.sort(
            key=lambda each: (each.place.line, each.place.column) if each.place else (0, 0)
        )
        first = problems[:MAX_PROBLEMS]
        if len(problems) > MAX_PROBLEMS:
            rest = len(problems) - MAX_PROBLEMS
            first.append(
                Problem(f"and at least {rest} more problems", problems[MAX_PROBLEMS].place)
            )
        raise DocumentError(tuple(first))

    def _nodes(self, source: Source) -> Node:
        try:
            return nodes(source)
        except RecursionError:
            self._refuse(source, 0, f"nested too deeply for a {self.called}")

    def _refuse(self, source: Source, at: int, message: str) -> NoReturn:
        place = place_of(source.text, at, source.file)
        raise DocumentError((Problem(message, place, (self.again,)),))
