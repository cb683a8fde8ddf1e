"""Why a component is what it is in a stack, and why it is not another version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..errors import UsageError
from ..model.why import Why, WhyNot
from ..text import unknown
from .engine import conflict, solve
from .explain import member, no_solution
from .findings import findings
from .pool import describe
from .problem import LEVELS, Candidate, Stack, Want
from .request import Request, Wanted
from .world import World, allows, world

# So many better-ranked alternatives are looked into; each takes a solve or two.
_ALTERNATIVES = 3

_ASKED = "asked"

_LEVEL_WORDS = {
    "additions": "it would load modules that nobody asked for",
    "warnings": "more warnings, or modules in the place of others",
    "remedies": "more remedies",
    "preference": "not of the toolchain generation that is preferred here",
    "generations": "further toolchain generations",
    "origins": "origins that the site puts further behind",
    "newest": "not the newest that fits, here or of what the recipe names before it",
    "loads": "more modules to load",
    "names": "nothing but the order of names",
}


def why(request: Request, component: str) -> Why:
    """Say what a component is in the best stack, who asks for it, and why nothing better-ranked.

    Raises NoSolutionError where there is no stack, UsageError where the component is not in it.
    """
    whole = world(request, strict=False)
    stack = solve(whole.problem)
    if stack is None:
        raise no_solution(request)
    chosen = next((c for c in _effective(whole, stack) if c.component == component), None)
    if chosen is None:
        there = sorted({each.component for each in _effective(whole, stack)})
        raise UsageError(
            unknown("component of this stack", component, there), f"it has: {', '.join(there)}"
        )
    better = [
        each
        for each in sorted(whole.pool.of(component), key=lambda c: c.rank)
        if each.rank < chosen.rank
    ]
    return Why(
        component=component,
        version=chosen.version,
        provider=f"{chosen.origin}:{chosen.locator}",
        asked=tuple(_asking(whole, stack, chosen)),
        findings=tuple(
            each
            for each in findings(whole, stack)
            if any(name.startswith(f"{component}@") for name in each.components)
        ),
        instead_of=tuple(_why_not(whole, stack, each) for each in better[:_ALTERNATIVES]),
        further=max(0, len(better) - _ALTERNATIVES),
    )


def why_not(request: Request, component: str, version: str) -> WhyNot:
    """Say what stands against a version of a component, or that it only is not the best.

    Raises UsageError where there is no such version at all.
    """
    whole = world(request, strict=False)
    candidates = [c for c in whole.pool.of(component) if _is_release(c, version)]
    if not candidates:
        there = sorted(whole.pool.of(component), key=lambda c: c.rank)
        listing = ", ".join(dict.fromkeys(each.version for each in there)) or "nothing"
        raise UsageError(
            f"there is no {component} {version} at site {request.site.name}",
            f"of {component} there is: {listing}",
        )
    best = min(candidates, key=lambda each: each.rank)
    return _why_not(whole, solve(whole.problem), best)


def _is_release(candidate: Candidate, version: str) -> bool:
    if candidate.origin == "conda":
        # Not every version of conda's can be written in a range.
        return candidate.version == version
    return allows(f"=={version}", candidate.version, None)


def _effective(whole: World, stack: Stack) -> list[Candidate]:
    return [whole.candidate(name) for name in stack.effective]


def _asking(whole: World, stack: Stack, chosen: Candidate) -> Iterator[str]:
    for switch, name in stack.used:
        if name == chosen.id:
            wanted = whole.wanted[switch]
            place = f" ({wanted.place})" if wanted.place else ""
            yield f"{wanted.why} asks for {wanted.component} {wanted.constraint}{place}"
    if chosen.module and chosen.id not in dict(stack.used).values():
        yield f"comes with module {chosen.module}"


def _why_not(whole: World, best: Stack | None, candidate: Candidate) -> WhyNot:
    asked = _with_want(whole, candidate)
    stack = solve(asked.problem)
    told: tuple[str, ...]
    if stack is None:
        switches = [each for each in conflict(asked.problem) if each != _ASKED]
        members = [member(asked, switch) for switch in switches]
        links = tuple(each.link for each in members if each.link)
        told = tuple(each.text for each in members)
        return WhyNot(what=_what(candidate), possible=False, because=told, links=links)
    if best is None:
        return WhyNot(what=_what(candidate), possible=True, because=())
    told = tuple(_worse(whole, best, asked, stack))
    return WhyNot(what=_what(candidate), possible=True, because=told)


def _what(candidate: Candidate) -> str:
    return f"{describe([candidate])[0]} <- {candidate.origin}:{candidate.locator}"


def _with_want(whole: World, candidate: Candidate) -> World:
    """Return the world where exactly this candidate is asked for, behind all other wants."""
    order = len(whole.problem.wants)
    want = Want(_ASKED, candidate.component, frozenset({candidate.id}), order)
    constraint = candidate.module or f"=={candidate.version}"
    wanted = {**whole.wanted, _ASKED: Wanted(candidate.component, constraint, "the question")}
    problem = replace(whole.problem, wants=(*whole.problem.wants, want))
    return replace(whole, problem=problem, wanted=wanted)


def _worse(whole: World, best: Stack, asked: World, other: Stack) -> Iterator[str]:
    """Yield at which level the other stack is worse, and what is told of it alone."""
    ours, theirs = dict(best.costs), dict(other.costs)
    for level in LEVELS:
        # The question itself is one more want; it weighs nothing.
        mine, its = ours[level], theirs[level][: len(ours[level])]
        if mine != its:
            counted = level not in ("newest", "names")
            numbers = f" ({_sum(its)} instead of {_sum(mine)})" if counted else ""
            yield f"{_LEVEL_WORDS.get(level, level)}{numbers}"
            break
    known = {each.id for each in findings(whole, best)}
    for each in findings(asked, other):
        if each.id not in known and each.status in ("warning", "unknown", "lifted"):
            yield f"{each.id}: {each.summary}"


def _sum(costs: tuple[int, ...]) -> int:
    return sum(costs)
