"""What sets of loads end in, found by trying everything: see ``oracle``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, permutations

from envbuilder.resolve.loading import Action, LoadError
from envbuilder.resolve.problem import Assumption, SolverModule, StackProblem
from tests.module_simulator import simulate


@dataclass(frozen=True)
class Loaded:
    """What a set of explicit loads ends in."""

    loads: frozenset[str]
    final: frozenset[str]
    replaced: Mapping[str, str]


@dataclass
class World:
    """The modules of a problem, and what is known of their sets."""

    problem: StackProblem
    orders: dict[frozenset[str], tuple[str, ...] | None] = field(default_factory=dict)

    @cached_property
    def modules(self) -> dict[str, SolverModule]:
        return {module.name: module for module in self.problem.modules}

    @cached_property
    def sets(self) -> list[frozenset[str]]:
        """All sets of loads that hold the preloads and end in one module of each name."""
        others = sorted(frozenset(self.modules) - frozenset(self.problem.preload))
        every = [
            frozenset(chosen) | frozenset(self.problem.preload)
            for size in range(len(others) + 1)
            for chosen in combinations(others, size)
        ]
        return [each for each in every if self.loaded(each) is not None]

    def brought(self, name: str) -> frozenset[str]:
        found: frozenset[str] = frozenset({name})
        while True:
            more = found.union(*(self.modules[each].loads for each in found))
            if more == found:
                return found
            found = more

    def loaded(self, loads: frozenset[str]) -> Loaded | None:
        """Return what is active and replaced at the end; None: some name has no one winner."""
        touched = frozenset().union(*(self.brought(name) for name in loads))
        replaced: dict[str, str] = {}
        for key in {self.modules[name].key for name in touched}:
            same = [name for name in touched if self.modules[name].key == key]
            explicit = [name for name in same if name in loads]
            if len(same) > 1 and len(explicit) != 1:
                return None
            replaced |= {name: explicit[0] for name in same if len(same) > 1 and name not in loads}
        return Loaded(loads, touched - frozenset(replaced), replaced)

    def broken(self, loaded: Loaded) -> frozenset[Assumption]:
        """Return the laws about loading that are broken."""
        active = [self.modules[name] for name in sorted(loaded.final)]
        broken: set[Assumption] = set()
        if any(
            self.modules[old].replaced_as not in self.modules[new].replaces
            for old, new in loaded.replaced.items()
        ):
            broken.add(Assumption("law", "replaces"))
        apart = any(
            set(one.families) & set(other.families)
            or {other.name, other.key} & set(one.conflicts)
            or {one.name, one.key} & set(other.conflicts)
            for one, other in combinations(active, 2)
        )
        touched = loaded.final | frozenset(loaded.replaced)
        orphan = any(
            module.parents and not any(set(each) <= loaded.final for each in module.parents)
            for module in (self.modules[name] for name in touched)
        )
        hidden = any(
            set(alternative) <= loaded.final for module in active for alternative in module.hidden
        )
        if apart or orphan or hidden or not self.ordered(loaded):
            broken.add(Assumption("law", "loading"))
        if len(self.run_time_generations(loaded)) > 1:
            broken.add(Assumption("law", "generations"))
        return frozenset(broken)

    def run_time_generations(self, loaded: Loaded) -> frozenset[str]:
        starts = [name for name in loaded.loads if not self.modules[name].build_only]
        reached = frozenset().union(*(self.brought(name) for name in starts)) & loaded.final
        return frozenset(
            generation for name in reached if (generation := self.modules[name].generation)
        )

    def ordered(self, loaded: Loaded) -> bool:
        return self.an_order(loaded) is not None

    def an_order(self, loaded: Loaded) -> tuple[str, ...] | None:
        """Return the first order of the loads, in text order, that ends as planned."""
        if loaded.loads not in self.orders:
            rest = sorted(loaded.loads - frozenset(self.problem.preload))
            every = ((*self.problem.preload, *each) for each in permutations(rest))
            self.orders[loaded.loads] = next(
                (each for each in every if self.ends_as_planned(loaded, each)), None
            )
        return self.orders[loaded.loads]

    def ends_as_planned(self, loaded: Loaded, loads: Sequence[str]) -> bool:
        """Whether loading in this order ends in what is planned, with and without autoswap."""
        first = tuple(loads[: len(self.problem.preload)])
        if frozenset(loads) != loaded.loads or first != self.problem.preload:
            return False
        actions: list[Action] = []
        try:
            for name in loads:
                there = simulate(self.modules, actions, autoswap=False)
                place_of = sorted(old for old, new in loaded.replaced.items() if new == name)
                actions += [("unload", old) for old in place_of if old in there]
                actions.append(("load", name))
            ends = [simulate(self.modules, actions, autoswap) for autoswap in (True, False)]
        except LoadError:
            return False
        return all(frozenset(end) == loaded.final for end in ends)
