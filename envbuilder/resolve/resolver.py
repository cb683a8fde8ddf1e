"""The resolver, first cut: interpreters in order of preference, newest provider for the rest.

It knows no advisories and no couplings yet; its interface is the one the solver will have. The
first interpreter under which every component finds a provider wins, so the answer depends on
nothing but the request.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import NoSolutionError, Place, Problem
from ..model.knowledge import Knowledge
from ..model.plan import Pin
from ..model.ranges import ANY_VERSION
from ..model.recipe import Recipe
from ..model.site import Interpreter, Site, Snapshot
from .candidates import (
    Candidate,
    Target,
    from_index,
    from_modules,
    matches,
    newest_first,
    pythons,
)


@dataclass(frozen=True)
class Wanted:
    """One component that is needed: in which range, and who says so."""

    component: str
    constraint: str
    why: str
    place: Place | None = None


@dataclass(frozen=True)
class Request:
    """Everything the answer depends on. ``refused`` holds (component, version) that pip refused."""

    recipe: Recipe
    site: Site
    arch: str
    snapshot: Snapshot
    knowledge: Knowledge
    implied: tuple[Wanted, ...] = ()
    build_only: tuple[Wanted, ...] = ()
    places: dict[str, Place] = field(default_factory=dict)
    refused: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class Resolution:
    """The components decided, the interpreter, and the modules to load in which order."""

    pins: tuple[Pin, ...]
    build_pins: tuple[Pin, ...]
    interpreter: Interpreter
    loads: tuple[str, ...]
    final: tuple[str, ...]


def resolve(request: Request) -> Resolution:
    """Choose one provider for every component of the recipe.

    Raises NoSolutionError naming, for the interpreter that came furthest, each component that
    found no provider, with its place in the recipe.
    """
    wanted = _wanted(request)
    _require_mpi(request)
    python = next(w for w in wanted if w.component == "python")
    best: list[Problem] | None = None
    for candidate, interpreter in _usable_pythons(request, python):
        chosen, problems = _fill(request, candidate, wanted)
        if not problems:
            return _resolution(request, interpreter, chosen)
        if best is None or len(problems) < len(best):
            best = problems
    raise _no_solution(best or [_no_python(request, python)])


def _wanted(request: Request) -> tuple[Wanted, ...]:
    stack = tuple(
        Wanted(name, constraint, f"recipe {request.recipe.name}", request.places.get(name))
        for name, constraint in request.recipe.stack.items()
    )
    named = {w.component for w in stack}
    return stack + tuple(w for w in request.implied if w.component not in named)


def _require_mpi(request: Request) -> None:
    components = request.knowledge.components
    fulfilling = sorted(name for name, known in components.items() if "mpi" in known.fulfils)
    if not any(name in request.recipe.stack for name in fulfilling):
        raise NoSolutionError(
            f"recipe {request.recipe.name} names no MPI, and its ranks talk over one",
            f"add one of these to its stack: {', '.join(fulfilling)}",
            place=request.places.get("stack"),
        )


def _usable_pythons(request: Request, wanted: Wanted) -> list[tuple[Candidate, Interpreter]]:
    order = request.site.origins
    fitting = [
        (candidate, interpreter)
        for candidate, interpreter in pythons(request.snapshot, request.arch)
        if candidate.origin in order and matches(candidate.version, wanted.constraint)
    ]
    ranked = newest_first([candidate for candidate, _ in fitting])
    fitting.sort(key=lambda pair: ranked.index(pair[0]))
    return sorted(fitting, key=lambda pair: order.index(pair[0].origin))


def _fill(
    request: Request, python: Candidate, wanted: tuple[Wanted, ...]
) -> tuple[dict[str, Candidate], list[Problem]]:
    chosen = {"python": python}
    problems: list[Problem] = []
    for want in (*wanted, *request.build_only):
        if want.component == "python":
            continue
        found = _choose(request, chosen, want)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            chosen[want.component] = found
    return chosen, problems


def _choose(request: Request, chosen: dict[str, Candidate], want: Wanted) -> Candidate | Problem:
    """Return the provider: a module already chosen, else the first origin that has one."""
    for other in chosen.values():
        if other.module and want.component in other.module.provides:
            version = other.module.provides[want.component]
            if matches(version, want.constraint):
                return Candidate(
                    want.component, version, "module", other.module.name, module=other.module
                )
            return Problem(
                f"{want.component} {want.constraint} is wanted, but module {other.module.name} "
                f"brings {version}, which would hide any other",
                want.place,
            )
    candidates = _candidates(request, chosen["python"], want)
    fitting = [c for c in candidates if matches(c.version, want.constraint)]
    for origin in request.site.origins:
        of_origin = newest_first([c for c in fitting if c.origin == origin])
        if of_origin:
            return of_origin[0]
    return _not_found(request, chosen["python"], want, candidates)


def _candidates(request: Request, python: Candidate, want: Wanted) -> list[Candidate]:
    target = Target(request.arch, python.version, request.snapshot.glibc)
    found = [
        *from_modules(want.component, request.snapshot),
        *from_index(want.component, request.knowledge, target),
    ]
    return [c for c in found if (c.component, c.version) not in request.refused]


def _not_found(
    request: Request, python: Candidate, want: Wanted, candidates: list[Candidate]
) -> Problem:
    asked = (
        want.component if want.constraint == ANY_VERSION else f"{want.component} {want.constraint}"
    )
    message = (
        f"nothing provides {asked} for Python {python.version} on {request.arch} "
        f"at site {request.site.name} (wanted by {want.why})"
    )
    hints = []
    if candidates:
        there = [f"{c.version} ({c.origin})" for c in newest_first(candidates)[:5]]
        hints.append(f"there is {want.component} {', '.join(there)}")
    refused = sorted(version for name, version in request.refused if name == want.component)
    if refused:
        hints.append(f"the package index does not offer {want.component} {', '.join(refused)}")
    return Problem(message, want.place, tuple(hints))


def _no_python(request: Request, want: Wanted) -> Problem:
    seen = sorted({c.version for c, _ in pythons(request.snapshot, request.arch)})
    hint = f"found: {', '.join(seen)}" if seen else "none was found that can make a virtualenv"
    return Problem(
        f"no Python {want.constraint} for {request.arch} at site {request.site.name}",
        want.place,
        (hint, "envbuild doctor lists the interpreters and what each lacks"),
    )


def _no_solution(problems: list[Problem]) -> NoSolutionError:
    error = NoSolutionError(problems[0].message)
    error.problems = tuple(problems)
    return error


def _resolution(
    request: Request, interpreter: Interpreter, chosen: dict[str, Candidate]
) -> Resolution:
    build_only = {w.component: w for w in request.build_only}
    wanted = {w.component: w for w in _wanted(request)}
    modules = {c.module.name: c.module for c in chosen.values() if c.module}
    final = {name for module in modules.values() for name in (*module.loads, module.name)}
    return Resolution(
        pins=tuple(_pin(chosen[name], want) for name, want in wanted.items()),
        build_pins=tuple(_pin(chosen[name], want) for name, want in build_only.items()),
        interpreter=interpreter,
        loads=tuple(modules),
        final=tuple(sorted(final)),
    )


def _pin(candidate: Candidate, want: Wanted) -> Pin:
    return Pin(
        component=candidate.component,
        version=candidate.version,
        origin=candidate.origin,
        locator=candidate.locator,
        why=f"{want.why} asks for {want.constraint}",
    )
