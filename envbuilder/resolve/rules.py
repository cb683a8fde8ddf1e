"""Rows of knowledge as rules over the candidates of one request.

A row's condition is evaluated for every set of the recipe's flags that it hangs on, and for every
provider whose facts it asks for, so that the solver sees neither conditions nor versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ..model.condition import Condition, Lookup, Value
from ..model.knowledge import Advisory, Coupling, FlagRule, Knowledge, Remedy, Row
from .facts import Facts, with_owner
from .pool import Pool
from .problem import FlagCase, RemedyOption, Rule

# Beyond so many flags in one condition only "all kept" is looked at: a closest stack then does not
# offer to drop one of them.
_MOST_FLAGS = 6


@dataclass(frozen=True)
class Grounded:
    """A rule with the row that it stems from.

    ``unknown``: the facts that nobody stated and on which it hangs; () where it holds for certain.
    ``reason``: of the waiver, None where it is not waived.
    """

    rule: Rule
    row: Row
    unknown: tuple[str, ...] = ()
    reason: str | None = None

    @property
    def binds(self) -> bool:
        """Whether the solver has to look at it: not what is only told."""
        severe = self.row.severity == "error" or (self.row.severity == "warning" and self.sure)
        return self.reason is None and severe

    @property
    def sure(self) -> bool:
        return not self.unknown


@dataclass(frozen=True)
class _Shape:
    """What a row looks for: slots all filled, lacks all empty. ``mark`` tells shapes apart."""

    mark: str
    slots: tuple[frozenset[str], ...]
    lacks: tuple[frozenset[str], ...] = ()
    owner: str | None = None


@dataclass(frozen=True)
class _Verdict:
    """When a condition holds: certainly or perhaps, and of which provider the facts were."""

    unknown: tuple[str, ...]
    owners: tuple[frozenset[str], ...]


def ground(
    knowledge: Knowledge, pool: Pool, facts: Facts, allow: Mapping[str, str]
) -> tuple[Grounded, ...]:
    """Return the rules of all rows that can come true in this request."""
    found: list[Grounded] = []
    for advisory in knowledge.advisories:
        found += _ground(advisory, _of_advisory(advisory, pool), pool, facts, allow)
    for coupling in knowledge.couplings:
        found += _ground(coupling, _of_coupling(coupling, pool), pool, facts, allow)
    for rule in knowledge.flag_rules:
        found += _ground(rule, _of_flag_rule(rule, pool), pool, facts, allow)
    return tuple(found)


def _of_advisory(row: Advisory, pool: Pool) -> Iterator[_Shape]:
    slots = [pool.within(row.component, row.affected)]
    slots += [pool.selected(name, which) for name, which in row.beside.items()]
    yield _Shape("", tuple(slots), owner=row.component)


def _of_coupling(row: Coupling, pool: Pool) -> Iterator[_Shape]:
    given = [pool.selected(name, which) for name, which in row.given.items()]
    for name, which in row.needs.items():
        inside = pool.selected(name, which)
        outside = frozenset(each.id for each in pool.of(name)) - inside
        if row.absent == "wrong":
            yield _Shape(name, tuple(given), (inside,))
        else:
            yield _Shape(name, (*given, outside))


def _of_flag_rule(row: FlagRule, pool: Pool) -> Iterator[_Shape]:
    yield _Shape("", (pool.within(row.runtime, row.range),), owner=row.runtime)


def _ground(
    row: Row, shapes: Iterator[_Shape], pool: Pool, facts: Facts, allow: Mapping[str, str]
) -> Iterator[Grounded]:
    usable = [shape for shape in shapes if all(shape.slots)]
    if not usable:
        return
    verdicts = _verdicts(row, pool, facts)
    for shape in usable:
        for n, (verdict, cases) in enumerate(verdicts.items()):
            mark = ":".join(part for part in (row.id, shape.mark, str(n) if n else "") if part)
            rule = Rule(
                key=mark,
                row=row.id,
                hard=row.severity == "error" and (not verdict.unknown or row.unknown == "error"),
                slots=(*shape.slots, *verdict.owners),
                lacks=shape.lacks,
                cases=tuple(cases),
                remedies=tuple(_remedies(row, shape, pool, facts)),
                can_waive=isinstance(row, Advisory) and row.severity == "error",
            )
            yield Grounded(rule, row, verdict.unknown, allow.get(row.id))


def _verdicts(row: Row, pool: Pool, facts: Facts) -> dict[_Verdict, list[FlagCase]]:
    """Return when the condition holds or may hold, each with the flags that must be as they are."""
    condition = Condition(row.when)
    behind = sorted(facts.flags_behind(condition.names()))
    found: dict[_Verdict, list[FlagCase]] = {}
    for kept in _subsets(behind):
        case = FlagCase(kept, frozenset(behind) - kept)
        lookup = facts.with_flags(kept | (frozenset(facts.flags) - frozenset(behind))).lookup
        for verdict in _with_flags(condition, pool, lookup):
            found.setdefault(verdict, []).append(case)
    return found


def _subsets(names: Sequence[str]) -> Iterator[frozenset[str]]:
    yield frozenset(names)
    if len(names) <= _MOST_FLAGS:
        for count in range(len(names) - 1, -1, -1):
            yield from (frozenset(each) for each in combinations(names, count))


def _with_flags(condition: Condition, pool: Pool, lookup: Lookup) -> Iterator[_Verdict]:
    truth = condition.evaluate(lookup)
    if truth is False:
        return
    if truth is True:
        yield _Verdict((), ())
        return
    owner = next(iter(_owners(condition, pool)), None)
    if owner is None:
        yield _Verdict(condition.unknown(lookup), ())
        return
    by_outcome: dict[tuple[str, ...], set[str]] = {}
    for candidate in pool.of(owner):
        known = with_owner(lookup, owner, pool.facts.get(candidate.id, {}))
        if condition.evaluate(known) is not False:
            by_outcome.setdefault(condition.unknown(known), set()).add(candidate.id)
    for unknown, candidates in sorted(by_outcome.items()):
        yield _Verdict(unknown, (frozenset(candidates),))


def _owners(condition: Condition, pool: Pool) -> list[str]:
    """Return the components and virtuals whose facts the condition asks for, sorted."""
    firsts = {name.partition(".")[0] for name in condition.names() if "." in name}
    return sorted(first for first in firsts - {"flags", "ops"} if pool.of(first))


def _remedies(row: Row, shape: _Shape, pool: Pool, facts: Facts) -> Iterator[RemedyOption]:
    for remedy in row.remedies:
        helps = _helped(remedy, shape, pool, facts)
        if helps is None or helps:
            yield RemedyOption(remedy.id, helps, _needed(remedy, pool))


def _helped(remedy: Remedy, shape: _Shape, pool: Pool, facts: Facts) -> frozenset[str] | None:
    """Return the affected candidates that a remedy helps; None: all; empty: none."""
    affected = shape.slots[0] if shape.slots else frozenset()
    limited = affected
    if remedy.affected is not None and shape.owner is not None:
        limited &= pool.within(shape.owner, remedy.affected)
    if remedy.when is not None:
        condition = Condition(remedy.when)
        limited = frozenset(each for each in limited if _helps(condition, each, pool, facts.lookup))
    return None if limited == affected else limited


def _helps(condition: Condition, candidate: str, pool: Pool, lookup: Lookup) -> bool:
    known: Mapping[str, Value] = pool.facts.get(candidate, {})
    mine = pool.by_id[candidate]
    for role in sorted({mine.component, *mine.roles}):
        lookup = with_owner(lookup, role, known)
    return condition.evaluate(lookup) is True


def _needed(remedy: Remedy, pool: Pool) -> frozenset[str] | None:
    """Return the candidates of which one must be there: those of an extra component."""
    if remedy.kind != "component":
        return None
    return pool.within(remedy.name, remedy.value or "*")
