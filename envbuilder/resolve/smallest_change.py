"""The smallest change of what is installed that makes it what a recipe asks for.

The stack problem of the recipe, with the versions that are there as further wants that may be
given up, so that the closest stack is the one that leaves most as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..model.channels import CHANNEL_ORIGINS
from ..model.ranges import ANY_VERSION
from .engine import LimitError, Limits, closest, conflicts
from .explain import member
from .problem import Assumption, Candidate, Rule, Stack, Want
from .problem_builder import ProblemInputs, distances, problem_inputs
from .request import Request, Requirement

_SECONDS = 20.0
_THERE = "it is there"
# What is installed; the Python and what the machine has lie outside.
_PACKAGES = ("pip", "build", *CHANNEL_ORIGINS)


class InstalledRequirement(NamedTuple):
    """What an installed distribution or conda package requires of a component.

    ``by``: which one, in words; ``admits``: whether a version is one that it requires; ``owner``:
    the component that it is; None: it is none.
    """

    by: str
    component: str
    admits: Callable[[str], bool | None]
    owner: str | None = None


class Step(NamedTuple):
    """One component that changes. ``was``: its version; ``to``: what it becomes; None: nothing."""

    component: str
    was: str | None
    to: Candidate | None


@dataclass(frozen=True)
class SmallestChange:
    """What to change, and which distributions then lack what they require.

    ``refused``: why no change of packages does, in words; ``late``: the solver gave up.
    """

    steps: tuple[Step, ...] = ()
    breaks: tuple[InstalledRequirement, ...] = ()
    refused: tuple[str, ...] = ()
    late: bool = False


def smallest_change(
    request: Request, there: Mapping[str, str], required: Sequence[InstalledRequirement]
) -> SmallestChange:
    """Return the smallest change. *there*: the components that are installed, with their versions.

    *request*: of the recipe; its knowledge has the installed versions among the releases. Of what
    is installed and not asked for by the recipe everything may change or go; of what the recipe
    asks for, nothing but to a version that it admits.
    """
    named = {*request.recipe.stack, request.recipe.runtime.package}
    others = [Requirement(name, ANY_VERSION, _THERE) for name in there if name not in named]
    inputs = problem_inputs(replace(request, implied=(*request.implied, *others)), strict=False)
    kept = dict(_kept(inputs, there))
    needs = dict(_needs(inputs, required))
    asked = [
        replace(want, distance=(), can_drop=False)
        for want in inputs.problem.wants
        if want.ref not in {Assumption("implied", each.component) for each in others}
    ]
    problem = replace(
        inputs.problem,
        wants=(*asked, *kept.values(), *(want for want, _ in needs.values())),
        rules=(*inputs.problem.rules, *_owners(inputs, there, required)),
        addable=(),
    )
    free = frozenset({*(want.ref for want in kept.values()), *needs})
    stacks, late = closest(problem, 1, Limits(seconds=_SECONDS), free)
    if stacks:
        return _told(
            inputs, stacks[0], there, kept, {ref: each for ref, (_, each) in needs.items()}
        )
    return SmallestChange(late=late) if late else SmallestChange(refused=_refused(inputs, asked))


def _kept(inputs: ProblemInputs, there: Mapping[str, str]) -> Iterator[tuple[str, Want]]:
    """Yield the wants that each component stays as it is."""
    named = {*inputs.request.recipe.stack, inputs.request.recipe.runtime.package}
    for name, version in there.items():
        candidates = inputs.pool.of(name)
        allowed = frozenset(each.id for each in candidates if each.version == version)
        if allowed:
            yield (
                name,
                Want(
                    ref=Assumption("question", name),
                    component=name,
                    allowed=allowed,
                    distance=distances(inputs, name, allowed, f"=={version}"),
                    can_drop=name not in named,
                ),
            )


def _within(inputs: ProblemInputs, each: InstalledRequirement) -> frozenset[str]:
    return frozenset(c.id for c in inputs.pool.of(each.component) if each.admits(c.version))


def _needs(
    inputs: ProblemInputs, required: Iterable[InstalledRequirement]
) -> Iterator[tuple[Assumption, tuple[Want, InstalledRequirement]]]:
    """Yield what distributions that are no components require: they can only break."""
    for n, each in enumerate(required):
        if each.owner is None and inputs.pool.of(each.component):
            ref = Assumption("question", f"requirement {n}")
            within = _within(inputs, each)
            yield ref, (Want(ref, each.component, within, can_drop=True), each)


def _owners(
    inputs: ProblemInputs, there: Mapping[str, str], required: Iterable[InstalledRequirement]
) -> Iterator[Rule]:
    """Yield what the installed versions of components require, as rules about just these."""
    for n, each in enumerate(required):
        owner = there.get(each.owner or "")
        if each.owner is None or owner is None or not inputs.pool.of(each.component):
            continue
        own = frozenset(c.id for c in inputs.pool.of(each.owner) if c.version == owner)
        name = f"requirement {n}"
        yield Rule(
            key=name,
            row=name,
            hard=True,
            slots=(own,),
            lacks=(_within(inputs, each),),
            lack_of=(each.component,),
        )


def _told(
    inputs: ProblemInputs,
    stack: Stack,
    there: Mapping[str, str],
    kept: Mapping[str, Want],
    needs: Mapping[Assumption, InstalledRequirement],
) -> SmallestChange:
    used = {inputs.candidate(name).component: name for _, name in stack.used}
    changed = {change.of: change.kind for change in stack.changes}
    steps = []
    for name, want in kept.items():
        if want.ref in changed:
            to = inputs.candidate(used[name]) if changed[want.ref] == "widen" else None
            steps.append(Step(name, there[name], to))
    steps += [
        Step(name, None, inputs.candidate(candidate))
        for name, candidate in used.items()
        if name not in there and inputs.candidate(candidate).origin in _PACKAGES
    ]
    breaks = tuple(each for ref, each in needs.items() if ref in changed)
    return SmallestChange(
        steps=tuple(sorted(steps, key=lambda each: each.component)), breaks=breaks
    )


def _refused(inputs: ProblemInputs, asked: Sequence[Want]) -> tuple[str, ...]:
    """Return what cannot hold together, whatever else is changed."""
    problem = replace(inputs.problem, wants=tuple(asked), addable=())
    try:
        first = next(conflicts(problem, Limits(seconds=_SECONDS)), ())
    except LimitError:
        return ()
    return tuple(member(inputs, each).text for each in first)
