"""A brute-force solver of stack problems, straight from the docstring of ``resolve.problem``.

It shares no code with the engine: it tries every set of loads, every choice of candidates and every
choice of remedies. Whether loads can be ordered it finds out by trying all orders in ``simulate``,
which is checked against Lmod itself. Fit for problems of some seven modules.

What the docstring leaves open is read like this:

- A module that another one replaces is not loaded explicitly, not even as a preload.
- Generations are those of modules that are active at the end.
- Besides what wants use, a candidate is used only if its component is optional and a remedy that is
  taken needs a candidate of that component; of each component there is at most one.
- A remedy is taken only for a rule that is violated and whose row is not waived.
- The place of a module in the text order of all names counts from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, permutations, product

from envbuilder.resolve.loading import Action, LoadError, simulate
from envbuilder.resolve.problem import (
    CHANGE_COSTS,
    LEVELS,
    Candidate,
    Change,
    Module,
    Problem,
    RemedyOption,
    Rule,
    Stack,
    Want,
)

Costs = tuple[tuple[str, tuple[int, ...]], ...]


# --- What is asked: of users, and of this module -------------------------------------------------


def best(problem: Problem) -> tuple[Costs, frozenset[Stack]] | None:
    """Return the least costs, by level, and all stacks that have them; None: there is no stack."""
    return _least(Asked(problem))


def solvable(problem: Problem, switched_off: frozenset[str] = frozenset()) -> bool:
    """Whether there is a stack if nothing is said of what these switches name.

    Laws and fits do not hold then. A want, a flag or a row may be there or not: mostly a stack is
    found without it, but the candidate that a want uses may be what a rule lacks, a flag what a
    rule asks for, and a row may have a remedy that adds what another one lacks.
    """
    lawless = _laws(switched_off)
    either = sorted(switched_off & _reinstated(problem))
    return any(
        True
        for size in range(len(either) + 1)
        for back in combinations(either, size)
        for _ in stacks(Asked(without(problem, switched_off.difference(back)), lawless))
    )


def _reinstated(problem: Problem) -> frozenset[str]:
    """Return the switches of what can help to find a stack by being there."""
    flagged = frozenset().union(*(case.dropped for rule in problem.rules for case in rule.cases))
    return frozenset(
        [
            *(want.switch for want in problem.wants if any(rule.lacks for rule in problem.rules)),
            *(f"flag:{flag}" for flag in flagged),
            *(f"row:{rule.row}" for rule in problem.rules if any(r.needs for r in rule.remedies)),
        ]
    )


def closest(problem: Problem, count: int) -> list[tuple[Costs, frozenset[Stack]]]:
    """Return for each set of changes in turn the least costs and the stacks that have them.

    The cheapest first; no set of changes holds all of an earlier one.
    """
    found: list[tuple[Costs, frozenset[Stack]]] = []
    taken: list[frozenset[Change]] = []
    world = World(problem)
    while len(found) < count:
        left = (each for each in changes(problem) if not any(each >= old for old in taken))
        answer = _cheapest(problem, world, left)
        if answer is None:
            break
        found.append(answer)
        # The engine may go on with any of the best.
        if len({each.changes for each in answer[1]}) > 1 or not next(iter(answer[1])).changes:
            break
        taken.append(frozenset(next(iter(answer[1])).changes))
    return found


def mistakes(problem: Problem, stack: Stack) -> list[str]:
    """Return what is wrong with a stack, in words; nothing: it is one, and its costs are right."""
    asked = Asked(problem, changes=frozenset(stack.changes))
    loads = frozenset(stack.loads)
    loaded = asked.world.loaded(loads)
    if loaded is None:
        return ["its loads do not end in one module of each name"]
    said = []
    if loaded.final != frozenset(stack.final) or tuple(sorted(stack.final)) != stack.final:
        said.append(f"ends in {sorted(loaded.final)}")
    if tuple(sorted(loaded.replaced.items())) != stack.replaced:
        said.append(f"replaces {sorted(loaded.replaced.items())}")
    if not asked.world.ends_as_planned(loaded, stack.loads):
        said.append("its loads in this order do not end as planned")
    if not any(each == replace(stack, loads=each.loads) for each in stacks(asked, [loads])):
        said.append("is none of the stacks with its loads")
    return said or _wrong_costs(asked, loads, stack)


def _wrong_costs(asked: Asked, loads: frozenset[str], stack: Stack) -> list[str]:
    right = {
        each.costs for each in stacks(asked, [loads]) if each == replace(stack, loads=each.loads)
    }
    return [] if stack.costs in right else [f"costs {stack.costs}, not one of {right}"]


def cost(costs: Costs) -> tuple[int, ...]:
    """Return costs by level as what is compared."""
    return tuple(number for _, numbers in costs for number in numbers)


# --- Leaving out, and changing -------------------------------------------------------------------


def switches(problem: Problem) -> frozenset[str]:
    """Return the names of all that may be left out."""
    return frozenset(
        [
            *(want.switch for want in problem.wants),
            *(f"row:{rule.row}" for rule in problem.rules),
            *(f"flag:{flag}" for flag in problem.flags),
            *(f"fit:{each.component}" for each in problem.candidates if each.pythons is not None),
            *(f"law:{law}" for law in ("generations", "provider", "replaces", "loading")),
        ]
    )


def without(problem: Problem, off: frozenset[str]) -> Problem:
    """Return the problem without the wants, rules, flags and fits of these switches."""
    return replace(
        problem,
        wants=tuple(want for want in problem.wants if want.switch not in off),
        rules=tuple(rule for rule in problem.rules if f"row:{rule.row}" not in off),
        flags=tuple(flag for flag in problem.flags if f"flag:{flag}" not in off),
        candidates=tuple(
            replace(each, pythons=None) if f"fit:{each.component}" in off else each
            for each in problem.candidates
        ),
    )


def _laws(off: frozenset[str]) -> frozenset[str]:
    return frozenset(each.removeprefix("law:") for each in off if each.startswith("law:"))


def changes(problem: Problem) -> list[frozenset[Change]]:
    """Return all sets of changes that may be proposed, the cheapest first."""
    choices: list[list[Change | None]] = []
    for want in problem.wants:
        widen = [Change("widen", want.switch)] if want.distance else []
        drop = [Change("drop", want.switch)] if want.can_drop else []
        choices.append([None, *widen, *drop])
    choices += [[None, Change("flag", f"flag:{flag}")] for flag in problem.flags]
    rows = sorted({rule.row for rule in problem.rules if rule.can_waive})
    choices += [[None, Change("waive", f"row:{row}")] for row in rows]
    every = [frozenset(each for each in chosen if each) for chosen in product(*choices)]
    return sorted(every, key=price)


def price(chosen: frozenset[Change] | tuple[Change, ...]) -> int:
    return sum(CHANGE_COSTS[change.kind] for change in chosen)


def _least(asked: Asked) -> tuple[Costs, frozenset[Stack]] | None:
    found: list[Stack] = []
    for stack in stacks(asked):
        if not found or cost(stack.costs) < cost(found[0].costs):
            found = [stack]
        elif stack.costs == found[0].costs:
            found.append(stack)
    return (found[0].costs, frozenset(found)) if found else None


def _cheapest(
    problem: Problem, world: World, sets: Iterator[frozenset[Change]]
) -> tuple[Costs, frozenset[Stack]] | None:
    """Return the best among stacks with one of these sets of changes, which come cheapest first."""
    found: tuple[Costs, frozenset[Stack]] | None = None
    for chosen in sets:
        if found and price(chosen) > found[0][0][1][0]:
            break
        answer = _least(Asked(problem, changes=chosen, world=world))
        if answer is None:
            continue
        if found is None or cost(answer[0]) < cost(found[0]):
            found = answer
        elif answer[0] == found[0]:
            found = (found[0], found[1] | answer[1])
    return found


# --- Loading -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loaded:
    """What a set of explicit loads ends in."""

    loads: frozenset[str]
    final: frozenset[str]
    replaced: Mapping[str, str]


@dataclass
class World:
    """The modules of a problem, and what is known of their sets."""

    problem: Problem
    orders: dict[frozenset[str], tuple[str, ...] | None] = field(default_factory=dict)

    @cached_property
    def modules(self) -> dict[str, Module]:
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

    def broken(self, loaded: Loaded) -> frozenset[str]:
        """Return the laws about loading that are broken."""
        active = [self.modules[name] for name in sorted(loaded.final)]
        broken = set()
        if any(old not in self.modules[new].replaces for old, new in loaded.replaced.items()):
            broken.add("replaces")
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
        if apart or orphan or loaded.loads in self.problem.barred or not self.ordered(loaded):
            broken.add("loading")
        if len(self.run_time_generations(loaded)) > 1:
            broken.add("generations")
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


# --- Stacks --------------------------------------------------------------------------------------


@dataclass
class Asked:
    """A problem with what is changed of it, and the laws that do not hold."""

    problem: Problem
    lawless: frozenset[str] = frozenset()
    changes: frozenset[Change] = frozenset()
    world: World = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.world = self.world or World(self.problem)

    def is_changed(self, kind: str, switch: str) -> bool:
        return any((each.kind, each.switch) == (kind, switch) for each in self.changes)

    @cached_property
    def candidates(self) -> dict[str, Candidate]:
        return {each.id: each for each in self.problem.candidates}

    @cached_property
    def order(self) -> list[str]:
        """The order in which changes are named: wants, flags, rows."""
        return [
            *(want.switch for want in self.problem.wants),
            *(f"flag:{flag}" for flag in self.problem.flags),
            *sorted({f"row:{rule.row}" for rule in self.problem.rules}),
        ]

    @cached_property
    def kept(self) -> frozenset[str]:
        """The flags that are kept."""
        return frozenset(
            flag for flag in self.problem.flags if not self.is_changed("flag", f"flag:{flag}")
        )

    @cached_property
    def wants(self) -> list[tuple[int, Want, frozenset[str]]]:
        """The wants that are not dropped: place, want, which candidates meet it."""
        found = []
        for place, want in enumerate(self.problem.wants):
            if self.is_changed("drop", want.switch):
                continue
            more = [k for k, _ in want.distance] if self.is_changed("widen", want.switch) else []
            found.append((place, want, want.allowed | frozenset(more)))
        return found

    def fills(self, candidate: str, role: str) -> bool:
        return role in roles(self.candidates[candidate])


def roles(candidate: Candidate) -> frozenset[str]:
    return candidate.roles | {candidate.component}


def stacks(asked: Asked, sets: Sequence[frozenset[str]] | None = None) -> Iterator[Stack]:
    """Yield every stack, with one order of its loads. *sets*: loads to look at only."""
    world = asked.world
    for loads in world.sets if sets is None else sets:
        loaded = world.loaded(loads)
        if loaded is None:
            continue
        for choice in _choices(asked, loaded):
            # Asking for an order is dear: only for loads that are of use.
            if not world.broken(loaded) <= asked.lawless:
                break
            yield _stack(asked, choice)


@dataclass(frozen=True)
class Choice:
    """All that is decided of a stack."""

    loaded: Loaded
    by_want: Mapping[str, str]
    used: frozenset[str]
    effective: frozenset[str]
    violated: Sequence[tuple[Rule, RemedyOption | None]]


def _choices(asked: Asked, loaded: Loaded) -> Iterator[Choice]:
    for by_want in _uses(asked, loaded):
        for more in _optional(asked, loaded):
            used = frozenset(by_want.values()) | more
            effective = _effective(asked, loaded, used)
            if not used <= effective or not _lawful_use(asked, loaded, by_want, used, effective):
                continue
            for violated in _remedied(asked, effective, used, more):
                yield Choice(loaded, by_want, used, effective, violated)


def _uses(asked: Asked, loaded: Loaded) -> Iterator[dict[str, str]]:
    """Yield what each want uses: among what is there or comes from no module."""
    choices = [
        [
            k
            for k in sorted(allowed)
            if asked.fills(k, want.component)
            and asked.candidates[k].module in (None, *loaded.final)
        ]
        for _, want, allowed in asked.wants
    ]
    for chosen in product(*choices):
        yield {want.switch: k for (_, want, _), k in zip(asked.wants, chosen, strict=True)}


def _optional(asked: Asked, loaded: Loaded) -> Iterator[frozenset[str]]:
    """Yield sets of candidates of optional components, at most one of each."""
    by_component: list[list[str | None]] = [
        [None, *(k for k, each in asked.candidates.items() if each.component == component)]
        for component in sorted(asked.problem.optional)
    ]
    for chosen in product(*by_component):
        yield frozenset(
            k
            for k in chosen
            if k is not None and asked.candidates[k].module in (None, *loaded.final)
        )


def _effective(asked: Asked, loaded: Loaded, used: frozenset[str]) -> frozenset[str]:
    active = [
        each
        for each in asked.candidates.values()
        if (each.id in used if each.module is None else each.module in loaded.final)
    ]
    firm = frozenset().union(*(roles(each) for each in active if not each.shadowable))
    return frozenset(each.id for each in active if not (each.shadowable and roles(each) & firm))


def _lawful_use(
    asked: Asked,
    loaded: Loaded,
    by_want: Mapping[str, str],
    used: frozenset[str],
    effective: frozenset[str],
) -> bool:
    """Whether what is used goes together and every load has its use."""
    candidates = asked.candidates
    in_use = [candidates[k] for k in used]
    if len({each.component for each in in_use}) < len(in_use):
        return False
    for _, want, _ in asked.wants:
        # Each want is met by one candidate.
        if [each.id for each in in_use if want.component in roles(each)] != [by_want[want.switch]]:
            return False
    return (
        _one_provider(asked, effective)
        and _fitting(in_use)
        and all(_has_use(asked, loaded, name, used) for name in loaded.loads)
    )


def _one_provider(asked: Asked, effective: frozenset[str]) -> bool:
    if "provider" in asked.lawless:
        return True
    there = [asked.candidates[k] for k in effective]
    return not any(
        roles(one) & roles(other)
        and (one.component, one.version) != (other.component, other.version)
        for one, other in combinations(there, 2)
    )


def _fitting(in_use: Sequence[Candidate]) -> bool:
    pythons = [each.id for each in in_use if each.component == "python"]
    return all(
        each.pythons is None or python in each.pythons for each in in_use for python in pythons
    )


def _has_use(asked: Asked, loaded: Loaded, name: str, used: frozenset[str]) -> bool:
    return (
        name in asked.problem.preload
        or name in loaded.replaced.values()
        or _is_parent(asked, loaded, name)
        or any(asked.candidates[k].module == name for k in used)
    )


def _is_parent(asked: Asked, loaded: Loaded, name: str) -> bool:
    return any(
        name in alternative
        for active in loaded.final
        for alternative in asked.world.modules[active].parents
    )


def _violated(asked: Asked, rule: Rule, effective: frozenset[str]) -> bool:
    return (
        all(slot & effective for slot in rule.slots)
        and not any(lack & effective for lack in rule.lacks)
        and any(case.kept <= asked.kept and not (case.dropped & asked.kept) for case in rule.cases)
    )


def _remedied(
    asked: Asked, effective: frozenset[str], used: frozenset[str], more: frozenset[str]
) -> Iterator[list[tuple[Rule, RemedyOption | None]]]:
    """Yield each way in which the violated rules may be lifted or borne."""
    violated = [rule for rule in asked.problem.rules if _violated(asked, rule, effective)]
    choices: list[list[RemedyOption | None]] = []
    for rule in violated:
        waived = asked.is_changed("waive", f"row:{rule.row}")
        helping = [] if waived else [each for each in rule.remedies if _helps(each, effective)]
        choices.append([*helping, *([None] if waived or not rule.hard else [])])
    for chosen in product(*choices):
        needed = frozenset().union(*(each.needs or () for each in chosen if each))
        wanted = {asked.candidates[k].component for k in needed if k in asked.candidates}
        if all(asked.candidates[k].component in wanted for k in more):
            yield list(zip(violated, chosen, strict=True))


def _helps(remedy: RemedyOption, effective: frozenset[str]) -> bool:
    return (remedy.helps is None or bool(remedy.helps & effective)) and (
        remedy.needs is None or bool(remedy.needs & effective)
    )


def _stack(asked: Asked, choice: Choice) -> Stack:
    loaded = choice.loaded
    order = asked.world.an_order(loaded) if "loading" not in asked.lawless else None
    numbers = _costs(asked, choice)
    return Stack(
        loads=order or tuple(sorted(loaded.loads)),
        final=tuple(sorted(loaded.final)),
        replaced=tuple(sorted(loaded.replaced.items())),
        used=tuple((want.switch, choice.by_want[want.switch]) for _, want, _ in asked.wants),
        effective=tuple(sorted(choice.effective)),
        violated=tuple(
            sorted((rule.key, one.id if one else None) for rule, one in choice.violated)
        ),
        costs=tuple((level, numbers[level]) for level in LEVELS),
        changes=tuple(sorted(asked.changes, key=lambda change: asked.order.index(change.switch))),
    )


def _costs(asked: Asked, choice: Choice) -> dict[str, tuple[int, ...]]:
    loaded, by_want, modules = choice.loaded, choice.by_want, asked.world.modules
    far = sum(
        dict(want.distance).get(by_want[want.switch], 0)
        for _, want, _ in asked.wants
        if asked.is_changed("widen", want.switch)
    )
    borne = [
        rule
        for rule, remedy in choice.violated
        if remedy is None and not rule.hard and not asked.is_changed("waive", f"row:{rule.row}")
    ]
    generations = {modules[name].generation for name in loaded.final} - {None}
    preferred = asked.problem.preferred
    strange = generations - {preferred} if preferred else set()
    ranks = {want.order: asked.candidates[by_want[want.switch]].rank for _, want, _ in asked.wants}
    places = sorted(modules)
    return {
        "changes": (price(asked.changes),),
        "distance": (far,),
        "additions": (sum(_is_addition(asked, choice, name) for name in loaded.loads),),
        "warnings": (len(borne) + len(loaded.replaced),),
        "remedies": (sum(remedy is not None for _, remedy in choice.violated),),
        "preference": (len(strange),),
        "generations": (len(generations),),
        "origins": (sum(asked.candidates[k].origin_cost for k in choice.used),),
        "newest": tuple(ranks.get(place, 0) for place in range(len(asked.problem.wants))),
        "loads": (len(loaded.loads),),
        "names": (sum(places.index(name) for name in loaded.loads),),
    }


def _is_addition(asked: Asked, choice: Choice, name: str) -> bool:
    if name in asked.problem.preload or _is_parent(asked, choice.loaded, name):
        return False
    lines = [want.switch for _, want, _ in asked.wants if want.kind == "line"]
    if any(asked.candidates[choice.by_want[switch]].module == name for switch in lines):
        return False
    provides = any(asked.candidates[k].module == name for k in choice.used)
    return not provides or name in choice.loaded.replaced.values()
