"""What is alike but for its rank: only the best of it can be in an answer.

Of a package's releases most meet the same lines, are met by the same rows of knowledge and work
with the same Pythons; of a site's modules of one name most load the same and are met by the same
rows. Whatever holds with one of them holds with another, at another cost. So of each such group
only those are looked at that may be the cheapest, and of thousands a few remain. Among what modules
load, a module that matters to no other one (a library of its own name) counts by its generation
alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from .problem import Candidate, CandidateId, SolverModule, StackProblem

Vector = tuple[int, ...]
Brought = frozenset[tuple["str | None", bool]]
"""Generation, and whether it is for builds only, of each of some modules."""
T = TypeVar("T")


def keep(problem: StackProblem, relaxing: bool = False) -> StackProblem:
    """Return a problem with those modules and candidates that are worth looking at.

    ``relaxing``: where closest stacks are looked for, what is the nearest to what was asked counts
    as well. Wherever two may change places, the cheaper one is decided by the first of these that
    differs: how far each is from what was asked (only where a want is widened), their ranks, and
    for a module that nothing is used of its place in the text order.
    """
    traits = _Traits(problem, relaxing)
    inside: dict[str, list[Candidate]] = {}
    for each in problem.candidates:
        if each.module is not None:
            inside.setdefault(each.module, []).append(each)
    modules = _with_inert(frozenset(_modules(problem, traits, inside)), problem, traits.inert)
    groups: dict[Hashable, list[Candidate]] = {}
    for each in problem.candidates:
        if each.module is None:
            groups.setdefault(traits.of_candidate(each), []).append(each)
    outside = {
        each.id
        for group in groups.values()
        for each in _least(group, [traits.distances, lambda c: (c.rank,)])
    }
    return replace(
        problem,
        modules=tuple(module for module in problem.modules if module.name in modules),
        candidates=tuple(
            each
            for each in problem.candidates
            if (each.id in outside if each.module is None else each.module in modules)
        ),
    )


def _modules(
    problem: StackProblem, traits: _Traits, inside: Mapping[str, Sequence[Candidate]]
) -> Iterator[str]:
    """Yield the names of the modules that are worth looking at."""
    own = {name: sorted(those, key=lambda c: c.component) for name, those in inside.items()}
    places = {name: n for n, name in enumerate(sorted(m.name for m in problem.modules))}
    named = frozenset(_named(problem))
    groups: dict[Hashable, list[SolverModule]] = {}
    for module in traits.weighty:
        candidates = own.get(module.name, ())
        components = Counter(each.component for each in candidates)
        if module.name in named or any(count > 1 for count in components.values()):
            yield module.name
        else:
            parts = tuple(traits.of_candidate(each) for each in candidates)
            groups.setdefault((traits.of_module(module), parts), []).append(module)

    def distances(module: SolverModule) -> Vector:
        return tuple(n for each in own.get(module.name, ()) for n in traits.distances(each))

    def ranks(module: SolverModule) -> Vector:
        return tuple(each.rank for each in own.get(module.name, ()))

    def place(module: SolverModule) -> Vector:
        return (places[module.name],)

    def of_remedies(module: SolverModule) -> Vector:
        """What only a remedy uses weighs with its module's place."""
        there = own.get(module.name, ())
        return tuple(places[module.name] + c.rank for c in there if c.component in problem.optional)

    for group in groups.values():
        if len(group) == 1:
            yield group[0].name
        else:
            for each in _least(group, [distances, ranks, place, of_remedies]):
                yield each.name


def _with_inert(
    modules: frozenset[str], problem: StackProblem, inert: Mapping[str, Brought]
) -> frozenset[str]:
    """Return the modules and the inert ones that they load, directly or not."""
    loads = {module.name: module.loads for module in problem.modules}
    found = set(modules)
    waiting = [*modules]
    while waiting:
        new = {name for name in loads[waiting.pop()] if name in inert} - found
        found |= new
        waiting += new
    return frozenset(found)


def _inert(problem: StackProblem) -> dict[str, Brought]:
    """Return the modules that matter to no other one, each with the traits of all that it brings.

    Nobody loads such a one explicitly: it provides nothing, replaces nothing and is no parent. What
    it counts for where it is loaded along is its generation.
    """
    keys = Counter(module.key for module in problem.modules)
    matter = {each.module for each in problem.candidates}.union(problem.preload)
    for module in problem.modules:
        matter.update(module.conflicts, *module.parents, *module.hidden)
    found: dict[str, set[tuple[str | None, bool]]] = {
        module.name: {(module.generation, module.build_only)}
        for module in problem.modules
        if keys[module.key] == 1
        and not (module.conflicts or module.families or module.parents or module.hidden)
        and matter.isdisjoint((module.name, module.key))
    }
    loaders: dict[str, list[str]] = {}
    for module in problem.modules:
        for name in module.loads:
            loaders.setdefault(name, []).append(module.name)
    # What loads one that matters does so too.
    waiting = [module.name for module in problem.modules if module.name not in found]
    while waiting:
        above = [name for name in loaders.get(waiting.pop(), ()) if found.pop(name, None)]
        waiting += above
    waiting = [*found]
    while waiting:
        below = waiting.pop()
        for name in loaders.get(below, ()):
            if name in found and not found[below] <= found[name]:
                found[name] |= found[below]
                waiting.append(name)
    return {name: frozenset(brought) for name, brought in found.items()}


def _named(problem: StackProblem) -> Iterator[str]:
    """Yield the modules that others name, or that are loaded in any case."""
    yield from problem.preload
    for module in problem.modules:
        yield from module.loads
        yield from module.conflicts
        for alternative in (*module.parents, *module.hidden):
            yield from alternative


def _least(group: Sequence[T], measures: Iterable[Callable[[T], Vector]]) -> list[T]:
    """Return those of a group that no other one is below, by one of the measures."""
    found: dict[int, T] = {}
    for measure in measures:
        found |= {id(each): each for each in _front(group, measure)}
    return list(found.values())


def _front(group: Sequence[T], measure: Callable[[T], Vector]) -> list[T]:
    """Return those whose numbers are not all at least as great as those of another one."""
    front: list[tuple[Vector, T]] = []
    for vector, each in sorted(((measure(each), each) for each in group), key=lambda one: one[0]):
        if not vector:
            return []
        if not any(all(a <= b for a, b in zip(v, vector, strict=True)) for v, _ in front):
            front.append((vector, each))
    return [each for _, each in front]


class _Traits:
    """What tells modules and candidates apart, but for their ranks and names."""

    def __init__(self, problem: StackProblem, relaxing: bool) -> None:
        self.inert = _inert(problem)
        self.weighty = tuple(each for each in problem.modules if each.name not in self.inert)
        self._sets = _memberships(problem)
        self._distances: dict[CandidateId, dict[int, int]] = {}
        for n, want in enumerate(problem.wants if relaxing else ()):
            for candidate, far in want.distance:
                self._distances.setdefault(candidate, {})[n] = far
        brought = {name for module in problem.modules for name in module.loads}
        self._replaceable = frozenset(
            (module.key, module.replaced_as) for module in problem.modules if module.name in brought
        )

    def of_candidate(self, each: Candidate) -> Hashable:
        return (
            *(each.component, each.roles, each.shadowable, each.origin_cost, each.pythons),
            tuple(self._sets.get(each.id, ())),
            tuple(self._distances.get(each.id, ())),
        )

    def distances(self, each: Candidate) -> Vector:
        """Return how far a candidate is from what each want asks that it is some distance from."""
        return tuple(self._distances.get(each.id, {}).values())

    def of_module(self, module: SolverModule) -> Hashable:
        nothing: Brought = frozenset()
        return (
            *(module.key, module.parents, module.hidden, module.conflicts, module.families),
            tuple(name for name in module.loads if name not in self.inert),
            nothing.union(*(self.inert.get(name, nothing) for name in module.loads)),
            *(module.generation, module.build_only),
            # Of those in whose place it may be loaded, what is brought by another one counts.
            frozenset(a for a in module.replaces if (module.key, a) in self._replaceable),
        )


def _memberships(problem: StackProblem) -> dict[CandidateId, list[int]]:
    """Return for each candidate the sets of the problem that it is in, by their places."""
    found: dict[CandidateId, list[int]] = {}
    for place, those in enumerate(dict.fromkeys(_sets(problem))):
        for each in those:
            found.setdefault(each, []).append(place)
    return found


def _sets(problem: StackProblem) -> Iterator[frozenset[CandidateId]]:
    for each in problem.candidates:
        if each.pythons is not None:
            yield each.pythons
    for want in (*problem.wants, *problem.addable):
        yield want.allowed
    for rule in problem.rules:
        yield from rule.slots
        yield from rule.lacks
        for remedy in rule.remedies:
            yield from (those for those in (remedy.helps, remedy.needs) if those is not None)
