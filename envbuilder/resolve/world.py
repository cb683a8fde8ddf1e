"""From a request to a stack problem, and what its parts were called by those who wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from ..model.ranges import ANY_VERSION, matches, series, version
from ..model.recipe import names_module
from ..model.site import StatedModule
from .facts import Facts, stated_facts
from .flag_table import flag_table
from .names import names, version_part
from .pool import Pool, fits
from .problem import Candidate, Problem, Want, WantKind
from .providers import pool
from .reach import Shelf, reachable, solver_modules
from .request import Request, Wanted
from .rules import Grounded, ground
from .runtime import of_origin

# Same ABI series of what has none of its own: first and second number, as most projects mean it.
_SERIES = 2

_NOTHING = Version("0")


@dataclass(frozen=True)
class World:
    """A problem with the request that it stems from. ``wanted``: by switch."""

    request: Request
    shelf: Shelf
    pool: Pool
    facts: Facts
    grounded: tuple[Grounded, ...]
    wanted: Mapping[str, Wanted]
    problem: Problem

    def candidate(self, name: str) -> Candidate:
        return self.pool.by_id[name]

    def module(self, candidate: Candidate) -> StatedModule | None:
        return self.shelf.modules.get(candidate.module) if candidate.module else None


def world(request: Request, strict: bool) -> World:
    """Return the problem of a request.

    ``strict``: only with what the lines of the recipe allow, which is quick, and enough to find the
    best stack; without it closest stacks may offer what the lines do not allow.
    """
    shelf = _shelf(request)
    wanted = dict(_wanted(request))
    found = _world(request, shelf, wanted, frozenset(), strict)
    helpers = _helpers(found)
    return _world(request, shelf, wanted, helpers, strict) if helpers else found


def _world(
    request: Request,
    shelf: Shelf,
    wanted: Mapping[str, Wanted],
    helpers: frozenset[str],
    strict: bool,
) -> World:
    """Return the world with these components that only a remedy may add."""
    components = {each.component for each in wanted.values()} | helpers
    components |= {c for each in components for c in request.knowledge.fulfilling(each)}
    seeds = [name for each in components for name in shelf.providing(each)]
    if strict:
        seeds = [name for name in seeds if _admitted(name, shelf, wanted)]
    modules = reachable(shelf, [*request.preload, *seeds])
    all_of_them = pool(request, shelf, modules, components, strict)
    if strict:
        all_of_them = _narrowed(all_of_them, wanted)
    facts = Facts(
        stated_facts(request.recipe, request.site, request.snapshot, request.arch, request.facts),
        request.recipe.runtime.flags,
    )
    allow = request.recipe.allow
    grounded = (
        *ground(request.knowledge, all_of_them, facts, allow),
        *flag_table(request.knowledge, all_of_them, facts.flags, allow),
    )
    problem = Problem(
        modules=solver_modules(shelf, modules),
        candidates=all_of_them.candidates,
        wants=tuple(_wants(request, shelf, wanted, all_of_them, strict)),
        rules=tuple(each.rule for each in grounded if each.binds),
        preload=request.preload,
        preferred=request.recipe.toolchain or request.site.toolchain,
        flags=tuple(request.recipe.runtime.flags),
        optional=helpers,
    )
    return World(request, shelf, all_of_them, facts, grounded, wanted, problem)


def _shelf(request: Request) -> Shelf:
    knowledge = request.knowledge
    modules = {module.name: module for module in request.snapshot.modules}
    # What is loaded along and described nowhere is known by its name alone.
    loaded = [name for module in request.snapshot.modules for name in module.loads]
    for name in (*request.preload, *loaded):
        if name not in modules:
            modules[name] = StatedModule(name=name)
    found = names(knowledge.components, knowledge.kinds, knowledge.generations)
    return Shelf(modules, found, knowledge.components)


def _wanted(request: Request) -> Iterator[tuple[str, Wanted]]:
    """Yield what is wanted by its switch: the recipe's lines first, build-only components last."""
    recipe = request.recipe
    stack = list(recipe.stack)
    stack.sort(key=lambda name: _is_build_only(request, name))
    for name in stack:
        wanted = Wanted(name, recipe.stack[name], f"recipe {recipe.name}", request.places.get(name))
        yield f"line:{name}", wanted
    if recipe.runtime.package in request.knowledge.releases:
        place = request.places.get("runtime")
        yield (
            f"line:{recipe.runtime.package}",
            Wanted(recipe.runtime.package, recipe.runtime.version, f"recipe {recipe.name}", place),
        )
    for each in (*request.implied, *request.build_only):
        yield f"implied:{each.component}", each


def _is_build_only(request: Request, component: str) -> bool:
    known = request.knowledge.components.get(component)
    return bool(known and known.build_only)


def _helpers(found: World) -> frozenset[str]:
    """Return the components that a remedy of some rule may add and that are not wanted anyway."""
    wanted = {each.component for each in found.wanted.values()}
    return frozenset(
        remedy.name
        for grounded in found.grounded
        for remedy in grounded.row.remedies
        if remedy.kind == "component"
        and remedy.name in found.request.knowledge.components
        and remedy.name not in wanted
    )


def _constraints(wanted: Mapping[str, Wanted], component: str) -> list[str]:
    return [each.constraint for each in wanted.values() if each.component == component]


def _admitted(module: str, shelf: Shelf, wanted: Mapping[str, Wanted]) -> bool:
    """Whether a module provides something wanted, in a version that the lines allow."""
    return any(
        all(allows(constraint, found, module) for constraint in _constraints(wanted, component))
        for component, found in shelf.provides(module).items()
    )


def _narrowed(found: Pool, wanted: Mapping[str, Wanted]) -> Pool:
    """Leave out the candidates outside modules that the lines do not allow."""
    kept = tuple(
        each
        for each in found.candidates
        if each.module is not None
        or all(admits(constraint, each) for constraint in _constraints(wanted, each.component))
    )
    return replace(found, candidates=kept)


def allows(constraint: str, found: str, module: str | None) -> bool:
    """Whether a constraint of the stack admits a version, or the module that brings it."""
    if names_module(constraint):
        return module == constraint
    return matches(found, constraint)


def admits(constraint: str, candidate: Candidate) -> bool:
    """Whether a constraint of the stack admits a candidate."""
    if names_module(constraint):
        return candidate.module == constraint
    return fits(candidate, constraint)


def _wants(
    request: Request, shelf: Shelf, wanted: Mapping[str, Wanted], found: Pool, strict: bool
) -> Iterator[Want]:
    for place, (switch, each) in enumerate(wanted.items()):
        candidates = of_origin(request.recipe, shelf, each.component, found.of(each.component))
        allowed = frozenset(c.id for c in candidates if admits(each.constraint, c))
        kind = _kind(switch, each, request)
        known = request.knowledge.components.get(each.component)
        parts = (known.series if known else None) or _SERIES
        line = kind == "line" and not strict
        yield Want(
            switch=switch,
            component=each.component,
            allowed=allowed,
            order=place,
            kind=kind,
            distance=_distances(candidates, allowed, each.constraint, parts) if line else (),
            can_drop=line and each.component not in ("python", request.recipe.runtime.package),
        )


def _kind(switch: str, wanted: Wanted, request: Request) -> WantKind:
    if switch.startswith("line:"):
        return "line"
    return "implied" if wanted.component in request.knowledge.components else "role"


def _distances(
    candidates: tuple[Candidate, ...], allowed: frozenset[str], constraint: str, parts: int
) -> tuple[tuple[str, int], ...]:
    """Return how far each candidate is from what was asked: same series first, newer first."""
    target = _asked_version(constraint)
    others = [each for each in candidates if each.id not in allowed]
    others.sort(key=lambda each: _distance(each, target, parts, constraint))
    return tuple((each.id, n) for n, each in enumerate(others, start=1))


def _distance(
    each: Candidate, target: str | None, parts: int, constraint: str
) -> tuple[object, ...]:
    if target is None:
        return (0, 0, each.rank)
    if names_module(constraint) and each.module is not None:
        # Who names a module and misses it by a letter means the one that is written most like it.
        alike = SequenceMatcher(None, constraint, each.module).ratio()
        same = each.version == target
        return (not same, -alike if same else 0.0, *_distance(each, target, parts, "*"))
    if names_module(constraint):
        return (True, 0.0, *_distance(each, target, parts, "*"))
    mine, asked = version(each.version) or _NOTHING, version(target) or _NOTHING
    other_series = series(each.version, parts) != series(target, parts)
    # Among the newer ones the nearest is the lowest, among the older ones the highest.
    return (other_series, mine < asked, -each.rank if mine >= asked else each.rank)


def _asked_version(constraint: str) -> str | None:
    """Return the version that a constraint is about: the module's, or the first one it names."""
    if names_module(constraint):
        return version_part(constraint).split("-", 1)[0]
    if constraint == ANY_VERSION:
        return None
    named = sorted(each.version.removesuffix(".*") for each in SpecifierSet(constraint))
    return named[0] if named else None
