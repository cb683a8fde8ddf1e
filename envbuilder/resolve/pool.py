"""All candidates of a request, with what rules and the plan ask of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ..model.condition import Value
from ..model.knowledge import Ranges, Selection, Selector
from ..model.ranges import matches
from .problem import Candidate


@dataclass(frozen=True)
class Pool:
    """The candidates. ``facts`` and ``homes``: by candidate, of the modules that provide them."""

    candidates: tuple[Candidate, ...]
    facts: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    homes: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def by_id(self) -> dict[str, Candidate]:
        return {each.id: each for each in self.candidates}

    @cached_property
    def by_role(self) -> dict[str, tuple[Candidate, ...]]:
        """Return the candidates of each component and of each virtual."""
        found: dict[str, list[Candidate]] = {}
        for each in self.candidates:
            for role in sorted({each.component, *each.roles}):
                found.setdefault(role, []).append(each)
        return {role: tuple(those) for role, those in found.items()}

    def of(self, role: str) -> tuple[Candidate, ...]:
        return self.by_role.get(role, ())

    def within(self, role: str, ranges: Ranges) -> frozenset[str]:
        """Return the candidates of a component or virtual in one of the ranges."""
        return frozenset(each.id for each in self.of(role) if in_ranges(each.version, ranges))

    def selected(self, role: str, selection: Selection) -> frozenset[str]:
        """Return the candidates that a selection means."""
        return frozenset(each.id for each in self.of(role) if selects(selection, each))


def in_ranges(version: str, ranges: Ranges) -> bool:
    """Whether the version lies in the range, or in one of several."""
    each = (ranges,) if isinstance(ranges, str) else ranges
    return any(matches(version, one) for one in each)


def selects(selection: Selection, candidate: Candidate) -> bool:
    """Whether the candidate is one of those that a selection means."""
    if isinstance(selection, Selector):
        fits = not selection.origin or candidate.origin in selection.origin
        return fits and matches(candidate.version, selection.range)
    return matches(candidate.version, selection)


def describe(candidates: Iterable[Candidate]) -> tuple[str, ...]:
    """Return ``component@version`` of each, sorted, each once."""
    return tuple(sorted({f"{each.component}@{each.version}" for each in candidates}))
