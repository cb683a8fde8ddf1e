"""Why a component is what it is in a stack, and why it is not another version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..errors import UsageError
from ..knowledge.channels import CHANNEL_ORIGINS
from ..knowledge.ranges import ANY_VERSION, matches
from ..model.why import ComponentReason, WhyNot
from ..text import unknown
from .engine import LimitError, Limits, conflict, conflicts, solve
from .explain import member, no_solution
from .findings import findings
from .pool import describe
from .problem import LEVELS, Assumption, Candidate, Stack, Want
from .problem_builder import ProblemInputs, problem_inputs
from .request import Request, Requirement

# So many better-ranked alternatives are looked into; each takes a solve or two.
_ALTERNATIVES = 3

_ASKED = Assumption("question", "question")

_LEVEL_WORDS = {
    "additions": "additional modules that the recipe does not require",
    "warnings": "more warnings, or more replaced modules",
    "remedies": "more remedies",
    "preference": "not the preferred toolchain generation",
    "generations": "more toolchain generations",
    "origins": "origins that the site ranks lower",
    "newest": "an older release of it, or of a component that the recipe names before it",
    "loads": "more modules to load",
    "names": "only the order of names",
}


def why(request: Request, component: str) -> ComponentReason:
    """Say what a component is in the best stack, who asks for it, and why nothing better-ranked.

    Raises NoSolutionError where there is no stack, UsageError where the component is not in it.
    """
    inputs = problem_inputs(request, strict=False)
    stack = solve(inputs.problem)
    if stack is None:
        raise no_solution(request)
    chosen = next((c for c in _effective(inputs, stack) if c.component == component), None)
    if chosen is None:
        there = sorted({each.component for each in _effective(inputs, stack)})
        raise UsageError(
            "component.unknown",
            unknown("component of this stack", component, there),
            f"available: {', '.join(there)}",
        )
    every = sorted(inputs.pool.of(component), key=lambda c: c.rank)
    better = [each for each in every if each.rank < chosen.rank]
    # And the best candidate of every origin but that of the chosen one.
    others = {each.origin: each for each in reversed(every) if each.origin != chosen.origin}
    best = sorted(others.values(), key=lambda c: c.rank)
    looked_into = list({each.id: each for each in (*better[:_ALTERNATIVES], *best)}.values())
    return ComponentReason(
        component=component,
        version=chosen.version,
        provider=f"{chosen.origin}:{chosen.locator}",
        asked=tuple(_asking(inputs, stack, chosen)),
        findings=tuple(
            each
            for each in findings(inputs, stack)
            if any(name.startswith(f"{component}@") for name in each.components)
        ),
        instead_of=tuple(_why_not(inputs, stack, each) for each in looked_into),
        further=sum(each not in looked_into for each in better),
    )


def why_not(request: Request, component: str, version: str) -> WhyNot:
    """Say what stands against a version of a component, or that it only is not the best.

    Raises UsageError where there is no such version at all.
    """
    inputs = problem_inputs(request, strict=False)
    is_wanted = any(each.component == component for each in inputs.requirements.values())
    if not is_wanted:
        question = Requirement(component, ANY_VERSION, "the question")
        asking = replace(request, implied=(*request.implied, question))
        inputs = problem_inputs(asking, strict=False)
    candidates = [c for c in inputs.pool.of(component) if _is_release(c, version)]
    if not candidates:
        there = sorted(inputs.pool.of(component), key=lambda c: c.rank)
        listing = ", ".join(dict.fromkeys(each.version for each in there)) or "nothing"
        raise UsageError(
            "component.unavailable-version",
            f"there is no {component} {version} at site {request.site.name}",
            f"available {component}: {listing}",
        )
    best = min(candidates, key=lambda each: each.rank)
    found = _why_not(inputs, solve(inputs.problem), best)
    if is_wanted:
        return found
    unasked = f"recipe {request.recipe.name} does not require {component}"
    return found.model_copy(update={"because": (unasked, *found.because)})


def _is_release(candidate: Candidate, version: str) -> bool:
    if candidate.origin in CHANNEL_ORIGINS:
        # Not every version of conda's can be written in a range.
        return candidate.version == version
    return matches(candidate.version, f"=={version}")


def _effective(inputs: ProblemInputs, stack: Stack) -> list[Candidate]:
    return [inputs.candidate(name) for name in stack.effective]


def _asking(inputs: ProblemInputs, stack: Stack, chosen: Candidate) -> Iterator[str]:
    for ref, name in stack.used:
        if name == chosen.id:
            required = inputs.requirements[ref]
            place = f" ({required.place})" if required.place else ""
            yield f"{required.why} requires {required.component} {required.constraint}{place}"
    if chosen.module and chosen.id not in dict(stack.used).values():
        yield f"comes with module {chosen.module}"


def _why_not(inputs: ProblemInputs, best: Stack | None, candidate: Candidate) -> WhyNot:
    asked = _with_want(inputs, candidate)
    stack = solve(asked.problem)
    if stack is None:
        found = [each for each in conflict(asked.problem) if each != _ASKED]
        members = [member(asked, each) for each in found]
        links = tuple(each.link for each in members if each.link)
        told = tuple(each.text for each in members)
        return WhyNot(what=_what(candidate), possible=False, because=told, links=links)
    if best is None:
        return WhyNot(what=_what(candidate), possible=True, because=())
    told = tuple(_worse(inputs, best, asked, stack))
    return WhyNot(what=_what(candidate), possible=True, because=told)


def held_by(inputs: ProblemInputs, best: Stack, candidate: Candidate) -> str:
    """Say in a few words why a candidate is not in the best stack: rows of knowledge by their ids.

    A solve of its own, of a second at most: who wants all of it asks ``why-not``.
    """
    asked = _with_want(inputs, candidate)
    limits = Limits(seconds=1.0)
    try:
        stack = solve(asked.problem, limits)
        if stack is not None:
            return f"would mean {next(_worse(inputs, best, asked, stack), 'nothing better')}"
        found = next(conflicts(asked.problem, limits), ())
    except LimitError:
        return "was not chosen: envbuild why-not explains it"
    others = [each for each in found if each != _ASKED]
    words = [each.name if each.kind == "row" else member(asked, each).text for each in others]
    return f"conflicts with {' and '.join(words)}"


def _what(candidate: Candidate) -> str:
    return f"{describe([candidate])[0]} <- {candidate.origin}:{candidate.locator}"


def _with_want(inputs: ProblemInputs, candidate: Candidate) -> ProblemInputs:
    """Return the inputs where exactly this candidate is asked for, behind all other wants."""
    want = Want(_ASKED, candidate.component, frozenset({candidate.id}))
    constraint = candidate.module or f"=={candidate.version}"
    requirements = {
        **inputs.requirements,
        _ASKED: Requirement(candidate.component, constraint, "the question"),
    }
    problem = replace(inputs.problem, wants=(*inputs.problem.wants, want))
    return replace(inputs, problem=problem, requirements=requirements)


def _worse(inputs: ProblemInputs, best: Stack, asked: ProblemInputs, other: Stack) -> Iterator[str]:
    """Yield at which level the other stack is worse, and what is told of it alone."""
    ours, theirs = dict(best.costs), dict(other.costs)
    for level in LEVELS:
        # The question itself is one more want; it weighs nothing.
        mine, its = ours[level], theirs[level][: len(ours[level])]
        if mine != its:
            counted = level not in ("newest", "names")
            numbers = f" ({sum(its)} instead of {sum(mine)})" if counted else ""
            yield f"{_LEVEL_WORDS.get(level, level)}{numbers}"
            break
    known = {each.id for each in findings(inputs, best, silent=True)}
    for each in findings(asked, other, silent=True):
        if each.id not in known and each.status in ("warning", "unknown", "lifted"):
            yield f"{each.id}: {each.summary}"
