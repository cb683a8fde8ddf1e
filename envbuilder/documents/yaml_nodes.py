"""YAML as a tree of nodes that know their lines, built under limits.

It is built from YAML's events rather than composed: every limit holds before the memory is spent,
and what a document must not contain (anchors, tags, merge keys) is seen where it is written.
"""

from __future__ import annotations

from typing import Any, NoReturn

import yaml

from .. import data
from ..errors import DocumentError, Place, Problem
from ..text import shown
from .source import Source
from .tree import Items, Node, Pairs, RefusedValue, Scalar

_MARKS = ("a block scalar", "an alias", "an anchor", "a tag")
_UNCLOSED = ("unexpected end of stream", "expected ',' or ']'", "expected ',' or '}'")


def in_plain_words(error: Any, text: str, file: str) -> Problem:
    """Return the problem that a yaml.MarkedYAMLError reports about *text*."""
    mark = error.problem_mark or error.context_mark
    complaint = f"{error.problem or ''} {error.context or ''}"
    if mark is None:
        return Problem(
            "document.not-yaml", f"not YAML: {shown(complaint.strip())}", Place(file, 1, 1)
        )
    # Where something is left open, where it begins helps more than where the parser gives up.
    unclosed = any(pattern in complaint for pattern in _UNCLOSED) and error.context_mark is not None
    where = error.context_mark if unclosed else mark
    place = Place(file, where.line + 1, where.column + 1)
    if "cannot start any token" in complaint:
        return _bad_start(_character(text, mark), place)
    if any(pattern in complaint for pattern in _MARKS) and error.context_mark is not None:
        # ">=3.8", "*" and "!=2" without quotes: a folded text, an alias and a tag to YAML.
        begin = error.context_mark
        return _bad_start(_character(text, begin), Place(file, begin.line + 1, begin.column + 1))
    for patterns, message, hint in data.table(data.YAML_MESSAGES):
        if any(pattern in complaint for pattern in patterns.split(" | ")):
            return Problem("document.not-yaml", message, place, (hint,))
    return Problem("document.not-yaml", f"not YAML: {shown(complaint.strip())}", place)


def _character(text: str, mark: Any) -> str:
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    return line[mark.column : mark.column + 1]


def _bad_start(character: str, place: Place) -> Problem:
    if character == "\t":
        return Problem(
            "document.tab", "a tab is not allowed as indentation", place, ("indent with spaces",)
        )
    message = f"a value cannot begin with '{shown(character)}'"
    return Problem("document.missing-quotes", message, place, ("put the value in quotes",))


LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_DEPTH = 24
MAX_NODES = 50_000
_DEEP = f"nested more than {MAX_DEPTH} levels deep"
_OF_LIBYAML = "maximum nesting depth"

# Of '!=2' or '*' the author meant the text.
_QUOTES = "write the value itself; put it in quotes if it begins with this character"


def parse(source: Source, most: int = MAX_NODES) -> tuple[Pairs, tuple[Problem, ...]]:
    """Return the document and what is wrong with its form, as far as one can read on.

    *most*: how many values it may have.

    Raises DocumentError where one cannot: broken YAML, no mapping at the top, a limit exceeded.
    """
    builder = _Builder(source, most)
    try:
        return builder.document()
    except yaml.MarkedYAMLError as error:
        problem = in_plain_words(error, source.text, source.file)
        if _OF_LIBYAML in str(error.problem):  # libyaml's own limit, met as it reads ahead
            problem = problem._replace(id="document.too-deep", message=_DEEP, hints=())
        raise DocumentError((*builder.problems, problem)) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # PyYAML without its C part lets through what chr() and int() say of "\UFFFFFFFF" and the
        # like, without a position.
        problem = Problem(
            "document.not-yaml", f"not YAML: {shown(str(error))}", Place(source.file, 1, 1)
        )
        raise DocumentError((*builder.problems, problem)) from error


class _Builder:
    """Takes events one by one; refuses at once what would grow without bound."""

    def __init__(self, source: Source, most: int) -> None:
        self.problems: list[Problem] = []
        self._file = source.file
        self._events = yaml.parse(source.text, Loader=LOADER)
        self._count = 0
        self._most = most

    def document(self) -> tuple[Pairs, tuple[Problem, ...]]:
        """Return the whole and what is wrong with it."""
        root: Node | None = None
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    message = "a second document begins here"
                    hint = "keep one document in a file"
                    self._stop("document.several", self._place(event), message, hint)
                if event.version or event.tags:
                    place = self._place(event)
                    message = "'%' directives are not allowed"
                    self._complain("document.not-allowed", place, message, "delete the line")
            elif isinstance(event, yaml.NodeEvent):
                root = self._node(event, 0)
        if root is None or (isinstance(root, Scalar) and root.plain and not root.text):
            self._stop("document.empty", Place(self._file, 1, 1), "the document is empty")
        if not isinstance(root, Pairs):
            what = "a list" if isinstance(root, Items) else "text"
            message = f"the document must be a mapping of keys to values, not {what}"
            self._stop("document.not-a-mapping", root.place, message, "begin with 'schema: 1'")
        return root, tuple(self.problems)

    def _node(self, event: Any, depth: int) -> Node:
        """Return the node that an event begins, with all that is inside of it."""
        place = self._place(event)
        self._count += 1
        if self._count > self._most:
            message = f"more than {self._most} values in one document"
            self._stop("document.too-large", place, message)
        if isinstance(event, yaml.AliasEvent):
            name = shown(str(event.anchor))
            message = f"aliases are not allowed: '*{name}'"
            self._complain("document.not-allowed", place, message, _QUOTES)
            return RefusedValue(place)
        if event.anchor is not None:
            name = shown(event.anchor)
            message = f"anchors are not allowed: '&{name}'"
            self._complain("document.not-allowed", place, message, _QUOTES)
        if event.tag is not None:
            tag = shown(event.tag.replace("tag:yaml.org,2002:", "!!", 1))
            message = f"tags are not allowed: '{tag}'"
            self._complain("document.not-allowed", place, message, _QUOTES)
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(place, event.value, plain=not event.style)
        if depth == MAX_DEPTH:
            self._stop("document.too-deep", place, _DEEP)
        inside = []
        while not isinstance(below := next(self._events), yaml.CollectionEndEvent):
            inside.append(self._node(below, depth + 1))
        if isinstance(event, yaml.SequenceStartEvent):
            return Items(place, tuple(inside))
        return self._mapping(place, inside[::2], inside[1::2])

    def _mapping(self, place: Place, keys: list[Node], values: list[Node]) -> Pairs:
        seen: dict[str, tuple[Scalar, Node]] = {}
        for key, value in zip(keys, values, strict=True):
            problem = _key_problem(key, seen)
            if problem:
                self.problems.append(problem)
            elif isinstance(key, Scalar):
                seen[key.text] = (key, value)
        return Pairs(place, tuple(seen.values()), partial=len(seen) < len(keys))

    def _place(self, event: Any) -> Place:
        return Place(self._file, event.start_mark.line + 1, event.start_mark.column + 1)

    def _complain(self, problem_id: str, place: Place, message: str, *hints: str) -> None:
        self.problems.append(Problem(problem_id, message, place, hints))

    def _stop(self, problem_id: str, place: Place, message: str, *hints: str) -> NoReturn:
        self._complain(problem_id, place, message, *hints)
        raise DocumentError(tuple(self.problems))


def _key_problem(key: Node, seen: dict[str, tuple[Scalar, Node]]) -> Problem | None:
    """Say why *key* cannot be a key; an alias has been reported already."""
    if isinstance(key, Items | Pairs):
        return Problem(
            "document.invalid-key", "a key must be plain text, not a list or mapping", key.place
        )
    if isinstance(key, RefusedValue):
        return None
    if key.plain and key.text == "<<":
        return Problem(
            "document.not-allowed",
            "merge keys are not allowed: '<<'",
            key.place,
            ("write out the keys",),
        )
    if not key.text:
        return Problem("document.invalid-key", "a key is missing before ':'", key.place)
    if key.text in seen:
        first = seen[key.text][0].place
        message = f"duplicate key '{shown(key.text)}', first written at {first}"
        return Problem("document.duplicate-key", message, key.place, ("keep one of them",))
    return None
