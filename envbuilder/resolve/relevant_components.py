"""What a recipe can use of a machine: nothing else is asked about itself."""

from __future__ import annotations

from collections.abc import Iterator

from ..knowledge.rows import Knowledge
from ..model.backend import BackendTraits
from ..model.recipe import Recipe
from ..model.runtime import Runtimes
from .implied_requirements import runtime_requirements


def relevant_components(
    recipe: Recipe, backend: BackendTraits, knowledge: Knowledge, runtimes: Runtimes
) -> frozenset[str]:
    """Return the components that can be in the recipe's stack, or build it, whoever brings them.

    Of a virtual such as mpi: those that fulfil it, or the one that the recipe names. python: where
    the machine's own may be the environment's.
    """
    named = {
        *recipe.stack,
        recipe.runtime.package,
        *(each.component for each in runtime_requirements(recipe, knowledge, runtimes)),
    }
    found = {*named, *_fulfilling(named, knowledge), *_building(named, knowledge)}
    own_python = "system" in backend.python_origins
    return frozenset(found | {"python"} if own_python else found - {"python"})


def _fulfilling(named: set[str], knowledge: Knowledge) -> Iterator[str]:
    for name in named:
        those = set(knowledge.fulfilling(name))
        if not those & named:
            yield from those


def _building(named: set[str], knowledge: Knowledge) -> Iterator[str]:
    """Yield what building any release of these needs; which of them are built is not known yet."""
    for name in named & set(knowledge.components):
        for need in knowledge.components[name].build_needs:
            yield from need.components
