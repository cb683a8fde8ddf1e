"""An answer of the logic program in the problem's own names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import clingo

from .encoding import Encoded
from .problem import LEVELS, Problem, Stack, Want
from .switches import changes

# Levels that are not "newest" stand at these priorities in engine.lp.
_PRIORITIES = {
    "changes": 1010,
    "distance": 1009,
    "additions": 1008,
    "preference": 1007,
    "origins": 1006,
    "warnings": 1005,
    "remedies": 1004,
    "generations": 1003,
    "loads": 2,
    "names": 1,
}
_NEWEST = 1000


@dataclass(frozen=True)
class Answer:
    """One model: what holds in it, and its costs by priority."""

    atoms: tuple[clingo.Symbol, ...]
    costs: dict[int, int]


def read(encoded: Encoded, answer: Answer) -> Stack:
    """Return the stack that an answer means; its loads are not ordered yet."""
    of = _numbers(answer.atoms)
    problem = encoded.problem
    names, candidates = tuple(encoded.numbers.modules), tuple(encoded.numbers.candidates)
    used = frozenset(candidates[k] for (k,) in of.get("use", ()))
    active = tuple(sorted(names[m] for (m,) in of.get("active", ())))
    taken = {q: d for q, d in of.get("take", ())}  # noqa: C416 - tuples of any length to pairs
    violated = (_violated(problem, q, taken.get(q)) for (q,) in of.get("violated", ()))
    return Stack(
        loads=tuple(sorted(names[m] for (m,) in of.get("load", ()))),
        final=active,
        replaced=_replaced(encoded, (names[r] for (r,) in of.get("replaced", ())), active),
        used=_used(problem, used, frozenset(s for (s,) in of.get("dropped", ()))),
        effective=tuple(sorted(candidates[k] for (k,) in of.get("effective", ()))),
        violated=tuple(sorted(violated)),
        costs=_by_level(problem, answer.costs),
        changes=changes(encoded.switches, answer.atoms),
    )


def _numbers(atoms: Iterable[clingo.Symbol]) -> dict[str, list[tuple[int, ...]]]:
    """Return the arguments of all atoms that are numbers, by the atoms' names."""
    found: dict[str, list[tuple[int, ...]]] = {}
    for atom in atoms:
        arguments = (each for each in atom.arguments if each.type == clingo.SymbolType.Number)
        found.setdefault(atom.name, []).append(tuple(each.number for each in arguments))
    return found


def _replaced(
    encoded: Encoded, replaced: Iterable[str], active: Iterable[str]
) -> tuple[tuple[str, str], ...]:
    """Return each replaced module with the active one of its key, sorted."""
    modules = encoded.modules
    winners = {modules[name].key: name for name in active}
    return tuple(sorted((name, winners[modules[name].key]) for name in replaced))


def _used(
    problem: Problem, candidates: frozenset[str], dropped: frozenset[int]
) -> tuple[tuple[str, str], ...]:
    """Return which candidate each want uses."""
    return tuple(
        (want.switch, _of_want(problem, want, candidates))
        for s, want in enumerate(problem.wants)
        if s not in dropped
    )


def _of_want(problem: Problem, want: Want, used: frozenset[str]) -> str:
    return next(
        each.id
        for each in problem.candidates
        if each.id in used and want.component in each.roles | {each.component}
    )


def _violated(problem: Problem, rule: int, remedy: int | None) -> tuple[str, str | None]:
    """Return the key of a rule and the remedy that was taken for it."""
    found = problem.rules[rule]
    return found.key, None if remedy is None else found.remedies[remedy].id


def _by_level(problem: Problem, costs: dict[int, int]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    newest = tuple(costs.get(_NEWEST - place, 0) for place in range(len(problem.wants)))
    return tuple(
        (level, newest if level == "newest" else (costs.get(_PRIORITIES[level], 0),))
        for level in LEVELS
    )
