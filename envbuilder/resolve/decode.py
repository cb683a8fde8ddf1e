"""An answer of the logic program in the problem's own names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import clingo

from .dominance import Vector
from .encoding import EncodedProblem, roles
from .problem import LEVELS, Assumption, Change, ChangeKind, Stack, StackProblem

# The priorities of the levels in engine.lp: downwards from the first; "newest" has one for each
# want, and those after it are the last.
_FIRST, _NEWEST = 1010, 1000

Numbers = Mapping[str, list[tuple[int, ...]]]
"""The arguments of all atoms that are numbers, by the atoms' names."""

_OF_WANTS: dict[ChangeKind, str] = {"widen": "wide", "drop": "dropped", "add": "added"}
"""What says of a want that it is changed like that; a flag or a row is simply not on."""


def read(encoded: EncodedProblem, atoms: Sequence[clingo.Symbol], costs: dict[int, int]) -> Stack:
    """Return the stack that a model means: what holds in it, and its costs by priority.

    Its loads are not ordered yet.
    """
    of = _numbers(atoms)
    problem = encoded.problem
    names, candidates = tuple(encoded.numbers["module"]), tuple(encoded.numbers["candidate"])
    used = frozenset(candidates[k] for (k,) in of.get("use", ()))
    active = tuple(sorted(names[m] for (m,) in of.get("active", ())))
    taken = {q: d for q, d in of.get("take", ())}  # noqa: C416 - tuples of any length to pairs
    violated = (_violated(problem, q, taken.get(q)) for (q,) in of.get("violated", ()))
    return Stack(
        loads=tuple(sorted(names[m] for (m,) in of.get("load", ()))),
        final=active,
        replaced=_replaced(encoded, (names[r] for (r,) in of.get("replaced", ())), active),
        used=_used(encoded, used, of),
        effective=tuple(sorted(candidates[k] for (k,) in of.get("effective", ()))),
        violated=tuple(sorted(violated)),
        costs=tuple(_by_level(encoded, costs)),
        changes=_changes(encoded, of, frozenset(atoms)),
    )


def _numbers(atoms: Iterable[clingo.Symbol]) -> Numbers:
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


def _used(
    encoded: EncodedProblem, candidates: frozenset[str], of: Numbers
) -> tuple[tuple[Assumption, str], ...]:
    """Return which candidate each want uses that is met: not dropped, or added."""
    by_role = {
        role: each.id
        for each in encoded.kept.candidates
        if each.id in candidates
        for role in roles(each)
    }
    asked = len(encoded.problem.wants)
    return tuple(
        (want.ref, by_role[want.component])
        for s, want in enumerate(encoded.wants)
        if ((s,) not in of.get("dropped", ()) if s < asked else (s,) in of.get("added", ()))
    )


def _changes(
    encoded: EncodedProblem, of: Numbers, there: frozenset[clingo.Symbol]
) -> tuple[Change, ...]:
    """Return what is changed of what was asked: of wants, additions, flags and rows."""
    wants = [
        Change(kind, want.ref)
        for s, want in enumerate(encoded.wants)
        for kind, atom in _OF_WANTS.items()
        if (s,) in of.get(atom, ())
    ]
    kinds: dict[str, ChangeKind] = {"flag": "flag", "row": "waive"}
    off = [each for each, atom in encoded.atoms.items() if each.kind in kinds and atom not in there]
    return (*wants, *(Change(kinds[each.kind], each) for each in off))


def changed(encoded: EncodedProblem, change: Change) -> str:
    """Return the literal of the logic program that says that this is changed."""
    if change.kind not in _OF_WANTS:
        return f"not {encoded.atoms[change.of]}"
    place = [want.ref for want in encoded.wants].index(change.of)
    return f"{_OF_WANTS[change.kind]}({place})"


def _violated(problem: StackProblem, rule: int, remedy: int | None) -> tuple[str, str | None]:
    """Return the key of a rule and the remedy that was taken for it."""
    found = problem.rules[rule]
    return found.key, None if remedy is None else found.remedies[remedy].id


def _by_level(encoded: EncodedProblem, costs: dict[int, int]) -> Iterator[tuple[str, Vector]]:
    newest = LEVELS.index("newest")
    for n, level in enumerate(LEVELS):
        first, count = (_FIRST if n < newest else len(LEVELS)) - n, 1
        if n == newest:
            first, count = _NEWEST, len(encoded.wants)
        yield level, tuple(costs.get(first - place, 0) for place in range(count))
