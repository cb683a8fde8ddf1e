"""The resolver: who provides each component, what is loaded in which order, or why nothing can be.

The stages: ``problem_builder`` turns the request into a stack problem, ``engine`` solves it, this
module puts the answer into the words of a plan, and ``explain`` says why there is none.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import UsageError
from ..model.artifact import GitTree
from ..model.channels import CHANNEL_ORIGINS
from ..model.condition import Condition
from ..model.knowledge import Advisory, Remedy
from ..model.plan import Pin, Replacement, SourceBuild
from ..model.resolution import Resolution
from .engine import LimitError, solve
from .explain import no_solution, too_hard
from .findings import findings
from .flag_table import reads
from .problem import Assumption, Candidate, Stack
from .problem_builder import ProblemInputs, problem_inputs
from .providers import SITE_PACKAGES
from .request import Request, Requirement
from .tools import build_tools

_INTERPRETER = "bin/python3"


def resolve(request: Request, verbose: bool = False) -> Resolution:
    """Choose one provider for every component of the recipe, and the order of the loads.

    Raises NoSolutionError, or KnownBadError where knowledge forbids what would be there: with those
    that cannot hold together, each with its place, and with the closest stacks that work.
    """
    decided = problem_inputs(request, strict=True)
    try:
        stack = solve(decided.problem)
    except LimitError as limit:
        raise too_hard(limit) from limit
    if stack is None:
        raise no_solution(request, verbose)
    return _resolution(decided, stack)


def _resolution(inputs: ProblemInputs, stack: Stack) -> Resolution:
    build_only = {Assumption("implied", each.component) for each in inputs.request.build_only}
    pins = {ref: inputs.candidate(name) for ref, name in stack.used}
    # A remedy's component is for the environment, also where builds want the same.
    remedial = set(_remedies(inputs, stack))
    run_time = [
        (s, c)
        for s, c in pins.items()
        if c.id in remedial or not _only_builds(inputs, s, c, build_only)
    ]
    chosen = (*_pins(inputs, run_time), *_remedial(inputs, stack))
    known = {pin.component for pin in chosen}
    rest = [(s, c) for s, c in pins.items() if c.component not in known]
    tools = tuple(_pins(inputs, rest))
    # What a runtime is built with must be there before it, and so must what a framework is.
    last = inputs.request.recipe.runtime.package
    builds = tuple(
        sorted(
            _builds(inputs, stack, pins),
            key=lambda each: (each.component == last, each.tree is not None, each.component),
        )
    )
    return Resolution(
        pins=chosen,
        build_pins=(*tools, *build_tools(inputs.request, builds, (*chosen, *tools))),
        brought=tuple(_brought(inputs, stack)),
        python=_python(inputs, pins),
        loads=stack.loads,
        final=stack.final,
        replaced=tuple(Replacement(module=module, by=by) for module, by in stack.replaced),
        builds=builds,
        findings=findings(inputs, stack),
    )


def _only_builds(
    inputs: ProblemInputs, ref: Assumption, candidate: Candidate, build_only: set[Assumption]
) -> bool:
    """Whether a candidate is not part of the environment: CMake as a wheel, wherever it is asked.

    One that is a module is loaded, and shown as what the recipe asked for.
    """
    known = inputs.request.knowledge.components.get(candidate.component)
    tool = known is not None and known.build_only and candidate.origin == "pip"
    return tool or ref in build_only


def _pins(inputs: ProblemInputs, used: list[tuple[Assumption, Candidate]]) -> Iterator[Pin]:
    """Yield one pin for each component, with all that ask for it."""
    asking: dict[str, list[Requirement]] = {}
    chosen: dict[str, Candidate] = {}
    for ref, candidate in used:
        asking.setdefault(candidate.component, []).append(inputs.requirements[ref])
        chosen[candidate.component] = candidate
    for component, candidate in chosen.items():
        yield _pin(candidate, _asked(asking[component]))


def _asked(asking: list[Requirement]) -> str:
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
        fulfils=tuple(sorted(candidate.roles - {candidate.component})),
    )


def _brought(inputs: ProblemInputs, stack: Stack) -> Iterator[Pin]:
    used = {inputs.candidate(name).component for _, name in stack.used}
    for name in stack.effective:
        candidate = inputs.candidate(name)
        if candidate.component not in used and candidate.module is not None:
            used.add(candidate.component)
            yield _pin(candidate, f"comes with {candidate.locator}")


def _remedies(inputs: ProblemInputs, stack: Stack) -> Iterator[str]:
    """Yield the candidates that the remedies which were taken put into the environment."""
    rules = {each.rule.key: each for each in inputs.grounded}
    effective = set(stack.effective)
    for key, taken in stack.violated:
        for remedy in rules[key].rule.remedies:
            if remedy.id == taken:
                yield from effective & (remedy.needs or frozenset())


def _remedial(inputs: ProblemInputs, stack: Stack) -> Iterator[Pin]:
    """Yield what is there only because a remedy needs it: installed like what is asked for."""
    used = {name for _, name in stack.used}
    for name in stack.effective:
        candidate = inputs.candidate(name)
        if name not in used and candidate.module is None:
            rows = ", ".join(sorted(_lifted_by(inputs, stack, name)))
            yield _pin(candidate, f"remedy of {rows}")


def _lifted_by(inputs: ProblemInputs, stack: Stack, candidate: str) -> Iterator[str]:
    rules = {each.rule.key: each for each in inputs.grounded}
    for key, taken in stack.violated:
        for remedy in rules[key].rule.remedies:
            if remedy.id == taken and candidate in (remedy.needs or ()):
                yield rules[key].row.id


def _python(inputs: ProblemInputs, pins: dict[Assumption, Candidate]) -> str | None:
    """Return the path of the interpreter, None for conda's, which lies in the prefix.

    Raises UsageError where nobody says where it lies.
    """
    python = next(each for each in pins.values() if each.component == "python")
    if python.origin in CHANNEL_ORIGINS:
        return None
    module = inputs.module(python)
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


def _builds(
    inputs: ProblemInputs, stack: Stack, pins: dict[Assumption, Candidate]
) -> Iterator[SourceBuild]:
    for candidate in {each.component: each for each in pins.values()}.values():
        if candidate.origin != "build":
            continue
        is_runtime = candidate.component == inputs.request.recipe.runtime.package
        flags = _flags(inputs, stack, candidate) if is_runtime else {}
        remedies = list(_chosen_candidates(inputs, stack, candidate.component, is_runtime))
        told, tree = _tree(inputs, candidate)
        yield SourceBuild(
            component=candidate.component,
            version=candidate.version,
            homes=_homes(inputs, stack, candidate, flags, pins) if is_runtime else {},
            flags=flags | {r.name: r.value or "" for r in remedies if r.kind == "flag"},
            environment=told | {r.name: r.value or "" for r in remedies if r.kind == "variable"},
            tree=tree,
            pip_options=tuple(r.value or r.name for r in remedies if r.kind == "pip-option"),
            build_requires=tuple(
                f"{r.name}{r.value or ''}" for r in remedies if r.kind == "build-version"
            ),
            patches=tuple(r.name for r in remedies if r.kind == "patch"),
            links=inputs.request.knowledge.components[candidate.component].links,
        )


def _tree(inputs: ProblemInputs, candidate: Candidate) -> tuple[dict[str, str], GitTree | None]:
    """Return what a git tree's build is told, and the tree; None for the index's sources."""
    known = inputs.request.knowledge.source_trees.get(candidate.component)
    for each in known.trees if known else ():
        if known and candidate.locator == f"{known.url}#{each.tag}":
            tree = GitTree(url=known.url, tag=each.tag, commit=each.commit)
            return dict(each.environment), tree
    return {}, None


def _chosen_candidates(
    inputs: ProblemInputs, stack: Stack, component: str, is_runtime: bool
) -> Iterator[Remedy]:
    """Yield the remedies that the build of a component takes: its own, the runtime's also others'.

    A patch of something else is one that the builder of its module applied.
    """
    rows = {each.rule.key: each.row for each in inputs.grounded}
    for key, taken in stack.violated:
        row = rows[key]
        own = isinstance(row, Advisory) and row.component == component
        for each in row.remedies:
            if each.id == taken and (own or (is_runtime and each.kind != "patch")):
                yield each


def _flags(inputs: ProblemInputs, stack: Stack, runtime: Candidate) -> dict[str, str]:
    """Return the recipe's flags, those that are derived from what was chosen, and defaults."""
    flags = dict(inputs.request.recipe.runtime.flags)
    for name, flag in inputs.request.knowledge.flags.items():
        value = flag.default.get(inputs.request.arch)
        if value is not None and name not in flags and reads(flag, runtime.version):
            flags[name] = value
    homes = {
        inputs.candidate(name).component: inputs.pool.homes[name]
        for name in stack.effective
        if name in inputs.pool.homes
    }
    for name, flag in inputs.request.knowledge.flags.items():
        if flag.derived is None or flag.home_of is None or name in flags:
            continue
        if flag.home_of in homes and reads(flag, runtime.version) and _wanted(inputs, flag.derived):
            flags[name] = homes[flag.home_of]
    return flags


def _homes(
    inputs: ProblemInputs,
    stack: Stack,
    runtime: Candidate,
    flags: dict[str, str],
    pins: dict[Assumption, Candidate],
) -> dict[str, str]:
    """Return the derived flags whose folder lies in the prefix, relative to it."""
    python = next(each.version for each in pins.values() if each.component == "python")
    packages = f"lib/python{'.'.join(python.split('.')[:2])}/site-packages"
    inside = {
        inputs.candidate(name).component: inputs.pool.inside[name].replace(SITE_PACKAGES, packages)
        for name in stack.effective
        if name in inputs.pool.inside
    }
    return {
        name: inside[flag.home_of]
        for name, flag in inputs.request.knowledge.flags.items()
        if flag.home_of in inside
        and flag.derived is not None
        and name not in flags
        and reads(flag, runtime.version)
        and _wanted(inputs, flag.derived)
    }


def _wanted(inputs: ProblemInputs, condition: str) -> bool:
    return Condition(condition).evaluate(inputs.facts.lookup) is True
