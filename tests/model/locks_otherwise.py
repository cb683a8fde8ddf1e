"""A lock with one thing changed, for every thing that a lock says."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from envbuilder.model.plan import Lock


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where something could be otherwise: every value, and every list as a whole."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from leaves(below, (*path, key))
    elif isinstance(value, list):
        yield path
        for number, below in enumerate(value):
            yield from leaves(below, (*path, number))
    else:
        yield path


def otherwise(value: Any) -> list[Any]:
    """Return other values for *value*, of which the model may admit some."""
    if isinstance(value, list):
        return [value[1:], value[::-1], [*value, "more"]]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    if value is None:
        tree = {"url": "https://x.example/x", "tag": "v1", "commit": "a" * 40}
        return [1, "x", "/x", "X=1", "scorep", "ddl", tree]
    words = [
        "arm",
        "9.9",
        "/other",
        "c" * 64,
        "d" * 40,
        "https://example.org/other.git",
        "X",
        "aarch64",
        "conda",
        "tcl",
        "pip",
        "unset",
        "sdist",
        "noarch",
        "e" * 32,
    ]
    return [*words, "unknown", "error", "site", "srun", "other", "AB-1", "build", "info"]


def changed(lock: Lock, path: tuple[Any, ...]) -> Iterator[Lock]:
    """Yield the lock with another value there, as far as there is one that the model takes."""
    plain = lock.plain()
    for other in otherwise(at(plain, path)):
        edited = copy.deepcopy(plain)
        holder = at(edited, path[:-1])
        if holder[path[-1]] == other:
            continue
        holder[path[-1]] = other
        try:
            yield Lock.model_validate(edited)
        except ValidationError:
            continue


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """Return what lies there."""
    for key in path:
        value = value[key]
    return value
