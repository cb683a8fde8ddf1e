"""The numbers by which the logic program knows the parts of a problem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .problem import Candidate, Problem


@dataclass(frozen=True)
class Numbers:
    """The number of each name: its place among all of its kind, in text order.

    ``candidates``: those that the program is told of; modules have the place that they have among
    all of the problem. ``versions``: by ``identity`` of a candidate. ``roles``: components and
    virtuals. ``lacking``: those that a rule may lack. Wants, rules and flags have none here: theirs
    are their places in the problem.
    """

    modules: Mapping[str, int]
    keys: Mapping[str, int]
    abis: Mapping[str, int]
    families: Mapping[str, int]
    generations: Mapping[str, int]
    candidates: Mapping[str, int]
    components: Mapping[str, int]
    roles: Mapping[str, int]
    versions: Mapping[str, int]
    rows: Mapping[str, int]
    lacking: Mapping[str, int]


def number(problem: Problem, candidates: Sequence[Candidate]) -> Numbers:
    """Return the numbers of a problem's parts, with these of its candidates."""
    modules = problem.modules
    return Numbers(
        modules=_places(module.name for module in modules),
        keys=_places(module.key for module in modules),
        abis=_places(module.replaced_as for module in modules),
        families=_places(family for module in modules for family in module.families),
        generations=_places(_generations(problem)),
        candidates=_places(each.id for each in candidates),
        components=_places(each.component for each in candidates),
        roles=_places(role for each in candidates for role in each.roles | {each.component}),
        versions=_places(identity(each) for each in candidates),
        rows=_places(rule.row for rule in problem.rules),
        lacking=_places(role for rule in problem.rules for role in rule.lack_of),
    )


def identity(candidate: Candidate) -> str:
    """Return what two effective candidates of one role have in common."""
    place = "outside" if candidate.module is None else "module"
    return f"{candidate.component} {candidate.version} {place}"


def _generations(problem: Problem) -> Iterator[str]:
    for module in problem.modules:
        if module.generation is not None:
            yield module.generation
    if problem.preferred is not None:
        yield problem.preferred


def _places(names: Iterable[str]) -> dict[str, int]:
    return {name: n for n, name in enumerate(sorted(set(names)))}
