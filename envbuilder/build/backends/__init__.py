"""Backends: how packages get into a prefix. Each is a module that satisfies ``Backend``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from ...knowledge.components import Component
from ...knowledge.entries import check_choice
from ...model.backend import BackendTraits, PrefixParts
from ...model.plan import Plan
from . import conda, virtualenv


class Backend(Protocol):
    """How packages get into a prefix."""

    TRAITS: BackendTraits

    def prefix(self, plan: Plan, components: Mapping[str, Component]) -> PrefixParts:
        """Return how the prefix of *plan* is made; *components*: all that are known, by name."""


BACKENDS: dict[str, Backend] = {"virtualenv": virtualenv, "conda": conda}


def backend(name: str) -> Backend:
    """Return the backend of that name. Raises UsageError where there is none."""
    check_choice("backend", name, BACKENDS)
    return BACKENDS[name]


def prefix_parts(plan: Plan, components: Mapping[str, Component]) -> PrefixParts:
    """Return how the prefix of a plan is made. Raises UsageError for an unknown backend."""
    return backend(plan.backend).prefix(plan, components)


def entering(name: str, prefix: Path) -> str:
    """Return what a shell does to enter a prefix of a backend. Raises UsageError for no backend."""
    return backend(name).TRAITS.enter.format(prefix=prefix)


def traits() -> dict[str, BackendTraits]:
    """Return what documents must know of each backend, by its name."""
    return {name: each.TRAITS for name, each in BACKENDS.items()}
