"""Solving a stack problem with clingo: the best stack, independent conflicts, the closest stacks.

The logic program is ``engine.lp``. Everything here works on the plain values of ``problem``; equal
problems give equal answers.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import clingo

from .. import data
from .decode import DecodedAnswer, changed, read
from .dominance import keep
from .encoding import EncodedProblem, bar, facts, roles
from .loading import order
from .problem import (
    CHANGE_COSTS,
    Assumption,
    Change,
    Problem,
    Stack,
)

# How many sets of loads that end otherwise than planned are barred before giving up. Each bar is
# one more solve of some milliseconds; real trees need none or one.
_MOST_BARS = 60

_OPTIONS = ("-t1", "--seed=1", "--opt-strategy=usc", "--warn=none")

_LOADING = Assumption("law", "loading")


class LimitError(Exception):
    """The solver takes more time or memory than it was given."""


@dataclass(frozen=True)
class Limits:
    """How long the solver may go on from now (seconds of the clock), and up to what memory (MB)."""

    seconds: float = 60.0
    megabytes: float = 2000.0
    start: float = field(default_factory=time.monotonic)

    def check(self) -> None:
        """Raise LimitError where one of them is passed."""
        if time.monotonic() - self.start > self.seconds:
            raise LimitError(f"no answer after {self.seconds:g} s")
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 > self.megabytes:
            raise LimitError(f"no answer within {self.megabytes:g} MB")


def solve(problem: Problem, limits: Limits | None = None) -> Stack | None:
    """Return the best stack, or None where the problem has none. Raises LimitError."""
    return _best(problem, relaxing=False, blocked=(), limits=limits or Limits())[0]


def closest(
    problem: Problem, count: int = 3, limits: Limits | None = None
) -> tuple[tuple[Stack, ...], bool]:
    """Return stacks that work once something asked for is changed, the cheapest change first.

    No stack's changes hold all the changes of an earlier one. Ends after *count* stacks; the other
    value is whether the *limits* (default: 20 s) ended it before it had them all.
    """
    limits = limits or Limits(seconds=20.0)
    found: list[Stack] = []
    while len(found) < count:
        blocked = [each.changes for each in found]
        try:
            stack, problem = _best(problem, relaxing=True, blocked=blocked, limits=limits)
        except LimitError:
            return tuple(found), True
        if stack is None:
            break
        found.append(stack)
        if not stack.changes:
            break
    return tuple(found), False


def conflict(problem: Problem) -> tuple[Assumption, ...]:
    """Return a minimal set of assumptions that cannot hold together; empty: there is a stack."""
    return next(conflicts(problem), ())


def conflicts(problem: Problem, limits: Limits | None = None) -> Iterator[tuple[Assumption, ...]]:
    """Yield minimal sets of assumptions, none of which can hold together: see ``problem``.

    No two sets share more than laws, so each is a conflict of its own; none: there is a stack. A
    conflict of laws alone is named once, and they are left out then. Raises LimitError.
    """
    limits = limits or Limits()
    stack, problem = _best(problem, relaxing=False, blocked=(), limits=limits)
    if stack is not None:
        return
    cores = _Cores(EncodedProblem(problem, keep(problem)), limits)
    left = list(cores.encoded.atoms)
    while True:
        one = cores.minimal(left)
        if one is None:
            return
        yield one
        if not one:
            return
        laws = {each for each in one if each.is_law}
        shared = laws if laws < set(one) else set()
        left = [each for each in left if each not in one or each in shared]


class _Cores:
    """Sets of assumptions that cannot hold together, found in one grounded program."""

    def __init__(self, encoded: EncodedProblem, limits: Limits) -> None:
        self.encoded = encoded
        self._limits = limits
        self._control = _grounded(encoded, objective=False)
        self._bars = 0
        # Literals stay what they are when bars are added; atoms are gone once they can only be
        # false, and to assume one that is gone says nothing about which it was.
        known = {a.symbol: a.literal for a in self._control.symbolic_atoms.by_signature("on", 1)}
        self._literals = {each: known[symbol] for each, symbol in encoded.atoms.items()}
        self._assumed = {literal: each for each, literal in self._literals.items()}
        self._places = {each: n for n, each in enumerate(encoded.atoms)}

    def minimal(self, among: list[Assumption]) -> tuple[Assumption, ...] | None:
        """Return a minimal set of those among *among*; None: they hold together.

        Laws or rows are tried first for leaving out, then fits and what is implied, so that what a
        user wrote is what remains where there is a choice. Of several sets (one without rows, and
        those without any one member of the best so far) the one with fewer things that a user
        wrote, but not without any, is the better reason, and then a law rather than a row. Empty:
        nothing can be, whatever is left out.
        """
        core = self._core(among)
        if core is None:
            return None
        best = self._smaller(core, _ORDERS[0])
        others: list[tuple[list[Assumption], tuple[str, ...]]] = [
            ([each for each in among if each.kind != "row"], _ORDERS[1])
        ]
        others += [([each for each in among if each != one], _ORDERS[0]) for one in best]
        for rest, kinds in others:
            other = self._core(rest)
            if other is not None:
                best = min(best, self._smaller(other, kinds), key=self._weight)
        return best

    def _weight(self, those: Sequence[Assumption]) -> tuple[object, ...]:
        written = sum(_kind(each) in ("line", "flag") for each in those)
        rows = sum(each.kind == "row" for each in those)
        return not written, written, rows, len(those), [self._places[each] for each in those]

    def _smaller(self, core: list[Assumption], kinds: Sequence[str]) -> tuple[Assumption, ...]:
        rank = {kind: n for n, kind in enumerate(kinds)}
        kept = core
        for each in sorted(core, key=lambda one: (rank[_kind(one)], self._places[one])):
            if each in kept:
                smaller = self._core([other for other in kept if other != each])
                kept = kept if smaller is None else smaller
        return tuple(sorted(kept, key=self._places.__getitem__))

    def _core(self, among: list[Assumption]) -> list[Assumption] | None:
        """Return assumptions among these that cannot hold together, or None: they can."""
        while True:
            core, stack = self._solve(among)
            if stack is None:
                return core
            if _LOADING not in among or _ordered(self.encoded, stack) is not None:
                return None
            self._bar(stack)

    def _solve(self, among: list[Assumption]) -> tuple[list[Assumption], Stack | None]:
        literals = [self._literals[each] for each in among]
        found: list[Stack] = []

        def first(model: clingo.Model) -> bool:
            answer = DecodedAnswer(tuple(model.symbols(shown=True)), {})
            found.append(read(self.encoded, answer))
            return False

        core = _run(self._control, literals, first, self._limits)
        return [self._assumed[number] for number in core], found[0] if found else None

    def _bar(self, stack: Stack) -> None:
        """Bar the loads of a stack that has no order, as long as the law of loading holds."""
        self._bars += 1
        part = f"bar{self._bars}"
        self._control.add(part, [], bar(self.encoded, stack.loads))
        self._control.ground([(part, [])])


_ORDERS = (
    ("law", "fit", "implied", "row", "flag", "line"),
    ("row", "fit", "implied", "law", "flag", "line"),
)
"""In which order the kinds of assumptions are tried for leaving out."""


def _kind(each: Assumption) -> str:
    if each.is_law:
        return "law"
    return "line" if each.is_want and each.kind != "implied" else each.kind


def _best(
    problem: Problem, relaxing: bool, blocked: Sequence[tuple[Change, ...]], limits: Limits
) -> tuple[Stack | None, Problem]:
    """Return the best stack whose loads can be ordered, and the problem with what was barred."""
    while True:
        encoded = EncodedProblem(problem, keep(problem, relaxing))
        answer = _optimum(encoded, blocked, relaxing, limits)
        if answer is None:
            return None, problem
        stack = read(encoded, answer)
        ordered = _ordered(encoded, stack)
        if ordered is not None or len(problem.barred) >= _MOST_BARS:
            return ordered, problem
        problem = replace(problem, barred=problem.barred | {frozenset(stack.loads)})


def _ordered(encoded: EncodedProblem, stack: Stack) -> Stack | None:
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


def _behind(encoded: EncodedProblem, stack: Stack) -> dict[str, frozenset[str]]:
    """Return for each load those before it, so that what shadows a provider comes first on PATH."""
    brings = encoded.brings
    final = frozenset(stack.final)
    there = [c for c in encoded.problem.candidates if c.module is not None and c.module in final]
    found: dict[str, frozenset[str]] = {}
    for one, other in product(there, there):
        if one.id in stack.effective or other.id not in stack.effective:
            continue
        if not roles(one) & roles(other):
            continue
        first = frozenset(name for name in stack.loads if one.module in brings[name])
        for later in stack.loads:
            if other.module in brings[later] and later not in first:
                found[later] = found.get(later, frozenset()) | first
    return found


def _grounded(encoded: EncodedProblem, objective: bool, more: str = "") -> clingo.Control:
    control = clingo.Control([*_OPTIONS, *_costs()], message_limit=0)
    control.load(str(data.ENGINE))
    control.add("base", [], facts(encoded) + more)
    parts: list[tuple[str, list[clingo.Symbol]]] = [("base", [])]
    control.ground([*parts, ("objective", [])] if objective else parts)
    return control


def _costs() -> Iterable[str]:
    return (f"-c{kind}_cost={cost}" for kind, cost in CHANGE_COSTS.items())


def _optimum(
    encoded: EncodedProblem,
    blocked: Sequence[tuple[Change, ...]],
    relaxing: bool,
    limits: Limits,
) -> DecodedAnswer | None:
    more = ["relaxing." if relaxing else "", *(_block(encoded, each) for each in blocked)]
    limits.check()
    control = _grounded(encoded, objective=True, more="\n".join(more))
    free = _changeable(encoded.problem) if relaxing else set()
    held = [each for each in encoded.atoms if each not in free]
    best: list[DecodedAnswer] = []

    def better(model: clingo.Model) -> bool:
        costs = dict(zip(model.priority, model.cost, strict=True))
        best[:] = [DecodedAnswer(tuple(model.symbols(shown=True)), costs)]
        return True

    _run(control, [(encoded.atoms[each], True) for each in held], better, limits)
    return best[0] if best else None


# How often a running solver is asked whether it has passed its limits, in seconds.
_SLICE = 0.1


def _run(
    control: clingo.Control,
    assumptions: Sequence[int] | Sequence[tuple[clingo.Symbol, bool]],
    on_model: Callable[[clingo.Model], bool],
    limits: Limits,
) -> list[int]:
    """Solve within the limits; return the core of what cannot hold, empty where it can.

    *on_model* says whether to go on. The solver runs beside and is asked in slices: by itself it
    would not stop before it has an answer.
    """
    with control.solve(assumptions=assumptions, yield_=True, async_=True) as handle:
        while True:
            handle.resume()
            while not handle.wait(_SLICE):
                try:
                    limits.check()
                except LimitError:
                    handle.cancel()
                    raise
            model = handle.model()
            if model is None:
                return list(handle.core())
            if not on_model(model):
                return []


def _changeable(problem: Problem) -> set[Assumption]:
    """Return the assumptions that a closest stack may give up."""
    return {
        *(want.ref for want in problem.wants if want.distance or want.can_drop),
        *(Assumption("flag", flag) for flag in problem.flags),
        *(Assumption("row", rule.row) for rule in problem.rules if rule.can_waive),
    }


def _block(encoded: EncodedProblem, changes: Sequence[Change]) -> str:
    """Return a constraint against all of *changes* together."""
    literals = (changed(encoded, each) for each in changes)
    return f":- {', '.join(literals)}."
