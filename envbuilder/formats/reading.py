"""Reading a file of another tool: every problem with its place, and notes on what was left out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from ..documents.source import Source
from ..documents.tree import Items, Node, Pairs, Scalar
from ..errors import DocumentError, Place, Problem
from ..redaction.names import strength
from ..target_tools.names import without_credentials
from ..text import shown

MOST_VALUES = 2_000_000
"""A lock of several platforms has more values than any document of ours."""

_NULL = frozenset({"", "~", "null", "Null", "NULL"})

_KEY = re.compile(r"[\w.-]+")


@dataclass
class Reading:
    """Gathers what is wrong with a file, and what a user must know of how it was read.

    One class with many small methods: each keeps what it finds wrong and goes on reading.
    ``again``: how such a file is made, the advice where something in it is wrong.
    """

    again: str
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def wrong(self, problem_id: str, place: Place, message: str, *hints: str) -> None:
        """Keep a problem."""
        self.problems.append(Problem(problem_id, message, place, hints or (self.again,)))

    def stop(self, problem_id: str, place: Place, message: str, *hints: str) -> NoReturn:
        """Raise DocumentError with this problem and those before it."""
        self.wrong(problem_id, place, message, *hints)
        raise DocumentError(tuple(self.problems))

    def check(self) -> None:
        """Raise DocumentError if anything is wrong."""
        if self.problems:
            raise DocumentError(tuple(self.problems))

    def note(self, place: Place, text: str) -> None:
        """Keep a note."""
        self.notes.append(f"{place}: {text}")

    def clean(self, url: str, place: Place) -> str:
        """Return a URL without credentials; note that it had some, without repeating them."""
        found = without_credentials(url)
        if found != url:
            text = "its credentials are left out; conda, pip and envbuild read those of ~/.netrc"
            self.note(place, f"{shown(found)}: {text}")
        return found

    # ------------------------------------------------------------ nodes of YAML

    def text(self, holder: Pairs, key: str, *, required: bool = True) -> str | None:
        """Return the text at a key; None, and a problem if it is *required*, where there is none.

        A number is the text that is written: 1.10 is no 1.1.
        """
        node = holder.index[key][1] if key in holder.index else None
        if isinstance(node, Scalar) and not (node.plain and node.text in _NULL):
            return node.text
        if node is not None and not isinstance(node, Scalar):
            self.wrong("package-list.not-text", node.place, f"{key} must be text")
        elif required:
            self.wrong("package-list.missing-key", holder.place, f"{key} is missing")
        return None

    def pairs(self, node: Node | None, what: str) -> Iterator[tuple[Scalar, Node]]:
        """Yield keys and values of a mapping; nothing, and a problem, where it is none."""
        if isinstance(node, Pairs):
            yield from node.pairs
        elif node is not None and not _is_null(node):
            self.wrong("package-list.not-a-mapping", node.place, f"{what} must be a mapping")

    def mappings(self, node: Node | None, what: str) -> Iterator[Pairs]:
        """Yield the mappings of a list."""
        for each in self.items(node, what):
            if isinstance(each, Pairs):
                yield each
            else:
                self.wrong(
                    "package-list.not-a-mapping",
                    each.place,
                    f"each item of {what} must be a mapping",
                )

    def items(self, node: Node | None, what: str) -> Iterator[Node]:
        """Yield the items of a list; nothing, and a problem, where it is none."""
        if isinstance(node, Items):
            yield from node.items
        elif node is not None and not _is_null(node):
            self.wrong("package-list.not-a-list", node.place, f"{what} must be a list")

    def texts(self, node: Node | None, what: str) -> tuple[str, ...]:
        """Return the items of a list of texts."""
        found = []
        for each in self.items(node, what):
            if isinstance(each, Scalar):
                found.append(each.text)
            else:
                self.wrong("package-list.not-text", each.place, f"each item of {what} must be text")
        return tuple(found)

    def leave_out(self, label: str, node: Node, place: Place) -> None:
        """Note the line of a setting, and each line of its values; none with a secret's name."""
        lines: dict[int, tuple[Place, list[str]]] = {place.line: (place, [])}
        for leaf in leaves(node):
            lines.setdefault(leaf.place.line, (leaf.place, []))[1].append(
                without_credentials(leaf.text)
            )
        for number, (at, texts) in lines.items():
            # Not the values of names such as password, nor a folder of the author.
            names = (label, *(text for text in texts if _KEY.fullmatch(text)))
            is_secret = label in ("mirrors", "prefix") or any(map(strength, names))
            words = shown(", ".join(texts[:1] if is_secret else texts), 240)
            if number != place.line:
                self.note(at, f"{words} of {shown(label)} is left out")
            else:
                behind = f": {words}" if words and not is_secret else ""
                self.note(at, f"{shown(label)} is left out{behind}")

    def others(self, holder: Node | None, known: Collection[str], label: str = "") -> None:
        """Note each key of a mapping that the reader does not know, and that has a value."""
        for key, value in holder.pairs if isinstance(holder, Pairs) else ():
            if key.text not in known and any(not _is_null(leaf) for leaf in leaves(value)):
                self.leave_out(f"{label}{key.text}", value, key.place)

    def others_of(self, rows: Iterable[Node], known: Collection[str], label: str) -> None:
        """Note each unknown key of rows once, where the first of them has it."""
        noted = set(known)
        for row in rows:
            for key, value in row.pairs if isinstance(row, Pairs) else ():
                if key.text not in noted and any(not _is_null(leaf) for leaf in leaves(value)):
                    noted.add(key.text)
                    self.note(key.place, f"{shown(key.text)} of {label} is left out")


def leaves(node: Node) -> Iterator[Scalar]:
    """Yield the texts of a node, also those of lists and mappings in it."""
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, Items):
        for item in node.items:
            yield from leaves(item)
    elif isinstance(node, Pairs):
        for key, value in node.pairs:
            yield key
            yield from leaves(value)


def node_at(holder: Node | None, key: str) -> Node | None:
    """Return the value of a key; None where there is none."""
    return holder.index[key][1] if isinstance(holder, Pairs) and key in holder.index else None


def pairs_at(holder: Node | None, key: str) -> Pairs | None:
    """Return the mapping at a key; None where there is none."""
    node = node_at(holder, key)
    return node if isinstance(node, Pairs) else None


def place_of(source: Source, *texts: str) -> Place:
    """Return the first line that contains a text, where a reader states no lines."""
    for text in texts:
        for number, line in enumerate(source.text.splitlines(), start=1):
            if text and text in line:
                return Place(source.file, number, line.index(text) + 1)
    return Place(source.file, 1, 1)


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.plain and node.text in _NULL
