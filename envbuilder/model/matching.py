"""What rows of knowledge say of versions that are there together: pure, without a solver.

The same rows that the resolver grounds are asked here about one version of each component, by
``advisories check`` about a few of them, and about an environment that exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from .condition import Condition, Lookup
from .knowledge import Advisory, Coupling, FlagRule, Knowledge, Ranges, Row, Selection, Selector
from .ranges import matches
from .recipe import Severity
from .site import Origin

Verdict = Literal["holds", "unknown", "beside"]
"""``unknown``: that hangs on facts. ``beside``: it would with components that were not given."""


@dataclass(frozen=True)
class Given:
    """What is there: one version of each component, where it comes from (where that is known).

    ``complete``: what is not given is not there.
    """

    versions: Mapping[str, str]
    lookup: Lookup
    origins: Mapping[str, Origin] = field(default_factory=dict)
    complete: bool = False


@dataclass(frozen=True)
class Match:
    """A row that says something. ``about``: component@version; ``open``: what it hangs on."""

    row: Row
    verdict: Verdict
    about: tuple[str, ...]
    open: tuple[str, ...] = ()

    @property
    def severity(self) -> Severity:
        """What it weighs: where facts are not known a warning at most, unless it says otherwise."""
        if self.verdict == "unknown" and self.row.severity == "error":
            return self.row.unknown
        return self.row.severity

    @property
    def bad(self) -> bool:
        return self.verdict != "beside" and self.severity == "error"


def rows(knowledge: Knowledge) -> tuple[Row, ...]:
    """Return every row: advisories, couplings and rules of flags, by their ids."""
    every = (*knowledge.advisories, *knowledge.couplings, *knowledge.flag_rules)
    return tuple(sorted(every, key=lambda row: row.id))


def kind(row: Row) -> str:
    """Return what a row is."""
    if isinstance(row, Advisory):
        return "advisory"
    return "coupling" if isinstance(row, Coupling) else "flag rule"


def subjects(row: Row) -> dict[str, str]:
    """Return the components (and virtuals) that a row speaks of, each with its range in words."""
    if isinstance(row, Advisory):
        return {row.component: _words(row.affected), **_all_words(row.beside)}
    if isinstance(row, Coupling):
        return {**_all_words(row.given), **_all_words(row.needs)}
    return {row.runtime: _words(row.range)} if isinstance(row, FlagRule) else {}


def _all_words(selections: Mapping[str, Selection]) -> dict[str, str]:
    return {name: selection_words(each) for name, each in selections.items()}


def _words(ranges: Ranges) -> str:
    return ranges if isinstance(ranges, str) else " or ".join(ranges)


def selection_words(selection: Selection) -> str:
    """Return which releases are meant: ``>=1.2``, ``* from pip``."""
    if not isinstance(selection, Selector):
        return selection
    return selection.range + (f" from {' or '.join(selection.origin)}" if selection.origin else "")


def match(knowledge: Knowledge, given: Given) -> tuple[Match, ...]:
    """Return the rows that say something, those that hold first, then by weight and id."""
    found = [each for row in rows(knowledge) for each in _matches(row, knowledge, given)]
    weights = {"error": 0, "warning": 1, "info": 2}
    verdicts = {"holds": 0, "unknown": 1, "beside": 2}
    return tuple(
        sorted(found, key=lambda one: (verdicts[one.verdict], weights[one.severity], one.row.id))
    )


@dataclass(frozen=True)
class _Part:
    """One of the things that must be so. ``truth`` None: that hangs on ``open``."""

    truth: bool | None
    about: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    absent: str | None = None


def _matches(row: Row, knowledge: Knowledge, given: Given) -> Iterator[Match]:
    parts = list(_parts(row, knowledge, given))
    if not any(part.about for part in parts):
        return
    condition = Condition(row.when)
    truth = condition.evaluate(given.lookup)
    parts.append(_Part(truth, open=condition.unknown(given.lookup)))
    if any(part.truth is False for part in parts):
        return
    about = tuple(sorted({name for part in parts for name in part.about}))
    absent = [part.absent for part in parts if part.absent]
    if absent:
        yield Match(row, "beside", about, tuple(absent))
        return
    hanging = sorted({name for part in parts if part.truth is None for name in part.open})
    yield Match(row, "unknown" if hanging else "holds", about, tuple(hanging))


def _parts(row: Row, knowledge: Knowledge, given: Given) -> Iterator[_Part]:
    if isinstance(row, Advisory):
        yield _within(row.component, row.affected, knowledge, given)
        for name, which in row.beside.items():
            yield _selected(name, which, knowledge, given)
    elif isinstance(row, Coupling):
        for name, which in row.given.items():
            yield _selected(name, which, knowledge, given)
        yield _any([_needed(row, name, knowledge, given) for name in row.needs])
    elif isinstance(row, FlagRule):
        yield _within(row.runtime, row.range, knowledge, given)


def _within(name: str, ranges: Ranges, knowledge: Knowledge, given: Given) -> _Part:
    each = (ranges,) if isinstance(ranges, str) else ranges
    there = _there(name, knowledge, given)
    if not there:
        # The row is about this one: where it is not given, nothing is said.
        return _Part(truth=False)
    return _any(
        _Part(any(matches(version, one) for one in each), (f"{component}@{version}",))
        for component, version in there
    )


def _selected(name: str, which: Selection, knowledge: Knowledge, given: Given) -> _Part:
    there = _there(name, knowledge, given)
    if not there:
        absent = None if given.complete else f"{name} {selection_words(which)}"
        return _Part(False if given.complete else None, absent=absent)
    return _any(_selects(which, *each, given) for each in there)


def _selects(which: Selection, component: str, version: str, given: Given) -> _Part:
    about = (f"{component}@{version}",)
    if not isinstance(which, Selector):
        return _Part(matches(version, which), about)
    if not matches(version, which.range):
        return _Part(truth=False)
    origin = given.origins.get(component)
    if which.origin and origin is None:
        return _Part(None, about, open=(f"{component}.origin",))
    return _Part(not which.origin or origin in which.origin, about)


def _needed(row: Coupling, name: str, knowledge: Knowledge, given: Given) -> _Part:
    """Return whether what is needed is wrong: there in another release, or not there at all."""
    which = row.needs[name]
    there = _there(name, knowledge, given)
    if not there:
        if not given.complete:
            return _Part(None, absent=f"{name} outside {selection_words(which)}")
        return _Part(row.absent == "wrong")
    fits = _any(_selects(which, *each, given) for each in there)
    about = tuple(f"{component}@{version}" for component, version in there)
    return _Part(None if fits.truth is None else not fits.truth, about, fits.open)


def _any(parts: Iterable[_Part]) -> _Part:
    """Return the part that decides: one that is so, else one that may be, else one that is not."""
    every = list(parts)
    for truth in (True, None, False):
        those = [part for part in every if part.truth is truth]
        # What hangs on a fact tells more than what hangs on a component that was not given.
        for part in sorted(those, key=lambda one: one.absent is not None):
            return part
    return _Part(truth=False)


def _there(name: str, knowledge: Knowledge, given: Given) -> list[tuple[str, str]]:
    """Return the components of that name, or that fulfil it, which are there: (name, version)."""
    names = dict.fromkeys((name, *knowledge.fulfilling(name)))
    return [(each, given.versions[each]) for each in names if each in given.versions]
