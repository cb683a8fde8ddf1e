"""The resolver: who provides each component, what is loaded in which order, or why nothing can be.

The stages: ``world`` turns the request into a stack problem, ``engine`` solves it, this module puts
the answer into the words of a plan, and ``explain`` says why there is none.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import UsageError
from ..model.condition import Condition
from ..model.knowledge import Advisory, Remedy
from ..model.plan import GitTree, Pin, Replacement, SourceBuild
from .engine import solve
from .explain import no_solution
from .findings import findings
from .flag_table import reads
from .problem import Candidate, Stack
from .providers import SITE_PACKAGES
from .request import Request, Resolution, Wanted
from .tools import build_tools
from .world import World, world

_INTERPRETER = "bin/python3"


def resolve(request: Request, verbose: bool = False) -> Resolution:
    """Choose one provider for every component of the recipe, and the order of the loads.

    Raises NoSolutionError, or KnownBadError where knowledge forbids what would be there: with those
    that cannot hold together, each with its place, and with the closest stacks that work.
    """
    decided = world(request, strict=True)
    stack = solve(decided.problem)
    if stack is None:
        raise no_solution(request, verbose)
    return _resolution(decided, stack)


def _resolution(world: World, stack: Stack) -> Resolution:
    build_only = {f"implied:{each.component}" for each in world.request.build_only}
    pins = {switch: world.candidate(name) for switch, name in stack.used}
    # A remedy's component is for the environment, also where builds want the same.
    remedial = set(_remedies(world, stack))
    run_time = [
        (s, c)
        for s, c in pins.items()
        if c.id in remedial or not _only_builds(world, s, c, build_only)
    ]
    chosen = (*_pins(world, run_time), *_remedial(world, stack))
    known = {pin.component for pin in chosen}
    rest = [(s, c) for s, c in pins.items() if c.component not in known]
    tools = tuple(_pins(world, rest))
    # What a runtime is built with must be there before it, and so must what a framework is.
    last = world.request.recipe.runtime.package
    builds = tuple(
        sorted(
            _builds(world, stack, pins),
            key=lambda each: (each.component == last, each.tree is not None, each.component),
        )
    )
    return Resolution(
        pins=chosen,
        build_pins=(*tools, *build_tools(world.request, builds, (*chosen, *tools))),
        brought=tuple(_brought(world, stack)),
        python=_python(world, pins),
        loads=stack.loads,
        final=stack.final,
        replaced=tuple(Replacement(module=module, by=by) for module, by in stack.replaced),
        builds=builds,
        findings=findings(world, stack),
    )


def _only_builds(world: World, switch: str, candidate: Candidate, build_only: set[str]) -> bool:
    """Whether a candidate is not part of the environment: CMake as a wheel, wherever it is asked.

    One that is a module is loaded, and shown as what the recipe asked for.
    """
    known = world.request.knowledge.components.get(candidate.component)
    tool = known is not None and known.build_only and candidate.origin == "pip"
    return tool or switch in build_only


def _pins(world: World, used: list[tuple[str, Candidate]]) -> Iterator[Pin]:
    """Yield one pin for each component, with all that ask for it."""
    asking: dict[str, list[Wanted]] = {}
    chosen: dict[str, Candidate] = {}
    for switch, candidate in used:
        asking.setdefault(candidate.component, []).append(world.wanted[switch])
        chosen[candidate.component] = candidate
    for component, candidate in chosen.items():
        yield _pin(candidate, _asked(asking[component]))


def _asked(asking: list[Wanted]) -> str:
    """Return the constraints that fixed a pin, each with who made it; "any" only if it is all."""
    fixed = [each for each in asking if each.constraint != "*"] or asking[:1]
    return "; ".join(
        f"{'any' if each.constraint == '*' else each.constraint} ({each.why})" for each in fixed
    )


def _pin(candidate: Candidate, why: str) -> Pin:
    return Pin(
        component=candidate.component,
        version=candidate.version,
        origin=candidate.origin,
        locator=candidate.locator,
        why=why,
    )


def _brought(world: World, stack: Stack) -> Iterator[Pin]:
    used = {world.candidate(name).component for _, name in stack.used}
    for name in stack.effective:
        candidate = world.candidate(name)
        if candidate.component not in used and candidate.module is not None:
            used.add(candidate.component)
            yield _pin(candidate, f"comes with {candidate.locator}")


def _remedies(world: World, stack: Stack) -> Iterator[str]:
    """Yield the candidates that the remedies which were taken put into the environment."""
    rules = {each.rule.key: each for each in world.grounded}
    effective = set(stack.effective)
    for key, taken in stack.violated:
        for remedy in rules[key].rule.remedies:
            if remedy.id == taken:
                yield from effective & (remedy.needs or frozenset())


def _remedial(world: World, stack: Stack) -> Iterator[Pin]:
    """Yield what is there only because a remedy needs it: installed like what is asked for."""
    used = {name for _, name in stack.used}
    for name in stack.effective:
        candidate = world.candidate(name)
        if name not in used and candidate.module is None:
            rows = ", ".join(sorted(_lifted_by(world, stack, name)))
            yield _pin(candidate, f"remedy of {rows}")


def _lifted_by(world: World, stack: Stack, candidate: str) -> Iterator[str]:
    rules = {each.rule.key: each for each in world.grounded}
    for key, taken in stack.violated:
        for remedy in rules[key].rule.remedies:
            if remedy.id == taken and candidate in (remedy.needs or ()):
                yield rules[key].row.id


def _python(world: World, pins: dict[str, Candidate]) -> str | None:
    """Return the path of the interpreter, None for conda's, which lies in the prefix.

    Raises UsageError where nobody says where it lies.
    """
    python = next(each for each in pins.values() if each.component == "python")
    if python.origin == "conda":
        return None
    module = world.module(python)
    if module is None:
        return python.locator
    if module.python is not None:
        return module.python
    if module.home is not None:
        return f"{module.home}/{_INTERPRETER}"
    raise UsageError(
        f"nothing says where the Python of module {module.name} lies",
        "state it in the site file, modules: [{name: ..., python: /path/bin/python3}]",
        "or let envbuild sites snapshot --probe find out",
    )


def _builds(world: World, stack: Stack, pins: dict[str, Candidate]) -> Iterator[SourceBuild]:
    for candidate in {each.component: each for each in pins.values()}.values():
        if candidate.origin != "build":
            continue
        is_runtime = candidate.component == world.request.recipe.runtime.package
        flags = _flags(world, stack, candidate) if is_runtime else {}
        remedies = list(_taken(world, stack, candidate.component, is_runtime))
        told, tree = _tree(world, candidate)
        yield SourceBuild(
            component=candidate.component,
            version=candidate.version,
            homes=_homes(world, stack, candidate, flags, pins) if is_runtime else {},
            flags=flags | {r.name: r.value or "" for r in remedies if r.kind == "flag"},
            environment=told | {r.name: r.value or "" for r in remedies if r.kind == "variable"},
            tree=tree,
            pip_options=tuple(r.value or r.name for r in remedies if r.kind == "pip-option"),
            build_requires=tuple(
                f"{r.name}{r.value or ''}" for r in remedies if r.kind == "build-version"
            ),
            patches=tuple(r.name for r in remedies if r.kind == "patch"),
            links=world.request.knowledge.components[candidate.component].links,
        )


def _tree(world: World, candidate: Candidate) -> tuple[dict[str, str], GitTree | None]:
    """Return what a git tree's build is told, and the tree; None for the index's sources."""
    known = world.request.knowledge.source_trees.get(candidate.component)
    for each in known.trees if known else ():
        if known and candidate.locator == f"{known.url}#{each.tag}":
            tree = GitTree(url=known.url, tag=each.tag, commit=each.commit)
            return dict(each.environment), tree
    return {}, None


def _taken(world: World, stack: Stack, component: str, is_runtime: bool) -> Iterator[Remedy]:
    """Yield the remedies that the build of a component takes: its own, the runtime's also others'.

    A patch of something else is one that the builder of its module applied.
    """
    rows = {each.rule.key: each.row for each in world.grounded}
    for key, taken in stack.violated:
        row = rows[key]
        own = isinstance(row, Advisory) and row.component == component
        for each in row.remedies:
            if each.id == taken and (own or (is_runtime and each.kind != "patch")):
                yield each


def _flags(world: World, stack: Stack, runtime: Candidate) -> dict[str, str]:
    """Return the recipe's flags, those that are derived from what was chosen, and defaults."""
    flags = dict(world.request.recipe.runtime.flags)
    for name, flag in world.request.knowledge.flags.items():
        value = flag.default.get(world.request.arch)
        if value is not None and name not in flags and reads(flag, runtime.version):
            flags[name] = value
    homes = {
        world.candidate(name).component: world.pool.homes[name]
        for name in stack.effective
        if name in world.pool.homes
    }
    for name, flag in world.request.knowledge.flags.items():
        if flag.derived is None or flag.home_of is None or name in flags:
            continue
        if flag.home_of in homes and reads(flag, runtime.version) and _wanted(world, flag.derived):
            flags[name] = homes[flag.home_of]
    return flags


def _homes(
    world: World,
    stack: Stack,
    runtime: Candidate,
    flags: dict[str, str],
    pins: dict[str, Candidate],
) -> dict[str, str]:
    """Return the derived flags whose folder lies in the prefix, relative to it."""
    python = next(each.version for each in pins.values() if each.component == "python")
    packages = f"lib/python{'.'.join(python.split('.')[:2])}/site-packages"
    inside = {
        world.candidate(name).component: world.pool.inside[name].replace(SITE_PACKAGES, packages)
        for name in stack.effective
        if name in world.pool.inside
    }
    return {
        name: inside[flag.home_of]
        for name, flag in world.request.knowledge.flags.items()
        if flag.home_of in inside
        and flag.derived is not None
        and name not in flags
        and reads(flag, runtime.version)
        and _wanted(world, flag.derived)
    }


def _wanted(world: World, condition: str) -> bool:
    return Condition(condition).evaluate(world.facts.lookup) is True
