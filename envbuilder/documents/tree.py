"""A document as a tree of nodes that know their lines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ..errors import Place

Keys = tuple[str | int, ...]


class Scalar(NamedTuple):
    """Text as it is written; ``plain``: without quotes, so that it may mean a number."""

    place: Place
    text: str
    plain: bool


class Items(NamedTuple):
    """A list."""

    place: Place
    items: tuple[Node, ...]


@dataclass(frozen=True)
class Pairs:
    """A mapping without doubles. ``partial``: it had keys that were refused."""

    place: Place
    pairs: tuple[tuple[Scalar, Node], ...]
    partial: bool = False

    @cached_property
    def index(self) -> dict[str, tuple[Scalar, Node]]:
        """Key and value nodes by the key's text."""
        return {key.text: (key, value) for key, value in self.pairs}


class RefusedValue(NamedTuple):
    """What was written here is not allowed and has been reported; nothing is known of it."""

    place: Place


Node = Scalar | Items | Pairs | RefusedValue


KEY = "[key]"
"""Behind the key of a mapping, as pydantic has it: what is meant is the key itself."""


def find(root: Pairs, keys: Keys) -> Node | None:
    """Return the node at *keys*, or None if it, or what it is in, was refused or left out."""
    node: Node = root
    for key in keys:
        if isinstance(node, Pairs) and str(key) in node.index:
            node = node.index[str(key)][1]
        elif isinstance(node, Items) and isinstance(key, int):
            node = node.items[key]
        else:
            return None
    return None if isinstance(node, RefusedValue) else node


def key_place(root: Pairs, keys: Keys) -> Place:
    """Return where the last of *keys* is written, as a key or as a list's item.

    What is not written (a default) has the place of the nearest thing around it that is.
    """
    node: Node = root
    place = root.place
    for key in keys:
        if isinstance(node, Pairs) and str(key) in node.index:
            written, node = node.index[str(key)]
            place = written.place
        elif isinstance(node, Items) and isinstance(key, int):
            node = node.items[key]
            place = node.place
        else:
            break
    return place


def value_place(root: Pairs, keys: Keys) -> Place:
    """Return where the value at *keys* stands; of one that is not written, what is around it."""
    while (node := find(root, keys)) is None:
        keys = keys[:-1]
    return node.place
