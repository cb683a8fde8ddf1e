"""The assumptions of the logic program: what may be given up to find out what cannot hold together.

Each is a value of ``problem``; here it meets the atom that stands for it in ``engine.lp``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import clingo

from .ids import Numbers
from .problem import (
    LAWS,
    Assumption,
    Change,
    ChangeKind,
    FlagRef,
    Law,
    OneProvider,
    Problem,
    PythonFit,
    RowRef,
)

Atoms = Mapping[Assumption, clingo.Symbol]
"""The atom of each assumption, in the order in which a refusal names them."""


def atoms(problem: Problem, numbers: Numbers) -> Atoms:
    """Return all assumptions of a problem with their atoms."""
    return {each: _on(*part) for each, part in _parts(problem, numbers)}


def _parts(
    problem: Problem, numbers: Numbers
) -> Iterator[tuple[Assumption, tuple[str, clingo.Symbol]]]:
    for n, want in enumerate(problem.wants):
        yield want.ref, ("want", clingo.Number(n))
    for n, flag in enumerate(problem.flags):
        yield FlagRef(flag), ("flag", clingo.Number(n))
    for row, n in numbers.rows.items():
        yield RowRef(row), ("row", clingo.Number(n))
    for name in sorted({c.component for c in problem.candidates if c.pythons is not None}):
        yield PythonFit(name), ("fit", clingo.Number(numbers.components[name]))
    for role, n in numbers.roles.items():
        yield OneProvider(role), ("provider", clingo.Number(n))
    for law in LAWS:
        yield Law(law), ("law", clingo.Function(law))


def _on(kind: str, part: clingo.Symbol) -> clingo.Symbol:
    return clingo.Function("on", [clingo.Function(kind, [part])])


def unrelaxed(problem: Problem, known: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """Return the assumptions that hold also where the closest stacks are looked for."""
    can: set[Assumption] = {want.ref for want in problem.wants if want.distance or want.can_drop}
    can |= {FlagRef(flag) for flag in problem.flags}
    can |= {RowRef(rule.row) for rule in problem.rules if rule.can_waive}
    return tuple(each for each in known if each not in can)


def changes(problem: Problem, known: Atoms, model: Iterable[clingo.Symbol]) -> tuple[Change, ...]:
    """Return what a model changes of what was asked."""
    there = frozenset(model)
    wide, added = (
        {s.arguments[0].number for s in there if s.name == name} for name in ("wide", "added")
    )
    found = [
        Change("widen" if n in wide else "drop", want.ref)
        for n, want in enumerate(problem.wants)
        if known[want.ref] not in there
    ]
    found += [
        Change("add", want.ref)
        for n, want in enumerate(problem.addable, start=len(problem.wants))
        if n in added
    ]
    kinds: dict[type, ChangeKind] = {FlagRef: "flag", RowRef: "waive"}
    found += [
        Change(kinds[type(each)], each)
        for each, symbol in known.items()
        if type(each) in kinds and symbol not in there
    ]
    return tuple(found)


def changed(problem: Problem, known: Atoms, change: Change) -> str:
    """Return the literal of the logic program that says that this is changed."""
    if change.kind in ("flag", "waive"):
        return f"not {known[change.of]}"
    every: list[Assumption] = [want.ref for want in (*problem.wants, *problem.addable)]
    atom = {"widen": "wide", "drop": "dropped", "add": "added"}[change.kind]
    return f"{atom}({every.index(change.of)})"
