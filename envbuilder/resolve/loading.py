"""The order of loads that ends as planned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from .problem import Module

Action = tuple[Literal["load", "unload"], str]


def order(
    modules: Mapping[str, Module],
    loads: frozenset[str],
    preload: tuple[str, ...],
    final: frozenset[str],
    replaced: Mapping[str, str],
) -> tuple[Action, ...] | None:
    """Return the loads: preloads, then what takes nobody's place, then what does."""
    winners = frozenset(replaced.values())
    rest = sorted(loads - frozenset(preload))
    ordered = [*preload, *(n for n in rest if n not in winners)]
    ordered += [n for n in rest if n in winners]
    return tuple(("load", name) for name in ordered)
