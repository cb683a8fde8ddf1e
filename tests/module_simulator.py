"""Loading modules as the resolver thinks that Lmod does it: what tests compare Lmod with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envbuilder.resolve.loading import Action, LoadedModules
from envbuilder.resolve.problem import SolverModule


def simulate(
    modules: Mapping[str, SolverModule], actions: Sequence[Action], autoswap: bool = True
) -> tuple[str, ...]:
    """Return what is loaded at the end, in load order. Raises LoadError where an action fails."""
    session = LoadedModules(modules, autoswap)
    for action in actions:
        session.act(action)
    return session.loaded()
