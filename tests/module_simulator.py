"""Loading modules as the resolver thinks that Lmod does it: what tests compare Lmod with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envbuilder.resolve.loading import Action, Session
from envbuilder.resolve.problem import Module


def simulate(
    modules: Mapping[str, Module], actions: Sequence[Action], autoswap: bool = True
) -> tuple[str, ...]:
    """Return what is loaded at the end, in load order. Raises LoadError where an action fails."""
    session = Session(modules, autoswap)
    for action in actions:
        session.act(action)
    return session.loaded()
