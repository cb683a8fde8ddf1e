"""Which candidates can be the recipe's runtime: one that is built, or the site's own module."""

from __future__ import annotations

from ..model.recipe import PART_OF, Recipe
from .problem import Candidate
from .reach import Shelf

# What a Horovod is built for, and can do without.
_FRAMEWORKS = ("tensorflow", "pytorch", "mxnet")


def of_origin(
    recipe: Recipe, shelf: Shelf, component: str, candidates: tuple[Candidate, ...]
) -> tuple[Candidate, ...]:
    """Leave out what cannot be the python of a conda environment, which is conda's own, and what
    cannot be the runtime, where *component* is one that can be built. Of what the recipe has
    compiled from its sources nothing else will do.

    A site's module is no stand-in for what is to be built, which has flags of its own. And a module
    that brings other frameworks than the stack names was not built for those.
    """
    if component == "python" and recipe.backend == "conda":
        return tuple(each for each in candidates if each.origin == "conda")
    if component in recipe.from_source:
        return tuple(each for each in candidates if each.origin == "build")
    runtime = recipe.runtime
    if component != runtime.package or component in PART_OF:
        return candidates
    own = tuple(each for each in candidates if each.origin == runtime.origin)
    if runtime.origin == "build":
        return own
    wanted = frozenset(frameworks(recipe))
    return tuple(each for each in own if wanted <= (_brought(shelf, each) or wanted))


def frameworks(recipe: Recipe) -> tuple[str, ...]:
    """Return the frameworks that the stack names."""
    return tuple(name for name in _FRAMEWORKS if name in recipe.stack)


def told(recipe: Recipe) -> str:
    """Return how a runtime that comes from a module is asked for, in words; '' for others."""
    if recipe.runtime.origin != "module":
        return ""
    named = " and ".join(frameworks(recipe))
    return f" as a module for {named}" if named else " as a module"


def wanted_as(recipe: Recipe, component: str) -> str:
    """Return how a component is asked for beside its version, in words; '' for any way."""
    if component == recipe.runtime.package:
        return told(recipe)
    return " from its sources" if component in recipe.from_source else ""


def _brought(shelf: Shelf, candidate: Candidate) -> frozenset[str]:
    """Return the frameworks that come with a candidate's module; none: nothing says which."""
    closure = _loaded(shelf, candidate.module) if candidate.module else ()
    provided = {name for module in closure for name in shelf.provides(module)}
    return frozenset(provided & set(_FRAMEWORKS))


def _loaded(shelf: Shelf, module: str) -> frozenset[str]:
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found and name in shelf.modules:
            found.add(name)
            waiting += shelf.modules[name].loads
    return frozenset(found)
