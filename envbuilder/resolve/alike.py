"""Candidates that differ in nothing but their rank: only the best of them can be in an answer.

Of a package's releases most meet the same lines, are met by the same rows of knowledge and work
with the same Pythons. Whatever holds with one of them holds with another, at the cost of its rank.
"""

from __future__ import annotations

from collections.abc import Iterator

from .problem import Candidate, CandidateId, Problem


def worth_looking_at(problem: Problem) -> tuple[Candidate, ...]:
    """Return the candidates without those of no module that a better one stands for, in order.

    Modules are all kept: what else one brings and where it is in the text order tells it apart.
    """
    belongs = _belongs(problem)
    best: dict[object, Candidate] = {}
    for each in problem.candidates:
        if each.module is None:
            same = (
                *(each.component, each.roles, each.shadowable, each.origin_cost, each.pythons),
                tuple(belongs.get(each.id, ())),
            )
            other = best.setdefault(same, each)
            if (each.rank, each.id) < (other.rank, other.id):
                best[same] = each
    kept = {each.id for each in best.values()}
    return tuple(c for c in problem.candidates if c.module is not None or c.id in kept)


def _belongs(problem: Problem) -> dict[CandidateId, list[int]]:
    """Return for each candidate the sets of the problem that it is in, by their places."""
    found: dict[CandidateId, list[int]] = {}
    for place, those in enumerate(dict.fromkeys(_sets(problem))):
        for each in those:
            found.setdefault(each, []).append(place)
    return found


def _sets(problem: Problem) -> Iterator[frozenset[CandidateId]]:
    for each in problem.candidates:
        if each.pythons is not None:
            yield each.pythons
    for want in problem.wants:
        yield want.allowed
        # No two of these are as far from what was asked.
        yield from (frozenset({name}) for name, _ in want.distance)
    for rule in problem.rules:
        yield from rule.slots
        yield from rule.lacks
        for remedy in rule.remedies:
            yield from (those for those in (remedy.helps, remedy.needs) if those is not None)
