"""The switches of the logic program: what may be left out to find out what cannot hold together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import clingo

from .numbering import Numbers
from .problem import Change, Problem

LAWS = ("generations", "provider", "replaces", "loading")
"""What holds whatever a user asks: one generation, one provider of a role, no release in another's
place unless it may stand in for it, and what the module system refuses."""

Switches = Mapping[str, clingo.Symbol]
"""The atom of each switch by its name: a want's own, row:ID, flag:NAME, fit:COMPONENT, law:NAME."""


def switches(problem: Problem, numbers: Numbers) -> Switches:
    """Return all switches of a problem, in the order in which a refusal names them."""
    limited = {each.component for each in problem.candidates if each.pythons is not None}
    parts = {
        **{want.switch: ("want", clingo.Number(n)) for n, want in enumerate(problem.wants)},
        **{f"flag:{flag}": ("flag", clingo.Number(n)) for n, flag in enumerate(problem.flags)},
        **{f"row:{row}": ("row", clingo.Number(n)) for row, n in numbers.rows.items()},
        **{
            f"fit:{name}": ("fit", clingo.Number(numbers.components[name]))
            for name in sorted(limited)
        },
        **{f"law:{law}": ("law", clingo.Function(law)) for law in LAWS},
    }
    return {
        name: clingo.Function("on", [clingo.Function(kind, [part])])
        for name, (kind, part) in parts.items()
    }


def unrelaxed(problem: Problem, known: Switches) -> tuple[str, ...]:
    """Return the switches that stay on also where the closest stacks are looked for."""
    can = {want.switch for want in problem.wants if want.distance or want.can_drop}
    can |= {f"flag:{flag}" for flag in problem.flags}
    can |= {f"row:{rule.row}" for rule in problem.rules if rule.can_waive}
    return tuple(name for name in known if name not in can)


def changes(known: Switches, atoms: Iterable[clingo.Symbol]) -> tuple[Change, ...]:
    """Return what a model changes of what was asked."""
    there = frozenset(atoms)
    wide = {s.arguments[0].number for s in there if s.name == "wide"}
    found = []
    for name, symbol in known.items():
        if symbol in there:
            continue
        kind, part = symbol.arguments[0].name, symbol.arguments[0].arguments[0]
        if kind == "want":
            found.append(Change("widen" if part.number in wide else "drop", name))
        elif kind == "flag":
            found.append(Change("flag", name))
        elif kind == "row":
            found.append(Change("waive", name))
    return tuple(found)


def changed(known: Switches, change: Change) -> str:
    """Return the atom of the logic program that says that this is changed."""
    symbol = known[change.switch]
    number = symbol.arguments[0].arguments[0]
    return {
        "widen": f"wide({number})",
        "drop": f"dropped({number})",
        "flag": f"not {symbol}",
        "waive": f"not {symbol}",
    }[change.kind]
