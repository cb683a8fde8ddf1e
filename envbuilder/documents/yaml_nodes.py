"""YAML as a tree of nodes that know their lines, built under limits.

It is built from YAML's events rather than composed: every limit holds before the memory is spent,
and what a document must not contain (anchors, tags, merge keys) is seen where it is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from ..errors import DocumentError, Place, Problem
from ..text import shown
from .source import Source
from .syntax import in_plain_words
from .tree import Items, Node, Pairs, RefusedValue, Scalar

MAX_DEPTH = 24
MAX_NODES = 50_000

# Of '!=2' or '*' the author meant the text.
_QUOTES = "write the value itself; if it begins with this character, put it in quotes"


def parse(source: Source) -> tuple[Pairs, tuple[Problem, ...]]:
    """Return the document and what is wrong with its form, as far as one can read on.

    Raises DocumentError where one cannot: broken YAML, no mapping at the top, a limit exceeded.
    """
    builder = _Builder(source.file)
    try:
        for event in yaml.parse(source.text, Loader=_loader()):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        problem = in_plain_words(error, source.text, source.file)
        raise DocumentError((*builder.problems, problem)) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # PyYAML without its C part lets through what chr() and int() say of "\UFFFFFFFF" and the
        # like, without a position.
        problem = Problem(f"not YAML: {shown(str(error))}", Place(source.file, 1, 1))
        raise DocumentError((*builder.problems, problem)) from error
    return builder.document()


def _loader() -> Any:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass
class _Open:
    """A list or mapping whose end has not been reached; a mapping's keys and values alternate."""

    place: Place
    is_mapping: bool
    children: list[Node] = field(default_factory=list)


class _Builder:
    """Takes events one by one; refuses at once what would grow without bound."""

    def __init__(self, file: str) -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._open: list[_Open] = []
        self._roots: list[Node] = []
        self._count = 0

    def take(self, event: Any) -> None:
        """Add one event."""
        place = Place(self._file, event.start_mark.line + 1, event.start_mark.column + 1)
        if isinstance(event, yaml.DocumentStartEvent):
            self._begin(event, place)
        elif isinstance(event, yaml.NodeEvent):
            self._node(event, place)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()

    def document(self) -> tuple[Pairs, tuple[Problem, ...]]:
        """Return the whole, after the last event."""
        root = self._roots[0] if self._roots else None
        if isinstance(root, Pairs):
            return root, tuple(self.problems)
        if root is None or (isinstance(root, Scalar) and root.plain and not root.text):
            problem = Problem("the document is empty", Place(self._file, 1, 1))
        else:
            what = "a list" if isinstance(root, Items) else "text"
            problem = Problem(
                f"the document must be keys with values, not {what}",
                root.place,
                ("begin with 'schema: 1'",),
            )
        raise DocumentError((*self.problems, problem))

    def _begin(self, event: Any, place: Place) -> None:
        if self._roots:
            self._stop(place, "a second document begins here", "keep one document in a file")
        if event.version or event.tags:
            self._complain(place, "'%' directives are not allowed", "delete the line")

    def _node(self, event: Any, place: Place) -> None:
        self._count += 1
        if self._count > MAX_NODES:
            self._stop(place, f"more than {MAX_NODES} values in one document")
        if isinstance(event, yaml.AliasEvent):
            name = shown(str(event.anchor))
            self._complain(place, f"aliases are not allowed: '*{name}'", _QUOTES)
            self._add(RefusedValue(place))
            return
        if event.anchor is not None:
            name = shown(event.anchor)
            self._complain(place, f"anchors are not allowed: '&{name}'", _QUOTES)
        if event.tag is not None:
            tag = shown(event.tag.replace("tag:yaml.org,2002:", "!!", 1))
            self._complain(place, f"tags are not allowed: '{tag}'", _QUOTES)
        if isinstance(event, yaml.ScalarEvent):
            self._add(Scalar(place, event.value, plain=not event.style))
            return
        if len(self._open) == MAX_DEPTH:
            self._stop(place, f"nested more than {MAX_DEPTH} levels deep")
        self._open.append(_Open(place, isinstance(event, yaml.MappingStartEvent)))

    def _end(self) -> None:
        done = self._open.pop()
        if done.is_mapping:
            self._add(_mapping(done, self.problems))
        else:
            self._add(Items(done.place, tuple(done.children)))

    def _add(self, node: Node) -> None:
        (self._open[-1].children if self._open else self._roots).append(node)

    def _complain(self, place: Place, message: str, *hints: str) -> None:
        self.problems.append(Problem(message, place, hints))

    def _stop(self, place: Place, message: str, *hints: str) -> None:
        self._complain(place, message, *hints)
        raise DocumentError(tuple(self.problems))


def _mapping(done: _Open, problems: list[Problem]) -> Pairs:
    seen: dict[str, tuple[Scalar, Node]] = {}
    entries = list(zip(done.children[::2], done.children[1::2], strict=True))
    for key, value in entries:
        problem = _key_problem(key, seen)
        if problem:
            problems.append(problem)
        elif isinstance(key, Scalar):
            seen[key.text] = (key, value)
    return Pairs(done.place, tuple(seen.values()), partial=len(seen) < len(entries))


def _key_problem(key: Node, seen: dict[str, tuple[Scalar, Node]]) -> Problem | None:
    """Say why *key* cannot be a key; an alias has been reported already."""
    if isinstance(key, Items | Pairs):
        return Problem("a key must be plain text, not a list or mapping", key.place)
    if isinstance(key, RefusedValue):
        return None
    if key.plain and key.text == "<<":
        return Problem("merge keys are not allowed: '<<'", key.place, ("write the keys out",))
    if not key.text:
        return Problem("a key is missing before ':'", key.place)
    if key.text in seen:
        first = seen[key.text][0].place
        message = f"duplicate key '{shown(key.text)}', first written at {first}"
        return Problem(message, key.place, ("keep one of them",))
    return None
