"""Rows of knowledge in words: what kind a row is, and which components it speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from .rows import Advisory, Coupling, FlagRule, Knowledge, Ranges, Row, Selection, Selector

Verdict = Literal["holds", "lifted", "unknown", "beside"]
"""``lifted``: by a remedy. ``unknown``: that depends on facts. ``beside``: it would hold with
components that were not given."""


def rows(knowledge: Knowledge) -> tuple[Row, ...]:
    """Return every row: advisories, couplings and rules of flags, by their ids."""
    every = (*knowledge.advisories, *knowledge.couplings, *knowledge.flag_rules)
    return tuple(sorted(every, key=lambda row: row.id))


def kind(row: Row) -> str:
    """Return what a row is."""
    if isinstance(row, Advisory):
        return "advisory"
    if isinstance(row, Coupling):
        return "coupling"
    return "flag rule" if isinstance(row, FlagRule) else "rule"


def subjects(row: Row) -> dict[str, str]:
    """Return the components (and virtuals) that a row speaks of, each with its range in words."""
    if isinstance(row, Advisory):
        return {row.component: _words(row.affected), **_all_words(row.beside)}
    if isinstance(row, Coupling):
        return {**_all_words(row.given), **_all_words(row.needs)}
    return {row.runtime: _words(row.range)} if isinstance(row, FlagRule) else {}


def ranges(row: Row) -> dict[str, Ranges]:
    """Return the components that a row speaks of, each with its ranges; its own one last."""
    chosen: dict[str, Selection] = {}
    own: dict[str, Ranges] = {}
    if isinstance(row, Advisory):
        chosen, own = row.beside, {row.component: row.affected}
    elif isinstance(row, Coupling):
        chosen = {**row.needs, **row.given}
    elif isinstance(row, FlagRule):
        own = {row.runtime: row.range}
    return {n: one.range if isinstance(one, Selector) else one for n, one in chosen.items()} | own


def _all_words(selections: Mapping[str, Selection]) -> dict[str, str]:
    return {name: selection_words(each) for name, each in selections.items()}


def _words(ranges: Ranges) -> str:
    return ranges if isinstance(ranges, str) else " or ".join(ranges)


def selection_words(selection: Selection) -> str:
    """Return which releases are meant: ``>=1.2``, ``* from pip``."""
    if not isinstance(selection, Selector):
        return selection
    return selection.range + (f" from {' or '.join(selection.origin)}" if selection.origin else "")
