"""Rows of knowledge as rules over the candidates of one request.

A row's condition is evaluated for every set of the recipe's flags that it depends on, and for every
provider whose facts it asks for, so that the solver sees neither conditions nor versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from ..knowledge.ageing import confirmed_releases, is_confirmed
from ..knowledge.conditions import Condition, Lookup, Value
from ..knowledge.matching import selection_words
from ..knowledge.rows import Advisory, Coupling, FlagRule, Knowledge, Remedy, Row, Selection
from .facts import Facts, with_owner
from .pool import Pool
from .problem import FlagCase, RemedyOption, Rule

# Beyond so many flags in one condition only "all kept" is looked at: a closest stack then does not
# offer to drop one of them.
_MOST_FLAGS = 6

# What the GPUs of a site are: nothing to a stack that does not use them.
_GPU_FACTS = frozenset({"gpu", "driver"})


def row_id(name: str) -> str:
    """Return the id of a rule's row: several rules of one id have words behind it."""
    return name.partition(":")[0]


def rule_row(
    name: str, summary: str, fix: str | None, sources: tuple[str, ...], **more: Any
) -> Coupling:
    """Return the row of a rule over facts, which no file has: an error, without a condition."""
    words: dict[str, Any] = {"evidence": "derived", "given": {}, "needs": {}, **more}
    return Coupling.model_construct(
        id=name, severity="error", summary=summary, fix=fix, sources=sources, **words
    )


class GroundRule(NamedTuple):
    """A rule with the row that it stems from.

    ``unknown``: the facts, not stated, on which it depends; () where it holds for certain.
    ``reason``: of the waiver, None where it is not waived. ``beside``: what else must be there, in
    words, of components that were not given. ``silent``: it is about a GPU that is not used. It
    decides between what else is equal, refuses nothing and is not shown. ``confirmed``: of an error
    that counts as a warning, the release for which it was last confirmed.
    """

    rule: Rule
    row: Row
    unknown: tuple[str, ...] = ()
    reason: str | None = None
    beside: tuple[str, ...] = ()
    silent: bool = False
    confirmed: str | None = None

    @property
    def binds(self) -> bool:
        """Whether the solver has to look at it: not what is only told."""
        if self.reason is not None or self.row.severity == "info":
            return False
        return self.sure or (self.row.severity == "error" and self.row.unknown != "info")

    @property
    def sure(self) -> bool:
        return not self.unknown


class _Slot(NamedTuple):
    """Candidates of a role, one of which a row looks for; ``words`` say which."""

    role: str
    words: str
    ids: frozenset[str]


class _Shape(NamedTuple):
    """What a row looks for: slots all filled, lacks all empty. ``mark`` tells shapes apart.

    ``owner``: what the row is about, for rows that say nothing where that is not there.
    ``confirmed``: the release for which the row was last confirmed; all of these are later.
    """

    mark: str
    slots: tuple[_Slot, ...]
    lacks: tuple[_Slot, ...] = ()
    owner: str | None = None
    confirmed: str | None = None


class _Verdict(NamedTuple):
    """When a condition holds: certainly or perhaps, and of which provider the facts were."""

    unknown: tuple[str, ...]
    owners: tuple[frozenset[str], ...]


def ground(
    knowledge: Knowledge,
    pool: Pool,
    facts: Facts,
    allow: Mapping[str, str],
    complete: bool = True,
) -> tuple[GroundRule, ...]:
    """Return the rules of all rows that can come true in this request.

    ``complete``: what the pool has no candidate of is not there; else it is not known, and what a
    row looks for of it is told as ``beside``.
    """
    return tuple(
        rule
        for row in (*knowledge.advisories, *knowledge.couplings, *knowledge.flag_rules)
        if row.replaced_by is None
        for rule in _ground(row, pool, facts, allow, complete)
    )


def _shapes(row: Row, pool: Pool) -> Iterator[_Shape]:
    if isinstance(row, Advisory):
        owner = row.component
        slots = [_Slot(owner, owner, pool.within(owner, row.affected))]
        slots += [_selected(pool, name, which) for name, which in row.beside.items()]
        yield _Shape("", tuple(slots), owner=owner)
    elif isinstance(row, Coupling):
        yield from _of_coupling(row, pool)
    elif isinstance(row, FlagRule):
        slot = _Slot(row.runtime, row.runtime, pool.within(row.runtime, row.range))
        yield _Shape("", (slot,), owner=row.runtime)


def _of_coupling(row: Coupling, pool: Pool) -> Iterator[_Shape]:
    given = [_selected(pool, name, which) for name, which in row.given.items()]
    for name, which in row.needs.items():
        inside = pool.selected(name, which)
        outside = frozenset(each.id for each in pool.of(name)) - inside
        words = f"{name} outside {selection_words(which)}"
        if row.absent == "wrong":
            yield _Shape(name, tuple(given), (_Slot(name, words, inside),))
        else:
            yield _Shape(name, (*given, _Slot(name, words, outside)))


def _selected(pool: Pool, name: str, which: Selection) -> _Slot:
    return _Slot(name, f"{name} {selection_words(which)}", pool.selected(name, which))


def _ground(
    row: Row, pool: Pool, facts: Facts, allow: Mapping[str, str], complete: bool
) -> Iterator[GroundRule]:
    usable = [
        shape
        for every in _shapes(row, pool)
        for shape in _by_confirmation(row, every, pool)
        if _can_come_true(shape, pool, complete)
    ]
    verdicts = _verdicts(row, pool, facts) if usable else {}
    silent = facts.are_for_cpus() and not _GPU_FACTS.isdisjoint(Condition(row.when).names())
    stated = row
    for shape in usable:
        row = stated if shape.confirmed is None else _unconfirmed(stated, shape.confirmed)
        absent = () if complete else tuple(dict.fromkeys(_absent(shape, pool)))
        for n, (verdict, cases) in enumerate(verdicts.items()):
            mark = ":".join(part for part in (row.id, shape.mark, str(n) if n else "") if part)
            rule = Rule(
                key=mark,
                row=row.id,
                hard=row.severity == "error"
                and not silent
                and (not verdict.unknown or row.unknown == "error"),
                slots=(*(s.ids for s in shape.slots if s.words not in absent), *verdict.owners),
                lacks=tuple(lack.ids for lack in shape.lacks),
                lack_of=tuple(lack.role for lack in shape.lacks),
                cases=tuple(cases),
                remedies=tuple(_remedies(row, shape, pool, facts)),
                can_waive=isinstance(row, Advisory) and row.severity == "error",
            )
            confirmed = shape.confirmed if stated.severity == "error" else None
            yield GroundRule(
                rule, row, verdict.unknown, allow.get(row.id), absent, silent, confirmed
            )


def _by_confirmation(row: Row, shape: _Shape, pool: Pool) -> Iterator[_Shape]:
    """Yield the shape of the releases that the row was confirmed for, and those of later ones."""
    later = []
    for name, limit in () if row.holds else confirmed_releases(row).items():
        releases = pool.of(name)
        newer = frozenset(each.id for each in releases if not is_confirmed(each.version, limit))
        if newer:
            apart = _limited(shape, name, newer)
            mark = f"{shape.mark}:after {name} {limit}"
            later.append(apart._replace(mark=mark, confirmed=f"{name} {limit}"))
            shape = _limited(shape, name, frozenset(each.id for each in releases) - newer)
    yield from (shape, *later)


def _limited(shape: _Shape, role: str, ids: frozenset[str]) -> _Shape:
    slots = tuple(
        slot._replace(ids=slot.ids & ids) if slot.role == role else slot for slot in shape.slots
    )
    return shape._replace(slots=slots)


def _unconfirmed(row: Row, confirmed: str) -> Row:
    """Return the row for releases after those that it was confirmed for."""
    was_error = row.severity == "error"
    text = f"{row.summary} ({'error, ' if was_error else ''}last confirmed for {confirmed})"
    severity = "warning" if was_error else row.severity
    return row.model_copy(update={"severity": severity, "summary": text})


def _can_come_true(shape: _Shape, pool: Pool, complete: bool) -> bool:
    if complete:
        return all(slot.ids for slot in shape.slots)
    if shape.owner is not None and not pool.of(shape.owner):
        return False
    there = [slot for slot in (*shape.slots, *shape.lacks) if pool.of(slot.role)]
    return bool(there) and all(slot.ids for slot in there if slot in shape.slots)


def _absent(shape: _Shape, pool: Pool) -> Iterator[str]:
    """Yield in words what a row looks for of components that the pool has nothing of."""
    for slot in (*shape.slots, *shape.lacks):
        if not pool.of(slot.role):
            yield slot.words


def _verdicts(row: Row, pool: Pool, facts: Facts) -> dict[_Verdict, list[FlagCase]]:
    """Return when the condition holds or may hold, each with the flags that must be as they are."""
    condition = Condition(row.when)
    behind = sorted(facts.flags_behind(condition.names()))
    found: dict[_Verdict, list[FlagCase]] = {}
    for kept in _subsets(behind):
        case = FlagCase(kept, frozenset(behind) - kept)
        lookup = facts.without(case.dropped).lookup
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
    for those in pool.alike(owner):
        known = with_owner(lookup, owner, pool.facts.get(those[0], {}))
        if condition.evaluate(known) is not False:
            by_outcome.setdefault(condition.unknown(known), set()).update(those)
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
            yield RemedyOption(remedy.id, helps, _needed(remedy, pool), remedy.proved)


def _helped(remedy: Remedy, shape: _Shape, pool: Pool, facts: Facts) -> frozenset[str] | None:
    """Return the affected candidates that a remedy helps; None: all; empty: none."""
    affected = shape.slots[0].ids if shape.slots else frozenset()
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
