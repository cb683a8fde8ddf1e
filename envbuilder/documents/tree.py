"""A document as a tree of nodes that know their lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ..errors import Place

Keys = tuple[str | int, ...]


@dataclass(frozen=True)
class Scalar:
    """Text as it is written; ``plain``: without quotes, so that it may mean a number."""

    place: Place
    text: str
    plain: bool


@dataclass(frozen=True)
class Items:
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


@dataclass(frozen=True)
class RefusedValue:
    """What was written here is not allowed and has been reported; nothing is known of it."""

    place: Place


Node = Scalar | Items | Pairs | RefusedValue


def key_places(root: Pairs) -> Iterator[tuple[Keys, Place]]:
    """Yield the place of every key and list item, by the keys that lead to it."""
    waiting: list[tuple[Keys, Node]] = [((), root)]
    while waiting:
        keys, node = waiting.pop()
        if not keys:
            yield keys, node.place
        if isinstance(node, Pairs):
            for key, value in node.pairs:
                yield (*keys, key.text), key.place
                waiting.append(((*keys, key.text), value))
        elif isinstance(node, Items):
            for position, item in enumerate(node.items):
                yield (*keys, position), item.place
                waiting.append(((*keys, position), item))


def find(root: Pairs, keys: Keys) -> Node | None:
    """Return the node at *keys*, or None if it, or what it is in, was refused or left out."""
    node: Node = root
    for key in keys:
        if isinstance(node, Pairs):
            if str(key) not in node.index:
                return None
            node = node.index[str(key)][1]
        elif isinstance(node, Items) and isinstance(key, int):
            node = node.items[key]
    return None if isinstance(node, RefusedValue) else node


def key_place(root: Pairs, keys: Keys) -> Place:
    """Return where the last of *keys* is written, as a key."""
    around = find(root, keys[:-1])
    if not isinstance(around, Pairs):
        return root.place
    return around.index[str(keys[-1])][0].place
