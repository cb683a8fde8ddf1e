"""A finished stack in plain values, and what a row of knowledge says of it.

This applies rows to stacks without the solver, from their documented meaning alone, so that the
data can be tested whatever becomes of the solver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from envbuilder.knowledge.conditions import Condition, Value
from envbuilder.knowledge.ranges import matches
from envbuilder.knowledge.rows import (
    Advisory,
    Coupling,
    FlagRule,
    Knowledge,
    Ranges,
    Remedy,
    Selection,
    Selector,
)
from envbuilder.knowledge.terms import Origin

# What a recipe says by saying nothing.
ALWAYS_KNOWN: Mapping[str, Value] = {
    "backend": "virtualenv",
    "container": False,
    "uses": frozenset(),
}

AnyRow = Advisory | Coupling | FlagRule


@dataclass(frozen=True)
class Part:
    """One component of a stack. ``facts``: what is stated of the module that provides it."""

    version: str
    origin: Origin = "module"
    facts: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Stack:
    """Components, the site's and the recipe's facts, and the runtime's flags."""

    name: str
    source: str
    parts: Mapping[str, Part]
    facts: Mapping[str, Value] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)

    def changed(self, **parts: Part | None) -> Stack:
        """Return the stack with other parts (``spectrum_mpi``: spectrum-mpi); None: without it."""
        merged = {**self.parts, **{name.replace("_", "-"): part for name, part in parts.items()}}
        kept = {name: part for name, part in merged.items() if part is not None}
        return replace(self, parts=kept)

    def flagged(self, **flags: str) -> Stack:
        return replace(self, flags={**self.flags, **flags})

    def stated(self, **facts: Value) -> Stack:
        return replace(self, facts={**self.facts, **facts})


def modules(**versions: str) -> dict[str, Part]:
    """Return parts that modules provide: ``modules(spectrum_mpi="10.3")``."""
    return {name.replace("_", "-"): Part(version) for name, version in versions.items()}


class Reader:
    """What rows say of stacks, with the virtuals that components fulfil."""

    def __init__(self, known: Knowledge) -> None:
        self._known = known

    def refusals(self, stack: Stack) -> dict[str, str]:
        """Return the errors that forbid the stack and that no remedy lifts: id -> summary."""
        known = self._known
        rows: tuple[AnyRow, ...] = (*known.advisories, *known.couplings, *known.flag_rules)
        return {row.id: row.summary for row in rows if self.refuses(row, stack)}

    def refuses(self, row: AnyRow, stack: Stack) -> bool:
        if row.severity != "error" or not self.fills(row, stack):
            return False
        truth = Condition(row.when).evaluate(lambda name: self._fact(stack, name))
        if truth is False or (truth is None and row.unknown != "error"):
            return False
        return not any(self._lifts(each, row, stack) for each in row.remedies)

    def fills(self, row: AnyRow, stack: Stack) -> bool:
        """Whether the stack holds the releases that the row is about, whatever its condition."""
        if isinstance(row, FlagRule):
            return self._inside(stack, row.runtime, row.range)
        if isinstance(row, Advisory):
            return self._inside(stack, row.component, row.affected) and all(
                self._selected(stack, name, which) for name, which in row.beside.items()
            )
        if not all(self._selected(stack, name, which) for name, which in row.given.items()):
            return False
        return any(
            not self._selected(stack, name, which)
            and (row.absent == "wrong" or self._of(stack, name) is not None)
            for name, which in row.needs.items()
        )

    def _of(self, stack: Stack, role: str) -> Part | None:
        names = (role, *self._known.fulfilling(role))
        return next((stack.parts[name] for name in names if name in stack.parts), None)

    def _inside(self, stack: Stack, role: str, ranges: Ranges) -> bool:
        part = self._of(stack, role)
        each = (ranges,) if isinstance(ranges, str) else ranges
        return part is not None and any(matches(part.version, one) for one in each)

    def _selected(self, stack: Stack, role: str, which: Selection) -> bool:
        part = self._of(stack, role)
        if part is None:
            return False
        if isinstance(which, Selector):
            right = not which.origin or part.origin in which.origin
            return right and matches(part.version, which.range)
        return matches(part.version, which)

    def _fact(self, stack: Stack, name: str) -> Value | None:
        owner, dot, rest = name.partition(".")
        if not dot:
            return stack.facts.get(name, ALWAYS_KNOWN.get(name))
        if owner == "flags":
            return stack.flags.get(rest, "")
        if owner == "ops":
            one = stack.flags.get(f"HOROVOD_GPU_{rest.upper()}")
            return one or stack.flags.get("HOROVOD_GPU_OPERATIONS") or "CPU"
        part = self._of(stack, owner)
        return None if part is None else part.facts.get(rest)

    def _lifts(self, remedy: Remedy, row: AnyRow, stack: Stack) -> bool:
        about = row.component if isinstance(row, Advisory) else "horovod"
        if remedy.affected is not None and not self._inside(stack, about, remedy.affected):
            return False
        if remedy.when is None:
            return True
        return Condition(remedy.when).evaluate(lambda name: self._fact(stack, name)) is True
