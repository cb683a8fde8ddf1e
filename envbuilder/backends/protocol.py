"""What a module of this folder must hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..model.backend import BackendTraits, PrefixParts
from ..model.knowledge import Component
from ..model.plan import Plan


class Backend(Protocol):
    """How packages get into a prefix."""

    TRAITS: BackendTraits

    def prefix(self, plan: Plan, components: Mapping[str, Component]) -> PrefixParts:
        """Return how the prefix of *plan* is made; *components*: all that are known, by name."""
