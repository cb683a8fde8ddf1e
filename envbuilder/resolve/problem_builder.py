"""From a request to a stack problem, and what its parts were called by those who wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from packaging.specifiers import SpecifierSet

from ..knowledge.ranges import ANY_VERSION, matches, series, sort_key
from ..machine.modules.names import version_part
from ..machine.modules.variants import NO_PARENTS, loaded_as, told_apart
from ..model.recipe import names_module
from ..model.site import StatedModule
from .facts import Facts, request_facts
from .flag_table import flag_table
from .name_table import name_table
from .names import names
from .pool import Pool, fits
from .problem import Assumption, Candidate, StackProblem, Want, WantKind
from .providers import pool
from .reach import ModuleIndex, reachable, solver_modules
from .request import Request, Requirement
from .rules import GroundRule, ground
from .runtime import of_origin
from .wheel_table import wheel_table

# Same ABI series of what has none of its own: first and second number, as most projects mean it.
_SERIES = 2

Requirements = Mapping[Assumption, Requirement]
"""Who asks for what, by the want that it becomes."""


@dataclass(frozen=True)
class ProblemInputs:
    """A problem with the request that it stems from. ``requirements``: who asks for each want."""

    request: Request
    index: ModuleIndex
    pool: Pool
    facts: Facts
    grounded: tuple[GroundRule, ...]
    requirements: Requirements
    problem: StackProblem

    def candidate(self, name: str) -> Candidate:
        return self.pool.by_id[name]

    def module(self, candidate: Candidate) -> StatedModule | None:
        return self.index.modules.get(candidate.module) if candidate.module else None


def problem_inputs(request: Request, strict: bool) -> ProblemInputs:
    """Return the problem of a request.

    ``strict``: only with what the lines of the recipe allow, which is quick, and enough to find the
    best stack; without it closest stacks may offer what the lines do not allow.
    """
    index = _module_index(request)
    requirements = dict(_requirements(request))
    plain = _with_extras(request, index, requirements, strict)
    optional, addable = _optional(plain), frozenset() if strict else _addable(plain)
    if not optional | addable:
        return plain
    return _with_extras(request, index, requirements, strict, optional, addable)


def _with_extras(
    request: Request,
    index: ModuleIndex,
    requirements: Requirements,
    strict: bool,
    optional: frozenset[str] = frozenset(),
    addable: frozenset[str] = frozenset(),
) -> ProblemInputs:
    """Return the problem with components that nobody asks for: see ``Problem``."""
    components = {each.component for each in requirements.values()} | optional | addable
    components |= {c for each in components for c in request.knowledge.fulfilling(each)}
    seeds = [name for each in components for name in index.providing(each)]
    if strict:
        seeds = [name for name in seeds if _admitted(name, index, requirements)]
    preload = tuple(_preloaded(index, request.preload))
    modules = reachable(index, [*preload, *seeds])
    all_of_them = pool(request, index, modules, components, strict)
    if strict:
        all_of_them = _narrowed(all_of_them, requirements)
    facts = request_facts(request)
    allow = request.recipe.allow
    grounded = (
        *ground(request.knowledge, all_of_them, facts, allow),
        *flag_table(request.knowledge, all_of_them, request.recipe.runtime.flags, allow),
        *name_table(all_of_them, index.names, allow),
        *wheel_table(request.knowledge, all_of_them, facts, allow, _site_mpis(request, index)),
    )
    problem = StackProblem(
        modules=solver_modules(index, modules),
        candidates=all_of_them.candidates,
        wants=tuple(_wants(request, index, requirements, all_of_them, strict)),
        addable=tuple(_additions(addable, all_of_them)),
        rules=tuple(each.rule for each in grounded if each.binds),
        preload=preload,
        preferred=request.recipe.toolchain or request.site.toolchain,
        flags=tuple(request.recipe.runtime.flags),
        optional=optional - addable,
    )
    return ProblemInputs(request, index, all_of_them, facts, grounded, requirements, problem)


def _site_mpis(request: Request, index: ModuleIndex) -> list[str]:
    """Return the MPIs of the site's modules that alone reach its network."""
    known = request.knowledge.components
    return [name for name, each in known.items() if each.sole_mpi and index.providing(name)]


def _module_index(request: Request) -> ModuleIndex:
    knowledge = request.knowledge
    modules = told_apart(request.snapshot.modules)
    # What is loaded along and described nowhere is known by its name alone.
    loaded = [name for module in modules.values() for name in module.loads]
    known = {*modules, *map(loaded_as, modules)}
    for name in (*request.preload, *loaded):
        if name not in known:
            modules[name] = StatedModule(name=name)
    found = names(knowledge.components, knowledge.kinds, knowledge.generations)
    return ModuleIndex(modules, found, knowledge.components)


def _preloaded(index: ModuleIndex, names: Sequence[str]) -> Iterator[str]:
    """Yield the preloads, of namesakes the one that is found behind those before it."""
    loaded: frozenset[str] = frozenset()
    for name in names:
        found = [
            (len(index.with_loads(alternative)), module)
            for module in index.by_name[name]
            for alternative in index.modules[module].parents or NO_PARENTS
            if loaded.issuperset(alternative)
        ]
        chosen = max(found)[1] if found else index.by_name[name][-1]
        loaded |= index.with_loads((chosen,))
        yield chosen


def _requirements(request: Request) -> Iterator[tuple[Assumption, Requirement]]:
    """Yield what is required: the recipe's lines first, build-only components last."""
    recipe = request.recipe
    why = f"recipe {recipe.name}"
    for name in sorted(recipe.stack, key=lambda name: _is_build_only(request, name)):
        line = Requirement(name, recipe.stack[name], why, request.places.get(name))
        yield Assumption("line", name), line
    name, constraint = recipe.runtime.package, recipe.runtime.version
    if name in request.knowledge.releases:
        line = Requirement(name, constraint, why, request.places.get("runtime"))
        yield Assumption("line", name), line
    for each in (*request.implied, *request.build_only):
        yield Assumption("implied", each.component), each


def _is_build_only(request: Request, component: str) -> bool:
    known = request.knowledge.components.get(component)
    return bool(known and known.build_only)


def _optional(inputs: ProblemInputs) -> frozenset[str]:
    """Return the components that a remedy of some rule may add and that are not wanted anyway."""
    wanted = {each.component for each in inputs.requirements.values()}
    return frozenset(
        remedy.name
        for grounded in inputs.grounded
        for remedy in grounded.row.remedies
        if remedy.kind == "component"
        and remedy.name in inputs.request.knowledge.components
        and remedy.name not in wanted
    )


def _addable(inputs: ProblemInputs) -> frozenset[str]:
    """Return the components whose absence some error is about."""
    wanted = {each.component for each in inputs.requirements.values()}
    lacking = {name for rule in inputs.problem.rules if rule.hard for name in rule.lack_of}
    return frozenset(lacking & set(inputs.request.knowledge.components) - wanted)


def _additions(components: frozenset[str], found: Pool) -> Iterator[Want]:
    for name in sorted(components):
        # A line of the recipe would ask for it like that.
        allowed = frozenset(each.id for each in found.of(name) if each.component == name)
        yield Want(Assumption("addition", name), name, allowed)


def _admitted(module: str, index: ModuleIndex, requirements: Requirements) -> bool:
    """Whether a module provides something wanted, in a version that the lines allow."""
    return any(
        all(
            each.constraint in (module, loaded_as(module))
            if names_module(each.constraint)
            else matches(found, each.constraint)
            for each in requirements.values()
            if each.component == component
        )
        for component, found in index.provides(module).items()
    )


def _narrowed(found: Pool, requirements: Requirements) -> Pool:
    """Leave out the candidates outside modules that the lines do not allow."""
    kept = tuple(
        candidate
        for candidate in found.candidates
        if candidate.module is not None
        or all(
            admits(each.constraint, candidate)
            for each in requirements.values()
            if each.component == candidate.component
        )
    )
    return replace(found, candidates=kept)


def admits(constraint: str, candidate: Candidate) -> bool:
    """Whether a constraint of the stack admits a candidate."""
    if names_module(constraint):
        return constraint in (candidate.module, candidate.locator)
    return fits(candidate, constraint)


def _wants(
    request: Request,
    index: ModuleIndex,
    requirements: Requirements,
    found: Pool,
    strict: bool,
) -> Iterator[Want]:
    for ref, each in requirements.items():
        candidates = of_origin(request, index, each.component, found.of(each.component))
        allowed = frozenset(c.id for c in candidates if admits(each.constraint, c))
        kind = _kind(ref, each, request)
        parts = _abi_parts(request, each.component)
        line = kind == "line" and not strict
        yield Want(
            ref=ref,
            component=each.component,
            allowed=allowed,
            kind=kind,
            distance=_distances(candidates, allowed, each.constraint, parts) if line else (),
            can_drop=line and each.component not in ("python", request.recipe.runtime.package),
        )


def _kind(ref: Assumption, requirement: Requirement, request: Request) -> WantKind:
    if ref.kind == "line":
        return "line"
    return "implied" if requirement.component in request.knowledge.components else "role"


def _abi_parts(request: Request, component: str) -> int:
    known = request.knowledge.components.get(component)
    return (known.series if known else None) or _SERIES


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
        alike = SequenceMatcher(None, constraint, each.locator).ratio()
        same = each.version == target
        return (not same, -alike if same else 0.0, *_distance(each, target, parts, "*"))
    if names_module(constraint):
        return (True, 0.0, *_distance(each, target, parts, "*"))
    mine, asked = sort_key(each.version), sort_key(target)
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
