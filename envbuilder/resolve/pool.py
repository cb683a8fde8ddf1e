"""All candidates of a request, with what rules and the plan ask of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property

from ..knowledge.channels import CHANNEL_ORIGINS
from ..knowledge.conda_order import conda_matches
from ..knowledge.conditions import Value
from ..knowledge.ranges import matches
from ..knowledge.rows import Knowledge, Ranges, Selection, Selector
from ..knowledge.wheels import WheelFacts
from .problem import Candidate, CandidateId


@dataclass(frozen=True)
class Pool:
    """The candidates. ``facts`` and ``homes``: by candidate, of the modules that provide them.

    ``inside``: where in the prefix those lie that are installed there, relative to it. ``wheels``:
    what those of the index contain, as far as it is recorded.
    """

    candidates: tuple[Candidate, ...]
    facts: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    homes: Mapping[str, str] = field(default_factory=dict)
    inside: Mapping[str, str] = field(default_factory=dict)
    wheels: Mapping[str, WheelFacts] = field(default_factory=dict)

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

    @cached_property
    def alike(self) -> Callable[[str], list[list[CandidateId]]]:
        """Return the candidates of a role, those of which the same facts are known together."""
        return cache(self._alike)

    def _alike(self, role: str) -> list[list[CandidateId]]:
        groups: dict[object, list[CandidateId]] = {}
        for each in self.of(role):
            facts = frozenset(self.facts.get(each.id, {}).items())
            groups.setdefault(facts, []).append(each.id)
        return list(groups.values())

    def within(self, role: str, ranges: Ranges) -> frozenset[str]:
        """Return the candidates of a component or virtual in one of the ranges."""
        several = (ranges,) if isinstance(ranges, str) else ranges
        return frozenset(each.id for each in self.of(role) for one in several if fits(each, one))

    def selected(self, role: str, selection: Selection) -> frozenset[str]:
        """Return the candidates that a selection means."""
        if not isinstance(selection, Selector):
            return self.within(role, selection)
        return frozenset(
            each.id
            for each in self.of(role)
            if (not selection.origin or each.origin in selection.origin)
            and fits(each, selection.range)
        )


def roles(knowledge: Knowledge, component: str) -> frozenset[str]:
    """Return what a provider of a component is a provider of: it, and the virtuals it fulfils."""
    known = knowledge.components.get(component)
    return frozenset({component, *(known.fulfils if known else ())})


def fits(candidate: Candidate, constraint: str) -> bool:
    """Whether a candidate's version lies in a range, in the order of its own package world."""
    in_range = conda_matches if candidate.origin in CHANNEL_ORIGINS else matches
    return in_range(candidate.version, constraint)


def describe(candidates: Iterable[Candidate]) -> tuple[str, ...]:
    """Return ``component@version`` of each, sorted, each once."""
    return tuple(sorted({f"{each.component}@{each.version}" for each in candidates}))
