"""An answer of the logic program in the problem's own names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import clingo

from .assumptions import changes
from .encoding import EncodedProblem
from .problem import LEVELS, Problem, Stack, WantRef

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
class DecodedAnswer:
    """One model: what holds in it, and its costs by priority."""

    atoms: tuple[clingo.Symbol, ...]
    costs: dict[int, int]


def read(encoded: EncodedProblem, answer: DecodedAnswer) -> Stack:
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
        used=_used(encoded, used, _asked(encoded, of)),
        effective=tuple(sorted(candidates[k] for (k,) in of.get("effective", ()))),
        violated=tuple(sorted(violated)),
        costs=_by_level(problem, answer.costs),
        changes=changes(problem, encoded.atoms, answer.atoms),
    )


def _numbers(atoms: Iterable[clingo.Symbol]) -> dict[str, list[tuple[int, ...]]]:
    """Return the arguments of all atoms that are numbers, by the atoms' names."""
    found: dict[str, list[tuple[int, ...]]] = {}
    for atom in atoms:
        arguments = (each for each in atom.arguments if each.type == clingo.SymbolType.Number)
        found.setdefault(atom.name, []).append(tuple(each.number for each in arguments))
    return found


def _replaced(
    encoded: EncodedProblem, replaced: Iterable[str], active: Iterable[str]
) -> tuple[tuple[str, str], ...]:
    """Return each replaced module with the active one of its key, sorted."""
    modules = encoded.modules
    winners = {modules[name].key: name for name in active}
    return tuple(sorted((name, winners[modules[name].key]) for name in replaced))


def _asked(encoded: EncodedProblem, of: Mapping[str, list[tuple[int, ...]]]) -> frozenset[int]:
    """Return the numbers of the wants that are met: those not dropped, and those added."""
    dropped = {s for (s,) in of.get("dropped", ())}
    added = {s for (s,) in of.get("added", ())}
    return frozenset(range(len(encoded.problem.wants))) - dropped | added


def _used(
    encoded: EncodedProblem, candidates: frozenset[str], asked: frozenset[int]
) -> tuple[tuple[WantRef, str], ...]:
    """Return which candidate each want uses."""
    by_role = {
        role: each.id
        for each in encoded.kept.candidates
        if each.id in candidates
        for role in each.roles | {each.component}
    }
    return tuple(
        (want.ref, by_role[want.component]) for s, want in enumerate(encoded.wants) if s in asked
    )


def _violated(problem: Problem, rule: int, remedy: int | None) -> tuple[str, str | None]:
    """Return the key of a rule and the remedy that was taken for it."""
    found = problem.rules[rule]
    return found.key, None if remedy is None else found.remedies[remedy].id


def _by_level(problem: Problem, costs: dict[int, int]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    wants = len(problem.wants) + len(problem.addable)
    newest = tuple(costs.get(_NEWEST - place, 0) for place in range(wants))
    return tuple(
        (level, newest if level == "newest" else (costs.get(_PRIORITIES[level], 0),))
        for level in LEVELS
    )
