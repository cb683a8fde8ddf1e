"""The resolver: who provides each component, what is loaded in which order, or why nothing can be.

The stages: ``problem_builder`` turns the request into a stack problem, ``engine`` solves it, this
module puts the answer into the words of a plan, and ``explain`` says why there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ..errors import UsageError
from ..knowledge.artifacts import STAND_IN, GitRevision
from ..knowledge.channels import CHANNEL_ORIGINS
from ..knowledge.conditions import Condition
from ..knowledge.rows import Advisory, Remedy, Row
from ..machine.modules.names import key as name_of
from ..machine.modules.variants import loaded_as
from ..model.plan import Pin, Replacement, SourceBuild
from ..model.resolution import Resolution
from ..model.site import StatedModule
from .behind import far_behind
from .engine import LimitError, solve
from .findings import findings
from .flag_table import reads
from .problem import Assumption, Candidate, Stack
from .problem_builder import ProblemInputs, problem_inputs
from .providers import SITE_PACKAGES
from .request import Request, Requirement
from .tools import build_tools
from .unused_modules import uncompared_releases, unknown_site, unused_modules

_INTERPRETER = "bin/python3"
# What a pin may say of itself.
_LONGEST = 500


def resolve(request: Request, verbose: bool = False) -> Resolution:
    """Choose one provider for every component of the recipe, and the order of the loads.

    Raises NoSolutionError, or KnownBadError where knowledge forbids what would be there: with those
    that cannot hold together, each with its place, and with the closest stacks that work.
    """
    decided = problem_inputs(request, strict=True)
    try:
        stack = solve(decided.problem)
    except LimitError as limit:
        from .explain import too_hard

        raise too_hard(limit) from limit
    if stack is None:
        # lazy import: a plan that is found has nothing to explain
        from .explain import no_solution

        raise no_solution(request, verbose)
    return _resolution(decided, stack)


def _resolution(inputs: ProblemInputs, stack: Stack) -> Resolution:
    build_only = {Assumption("implied", each.component) for each in inputs.request.build_only}
    pins = {ref: inputs.candidate(name) for ref, name in stack.used}
    taken = tuple(_taken(inputs, stack))
    # A remedy's component is for the environment, also where builds want the same.
    remedial = frozenset(name for each in taken for name in each.needs).intersection(
        stack.effective
    )
    run_time = [
        (s, c)
        for s, c in pins.items()
        if c.id in remedial or not _only_builds(inputs, s, c, build_only)
    ]
    behind = dict(far_behind(inputs, stack))
    chosen = (*_pins(inputs, run_time, behind), *_remedial(inputs, stack, taken))
    known = {pin.component for pin in chosen}
    rest = [(s, c) for s, c in pins.items() if c.component not in known]
    tools = tuple(_pins(inputs, rest))
    # What a runtime is built with must be there before it, and so must what a framework is.
    last = inputs.request.recipe.runtime.package
    built = {each.component: each for each in pins.values() if each.origin == "build"}.values()
    builds = tuple(
        sorted(
            (_build(inputs, stack, taken, each, _the_python(pins).version) for each in built),
            key=lambda each: (each.component == last, each.tree is not None, each.component),
        )
    )
    of_modules = tuple(_brought(inputs, stack))
    return Resolution(
        pins=chosen,
        site_findings=(
            *unused_modules(inputs, stack, chosen),
            *uncompared_releases((*chosen, *of_modules)),
            *unknown_site(inputs, (*chosen, *of_modules, *tools), bool(builds)),
        ),
        build_pins=(*tools, *build_tools(inputs.request, builds, (*chosen, *tools))),
        brought=of_modules,
        python=_python(inputs, pins),
        loads=tuple(map(loaded_as, stack.loads)),
        final=tuple(map(loaded_as, stack.final)),
        replaced=tuple(
            Replacement(module=loaded_as(module), by=loaded_as(by)) for module, by in stack.replaced
        ),
        builds=builds,
        findings=findings(inputs, stack),
        stand_ins=tuple(
            loaded_as(name) for name in stack.final if _stands_in(inputs.index.modules[name])
        ),
    )


def _stands_in(module: StatedModule) -> bool:
    return STAND_IN in map(name_of, module.loads)


class _AppliedRemedy(NamedTuple):
    """A remedy that was taken, for which row. ``needs``: candidates, one of which it adds."""

    row: Row
    remedy: Remedy
    needs: frozenset[str]


def _taken(inputs: ProblemInputs, stack: Stack) -> Iterator[_AppliedRemedy]:
    rules = {each.rule.key: each for each in inputs.grounded}
    for key, taken in stack.violated:
        needs = {each.id: each.needs or frozenset() for each in rules[key].rule.remedies}
        for remedy in rules[key].row.remedies:
            if remedy.id == taken:
                yield _AppliedRemedy(rules[key].row, remedy, needs[taken])


def _only_builds(
    inputs: ProblemInputs, ref: Assumption, candidate: Candidate, build_only: set[Assumption]
) -> bool:
    """Whether a candidate is not part of the environment: CMake as a wheel, wherever it is asked.

    One that is a module is loaded, and shown as what the recipe asked for.
    """
    known = inputs.request.knowledge.components.get(candidate.component)
    tool = known is not None and known.build_only and candidate.origin == "pip"
    return tool or ref in build_only


def _pins(
    inputs: ProblemInputs,
    used: list[tuple[Assumption, Candidate]],
    behind: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Pin]:
    """Yield one pin for each component, with all that ask for it, and what holds it behind."""
    asking: dict[str, list[Requirement]] = {}
    chosen: dict[str, Candidate] = {}
    for ref, candidate in used:
        asking.setdefault(candidate.component, []).append(inputs.requirements[ref])
        chosen[candidate.component] = candidate
    for component, candidate in chosen.items():
        yield _pin(candidate, _asked(asking[component], behind.get(component)))


def _asked(asking: list[Requirement], behind: str | None) -> str:
    """Return the constraints that fixed a pin, each with who made it; "any" only if it is all."""
    held = () if behind is None else (behind,)
    fixed = [each for each in asking if each.constraint != "*"] or asking[:1]
    made = (
        f"{'any' if each.constraint == '*' else each.constraint} ({each.why})" for each in fixed
    )
    return "; ".join((*made, *held))[:_LONGEST]


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


def _remedial(
    inputs: ProblemInputs, stack: Stack, taken: Sequence[_AppliedRemedy]
) -> Iterator[Pin]:
    """Yield what is there only because a remedy needs it: installed like what is asked for."""
    used = {name for _, name in stack.used}
    for name in stack.effective:
        candidate = inputs.candidate(name)
        if name not in used and candidate.module is None:
            rows = ", ".join(sorted(each.row.id for each in taken if name in each.needs))
            yield _pin(candidate, f"remedy of {rows}")


def _the_python(pins: dict[Assumption, Candidate]) -> Candidate:
    return next(each for each in pins.values() if each.component == "python")


def _python(inputs: ProblemInputs, pins: dict[Assumption, Candidate]) -> str | None:
    """Return the path of the interpreter, None for conda's, which lies in the prefix.

    Raises UsageError where nobody says where it lies.
    """
    python = _the_python(pins)
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
        "modules.unknown-python",
        f"the path of the Python of module {module.name} is unknown",
        "state it in the site file, modules: [{name: ..., python: /path/bin/python3}]",
        "or run envbuild sites snapshot --probe to detect it",
    )


def _build(
    inputs: ProblemInputs,
    stack: Stack,
    taken: Sequence[_AppliedRemedy],
    candidate: Candidate,
    python: str,
) -> SourceBuild:
    """Return how a candidate is built, with the remedies that are taken for it.

    The runtime's build takes those of other components as well, but no patch of something else:
    that is one that the builder of its module applied.
    """
    component = candidate.component
    is_runtime = component == inputs.request.recipe.runtime.package
    flags, homes = _flags(inputs, stack, candidate, python) if is_runtime else ({}, {})
    remedies: dict[str, list[Remedy]] = {}
    for each in taken:
        own = isinstance(each.row, Advisory) and each.row.component == component
        if own or (is_runtime and each.remedy.kind != "patch"):
            remedies.setdefault(each.remedy.kind, []).append(each.remedy)
    variables, tree = _tree(inputs, candidate)
    return SourceBuild(
        component=component,
        version=candidate.version,
        homes=homes,
        flags=flags | {r.name: r.value or "" for r in remedies.get("flag", ())},
        environment=variables | {r.name: r.value or "" for r in remedies.get("variable", ())},
        tree=tree,
        pip_options=tuple(r.value or r.name for r in remedies.get("pip-option", ())),
        build_requires=tuple(f"{r.name}{r.value or ''}" for r in remedies.get("build-version", ())),
        patches=tuple(r.name for r in remedies.get("patch", ())),
        links=inputs.request.knowledge.components[component].links,
    )


def _tree(inputs: ProblemInputs, candidate: Candidate) -> tuple[dict[str, str], GitRevision | None]:
    """Return what a git tree's build is told, and the tree; None for the index's sources."""
    known = inputs.request.knowledge.source_trees.get(candidate.component)
    for each in known.trees if known else ():
        if known and candidate.locator == f"{known.url}#{each.tag}":
            tree = GitRevision(url=known.url, tag=each.tag, commit=each.commit)
            return dict(each.environment), tree
    return {}, None


def _flags(
    inputs: ProblemInputs, stack: Stack, runtime: Candidate, python: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the runtime's flags: the recipe's, defaults, and homes of what was chosen.

    The second are homes that lie in the prefix, relative to it.
    """
    arch, flags = inputs.request.arch, dict(inputs.request.recipe.runtime.flags)
    lookup = inputs.facts._replace(release=runtime.version).lookup
    read = {
        name: flag
        for name, flag in inputs.request.knowledge.flags.items()
        if name not in flags and reads(flag, runtime.version)
    }
    flags |= {name: flag.default[arch] for name, flag in read.items() if arch in flag.default}
    derived = {
        name: flag.home_of
        for name, flag in read.items()
        if name not in flags
        and flag.derived is not None
        and Condition(flag.derived).evaluate(lookup) is True
    }

    def homes(known: Mapping[str, str]) -> dict[str, str]:
        there = {inputs.candidate(n).component: known[n] for n in stack.effective if n in known}
        return {name: there[of] for name, of in derived.items() if of in there}

    outside = homes(inputs.pool.homes)
    packages = f"lib/python{'.'.join(python.split('.')[:2])}/site-packages"
    inside = {
        name: home.replace(SITE_PACKAGES, packages)
        for name, home in homes(inputs.pool.inside).items()
        if name not in outside
    }
    return flags | outside, inside
