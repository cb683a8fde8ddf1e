"""Solving a stack problem with clingo: the best stack, independent conflicts, the closest stacks.

The logic program is ``engine.lp``. Everything here works on the plain values of ``problem``; equal
problems give equal answers.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from threading import Thread

import clingo

from .. import data
from .decode import changed, read
from .dominance import keep
from .encoding import EncodedProblem, bar, facts, roles
from .loading import order
from .problem import (
    CHANGE_COSTS,
    Assumption,
    Stack,
    StackProblem,
)

_OPTIONS = ("-t1", "--seed=1", "--opt-strategy=usc", "--warn=none")

_LOADING = Assumption("law", "loading")

# How often clingo is asked whether it has passed its limits, in seconds.
_SLICE = 0.1


def _megabytes() -> float:
    """Return the memory of this process (MB).

    Not ``ru_maxrss``: a child begins with that of the process which started it, such as a notebook
    of some gigabytes.
    """
    _, pages, *_ = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(pages) * resource.getpagesize() / 2**20


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
        if _megabytes() > self.megabytes:
            raise LimitError(f"no answer within {self.megabytes:g} MB")


def solve(problem: StackProblem, limits: Limits | None = None) -> Stack | None:
    """Return the best stack, or None where the problem has none. Raises LimitError."""
    program = _Program(problem, limits or Limits())
    return program.solve(program.atoms)[1]


def closest(
    problem: StackProblem, count: int = 3, limits: Limits | None = None
) -> tuple[tuple[Stack, ...], bool]:
    """Return stacks that work once something asked for is changed, the cheapest change first.

    No stack's changes hold all the changes of an earlier one. Ends after *count* stacks; the other
    value is whether the *limits* (default: 20 s) ended it before it had them all.
    """
    found: list[Stack] = []
    free = {
        *(want.ref for want in problem.wants if want.distance or want.can_drop),
        *(Assumption("flag", flag) for flag in problem.flags),
        *(Assumption("row", rule.row) for rule in problem.rules if rule.can_waive),
    }
    limits = limits or Limits(seconds=20.0)
    try:
        while len(found) < count and (not found or found[-1].changes):
            # Anew each time: optimizing again after a constraint was added takes clingo longer.
            program = _Program(problem, limits, relaxing=True)
            for one in found:
                literals = (changed(program.encoded, each) for each in one.changes)
                program.add(f":- {', '.join(literals)}.")
            stack = program.solve([each for each in program.atoms if each not in free])[1]
            if stack is None:
                break
            found.append(stack)
    except LimitError:
        return tuple(found), True
    return tuple(found), False


def conflict(problem: StackProblem) -> tuple[Assumption, ...]:
    """Return a minimal set of assumptions that cannot hold together; empty: there is a stack."""
    return next(conflicts(problem), ())


def conflicts(
    problem: StackProblem, limits: Limits | None = None
) -> Iterator[tuple[Assumption, ...]]:
    """Yield minimal sets of assumptions, none of which can hold together: see ``problem``.

    No two sets share more than laws, so each is a conflict of its own; none: there is a stack. A
    conflict of laws alone is named once, and they are left out then. Raises LimitError.
    """
    program = _Program(problem, limits or Limits(), objective=False)
    left = list(program.atoms)
    while one := _minimal(program, left):
        yield one
        laws = {each for each in one if each.is_law}
        shared = laws if laws < set(one) else set()
        left = [each for each in left if each not in one or each in shared]
    if one is not None:
        yield one


def _minimal(program: _Program, among: Sequence[Assumption]) -> tuple[Assumption, ...] | None:
    """Return a minimal set of those among *among* that cannot hold together; None: they can.

    Laws or rows are tried first for leaving out, then fits and what is implied, so that what a
    user wrote is what remains where there is a choice. Of several sets (one without rows, and
    those without any one member of the best so far) the one with fewer things that a user
    wrote, but not without any, is the better reason, and then a law rather than a row. Empty:
    nothing can be, whatever is left out.
    """
    core, stack = program.solve(among)
    if stack is not None:
        return None
    places = {each: n for n, each in enumerate(program.atoms)}

    def weight(those: Sequence[Assumption]) -> tuple[object, ...]:
        written = sum(_kind(each) in ("line", "flag") for each in those)
        rows = sum(each.kind == "row" for each in those)
        return not written, written, rows, len(those), [places[each] for each in those]

    def smaller(core: list[Assumption], kinds: Sequence[str]) -> tuple[Assumption, ...]:
        kept = core
        for each in sorted(core, key=lambda one: (kinds.index(_kind(one)), places[one])):
            if each in kept:
                less, stack = program.solve([other for other in kept if other != each])
                kept = less if stack is None else kept
        return tuple(sorted(kept, key=places.__getitem__))

    best = smaller(core, _ORDERS[0])
    others = [([each for each in among if each.kind != "row"], _ORDERS[1])]
    others += [([each for each in among if each != one], _ORDERS[0]) for one in best]
    for rest, kinds in others:
        core, stack = program.solve(rest)
        if stack is None:
            best = min(best, smaller(core, kinds), key=weight)
    return best


_ORDERS = (
    ("law", "fit", "implied", "row", "flag", "line"),
    ("row", "fit", "implied", "law", "flag", "line"),
)
"""In which order the kinds of assumptions are tried for leaving out."""


def _kind(each: Assumption) -> str:
    if each.is_law:
        return "law"
    return "line" if each.is_want and each.kind != "implied" else each.kind


class _Program:
    """A problem as one grounded program, which is solved again and again.

    ``relaxing``: where closest stacks are looked for. Raises LimitError, as do its methods.
    """

    def __init__(
        self, problem: StackProblem, limits: Limits, relaxing: bool = False, objective: bool = True
    ) -> None:
        limits.check()
        self.encoded = EncodedProblem(problem, keep(problem, relaxing))
        self.atoms = tuple(self.encoded.atoms)
        self._limits = limits
        self._objective = objective
        self._parts = 0
        costs = (f"-c{kind}_cost={cost}" for kind, cost in CHANGE_COSTS.items())
        self._control = clingo.Control([*_OPTIONS, *costs], message_limit=0)
        self._control.load(str(data.ENGINE))
        self._control.add("base", [], facts(self.encoded) + ("relaxing." if relaxing else ""))
        self._ground("base", *(("objective",) if objective else ()))
        # Literals stay what they are when constraints are added; atoms are gone once they can only
        # be false, and to assume one that is gone says nothing about which it was.
        known = {a.symbol: a.literal for a in self._control.symbolic_atoms.by_signature("on", 1)}
        self._literals = {each: known[symbol] for each, symbol in self.encoded.atoms.items()}
        self._assumed = {literal: each for each, literal in self._literals.items()}

    def add(self, constraint: str) -> None:
        """Add a constraint."""
        self._parts += 1
        part = f"part{self._parts}"
        self._control.add(part, [], constraint)
        self._ground(part)

    def solve(self, among: Sequence[Assumption]) -> tuple[list[Assumption], Stack | None]:
        """Return the best stack where these hold, else some of them that cannot hold together.

        Without an objective it is the first that is found. Loads that end otherwise than planned
        are barred as long as the law of loading holds; real trees need none or one of these bars.
        """
        literals = [self._literals[each] for each in among]
        while True:
            core, stack = self._run(literals)
            if stack is None or _LOADING not in among:
                return [self._assumed[literal] for literal in core], stack
            ordered = _ordered(self.encoded, stack)
            if ordered is not None:
                return [], ordered
            self.add(bar(self.encoded, stack.loads))

    def _ground(self, *parts: str) -> None:
        """Ground parts of the program. clingo does not stop in that: it runs beside."""
        failed: list[BaseException] = []

        def run() -> None:
            try:
                self._control.ground([(part, []) for part in parts])
            except BaseException as error:  # raised by the thread that waits
                failed.append(error)

        worker = Thread(target=run, daemon=True)
        worker.start()
        while worker.is_alive():
            worker.join(_SLICE)
            self._limits.check()
        if failed:
            raise failed[0]

    def _run(self, literals: Sequence[int]) -> tuple[list[int], Stack | None]:
        """Solve; the core is of what cannot hold. By itself clingo stops with its answer only."""
        answer: tuple[list[clingo.Symbol], dict[int, int]] | None = None
        with self._control.solve(assumptions=literals, yield_=True, async_=True) as handle:
            while answer is None or self._objective:
                handle.resume()
                while not handle.wait(_SLICE):
                    try:
                        self._limits.check()
                    except LimitError:
                        handle.cancel()
                        raise
                model = handle.model()
                if model is None:
                    break
                costs = dict(zip(model.priority, model.cost, strict=True))
                answer = [*model.symbols(shown=True)], costs
            core = list(handle.core()) if answer is None else []
        return core, None if answer is None else read(self.encoded, *answer)


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
