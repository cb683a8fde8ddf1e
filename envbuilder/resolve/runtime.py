"""Which candidates can be the recipe's runtime: one that is built, or the site's own module."""

from __future__ import annotations

from .loading import closure
from .problem import Candidate
from .reach import ModuleIndex
from .request import Request


def of_origin(
    request: Request, index: ModuleIndex, component: str, candidates: tuple[Candidate, ...]
) -> tuple[Candidate, ...]:
    """Leave out what cannot be the python of the backend, and what cannot be the runtime, where
    *component* is one that can be built. Of what the recipe has compiled from its sources nothing
    else will do.

    A site's module is no stand-in for what is to be built, which has flags of its own. And a module
    that brings other frameworks than the stack names was not built for those.
    """
    if component == "python":
        return tuple(each for each in candidates if each.origin in request.backend.python_origins)
    recipe = request.recipe
    if component in recipe.from_source:
        return tuple(each for each in candidates if each.origin == "build")
    runtime = recipe.runtime
    if component != runtime.package or request.runtime.TRAITS.holder is not None:
        return candidates
    own = tuple(each for each in candidates if each.origin == runtime.origin)
    if runtime.origin == "build":
        return own
    wanted = frozenset(frameworks(request))
    known = request.runtime.bindings(request.knowledge.components).keys()
    return tuple(each for each in own if wanted <= (_brought(index, each) & known or wanted))


def frameworks(request: Request) -> tuple[str, ...]:
    """Return the frameworks that the stack names, which the runtime is built for."""
    bindings = request.runtime.bindings(request.knowledge.components)
    return tuple(name for name in bindings if name in request.recipe.stack)


def wanted_as(request: Request, component: str) -> str:
    """Return how a component is asked for beside its version, in words; '' for any way."""
    if component == request.recipe.runtime.package:
        if request.recipe.runtime.origin != "module":
            return ""
        named = " and ".join(frameworks(request))
        return f" as a module for {named}" if named else " as a module"
    return " from its sources" if component in request.recipe.from_source else ""


def _brought(index: ModuleIndex, candidate: Candidate) -> frozenset[str]:
    """Return the components that come with a candidate's module."""
    loaded = closure(index.modules, candidate.module) if candidate.module else ()
    return frozenset(name for module in loaded for name in index.provides(module))
