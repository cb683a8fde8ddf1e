"""Solving a stack problem with clingo: the best stack, a minimal conflict, the closest stacks.

The logic program is ``engine.lp``. Everything here works on the plain values of ``problem``; equal
problems give equal answers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

import clingo

from .. import data
from .alike import worth_looking_at
from .encoding import Encoded, bar, facts
from .loading import order
from .problem import CHANGE_COSTS, Change, Problem, Stack
from .reading import Answer, read
from .switches import changed, unrelaxed

# How many sets of loads that end otherwise than planned are barred before giving up. Each bar is
# one more solve of some milliseconds; real trees need none or one.
_MOST_BARS = 60

_OPTIONS = ("-t1", "--seed=1", "--opt-strategy=usc", "--warn=none")

_LOADING = "law:loading"


def solve(problem: Problem) -> Stack | None:
    """Return the best stack, or None where the problem has none."""
    return _best(problem, relaxing=False, blocked=())[0]


def closest(problem: Problem, count: int = 3, seconds: float = 20.0) -> tuple[Stack, ...]:
    """Return stacks that work once something asked for is changed, the cheapest change first.

    No stack's changes hold all the changes of an earlier one. Ends after *count* stacks, or when
    *seconds* are over (at least one is tried for).
    """
    found: list[Stack] = []
    end = time.monotonic() + seconds
    while len(found) < count and (not found or time.monotonic() < end):
        stack, problem = _best(problem, relaxing=True, blocked=[each.changes for each in found])
        if stack is None:
            break
        found.append(stack)
        if not stack.changes:
            break
    return tuple(found)


def conflict(problem: Problem) -> tuple[str, ...]:
    """Return a minimal set of switches that cannot hold together; empty: there is a stack."""
    return next(iter(conflicts(problem, 1)), ())


def conflicts(problem: Problem, count: int) -> tuple[tuple[str, ...], ...]:
    """Return up to *count* minimal sets of switches, none of which can hold together.

    Of a set every member is needed: the others hold together. No two sets share more than laws, so
    each is a trouble of its own; none: there is a stack. A law that cannot hold by itself is named
    once, and then left out.
    """
    stack, problem = _best(problem, relaxing=False, blocked=())
    if stack is not None:
        return ()
    cores = _Cores(Encoded(problem, problem.candidates))
    found: list[tuple[str, ...]] = []
    left = list(cores.encoded.switches)
    while len(found) < count:
        one = cores.minimal(left)
        if one is None:
            break
        found.append(one)
        if not one:
            break
        shared = {name for name in one if name.startswith("law:") and len(one) > 1}
        left = [name for name in left if name not in one or name in shared]
    return tuple(found)


class _Cores:
    """Sets of switches that cannot hold together, found in one grounded program."""

    def __init__(self, encoded: Encoded) -> None:
        self.encoded = encoded
        self._control = _grounded(encoded, objective=False)
        self._bars = 0
        # Literals stay what they are when bars are added; atoms are gone once they can only be
        # false, and to assume one that is gone says nothing about which it was.
        known = {a.symbol: a.literal for a in self._control.symbolic_atoms.by_signature("on", 1)}
        self._literals = {name: known[symbol] for name, symbol in encoded.switches.items()}
        self._names = {literal: name for name, literal in self._literals.items()}

    def minimal(self, switches: list[str]) -> tuple[str, ...] | None:
        """Return a minimal set of those among *switches*; None: they hold together.

        Laws or rows are tried first for leaving out, then fits and what is implied, so that what a
        user wrote is what remains where there is a choice; of the two sets the one with fewer
        things that a user wrote is the better reason, and then a law rather than a row. Empty:
        nothing can be, whatever is left out.
        """
        core = self._core(switches)
        if core is None:
            return None
        found = [self._smaller(core, _ORDERS[0])]
        without_rows = self._core([name for name in switches if _kind(name) != "row"])
        if without_rows is not None:
            found.append(self._smaller(without_rows, _ORDERS[1]))
        return min(found, key=lambda each: (_written(each), _rows(each), len(each), each))

    def _smaller(self, core: list[str], kinds: Sequence[str]) -> tuple[str, ...]:
        order_of = list(self.encoded.switches).index
        places = {kind: n for n, kind in enumerate(kinds)}
        kept = core
        for switch in sorted(core, key=lambda name: (places[_kind(name)], order_of(name))):
            if switch in kept:
                smaller = self._core([name for name in kept if name != switch])
                kept = kept if smaller is None else smaller
        return tuple(sorted(kept, key=order_of))

    def _core(self, switches: list[str]) -> list[str] | None:
        """Return switches among these that cannot hold together, or None: they can."""
        while True:
            core, stack = self._solve(switches)
            if stack is None:
                return core
            if _LOADING not in switches or _ordered(self.encoded, stack) is not None:
                return None
            self._bar(stack)

    def _solve(self, switches: list[str]) -> tuple[list[str], Stack | None]:
        assumptions = [self._literals[name] for name in switches]
        with self._control.solve(assumptions=assumptions, yield_=True) as handle:
            for model in handle:
                answer = Answer(tuple(model.symbols(shown=True)), {})
                return [], read(self.encoded, answer)
            return [self._names[number] for number in handle.core()], None

    def _bar(self, stack: Stack) -> None:
        """Bar the loads of a stack that has no order, as long as the law of loading is on."""
        self._bars += 1
        part = f"bar{self._bars}"
        self._control.add(part, [], bar(self.encoded.numbers, stack.loads))
        self._control.ground([(part, [])])


_ORDERS = (
    ("law", "fit", "implied", "row", "flag", "line"),
    ("row", "fit", "implied", "law", "flag", "line"),
)
"""In which order the kinds of switches are tried for leaving out."""


def _kind(switch: str) -> str:
    kind = switch.partition(":")[0]
    return kind if kind in _ORDERS[0] else "line"


def _written(switches: Sequence[str]) -> int:
    """Return how many of these a user wrote."""
    return sum(_kind(switch) in ("line", "flag") for switch in switches)


def _rows(switches: Sequence[str]) -> int:
    return sum(_kind(switch) == "row" for switch in switches)


def _best(
    problem: Problem, relaxing: bool, blocked: Sequence[tuple[Change, ...]]
) -> tuple[Stack | None, Problem]:
    """Return the best stack whose loads can be ordered, and the problem with what was barred."""
    while True:
        # The best is one, whatever it is found among. Of equally close stacks the first that is
        # found counts, and that shall not hang on who stands for whom.
        told = problem.candidates if relaxing else worth_looking_at(problem)
        encoded = Encoded(problem, told)
        answer = _optimum(encoded, blocked, relaxing)
        if answer is None:
            return None, problem
        stack = read(encoded, answer)
        ordered = _ordered(encoded, stack)
        if ordered is not None or len(problem.barred) >= _MOST_BARS:
            return ordered, problem
        problem = replace(problem, barred=problem.barred | {frozenset(stack.loads)})


def _ordered(encoded: Encoded, stack: Stack) -> Stack | None:
    actions = order(
        encoded.modules,
        frozenset(stack.loads),
        encoded.problem.preload,
        frozenset(stack.final),
        dict(stack.replaced),
        _behind(encoded, stack),
    )
    if actions is None:
        return None
    return replace(stack, loads=tuple(name for kind, name in actions if kind == "load"))


def _behind(encoded: Encoded, stack: Stack) -> dict[str, frozenset[str]]:
    """Return for each load those before it, so that what shadows a provider comes first on PATH."""
    brings = encoded.brings
    final = frozenset(stack.final)
    there = [c for c in encoded.problem.candidates if c.module is not None and c.module in final]
    found: dict[str, frozenset[str]] = {}
    for one, other in product(there, there):
        if one.id in stack.effective or other.id not in stack.effective:
            continue
        if not (one.roles | {one.component}) & (other.roles | {other.component}):
            continue
        first = frozenset(name for name in stack.loads if one.module in brings[name])
        for later in stack.loads:
            if other.module in brings[later] and later not in first:
                found[later] = found.get(later, frozenset()) | first
    return found


def _grounded(encoded: Encoded, objective: bool, more: str = "") -> clingo.Control:
    control = clingo.Control([*_OPTIONS, *_costs()], message_limit=0)
    control.load(str(data.ENGINE))
    control.add("base", [], facts(encoded) + more)
    parts: list[tuple[str, list[clingo.Symbol]]] = [("base", [])]
    control.ground([*parts, ("objective", [])] if objective else parts)
    return control


def _costs() -> Iterable[str]:
    return (f"-c{kind}_cost={cost}" for kind, cost in CHANGE_COSTS.items())


def _optimum(
    encoded: Encoded, blocked: Sequence[tuple[Change, ...]], relaxing: bool
) -> Answer | None:
    more = ["relaxing." if relaxing else "", *(_block(encoded, each) for each in blocked)]
    control = _grounded(encoded, objective=True, more="\n".join(more))
    held = unrelaxed(encoded.problem, encoded.switches) if relaxing else encoded.switches
    best: Answer | None = None
    assumptions = [(encoded.switches[name], True) for name in held]
    with control.solve(assumptions=assumptions, yield_=True) as handle:
        for model in handle:
            costs = dict(zip(model.priority, model.cost, strict=True))
            best = Answer(tuple(model.symbols(shown=True)), costs)
    return best


def _block(encoded: Encoded, changes: Sequence[Change]) -> str:
    """Return a constraint against all of *changes* together."""
    return f":- {', '.join(changed(encoded.switches, each) for each in changes)}."
