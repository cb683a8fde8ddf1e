"""All stacks of a small stack problem, found by trying everything: see ``oracle``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

from oracle_loads import Loaded, World

from envbuilder.resolve.problem import (
    CHANGE_COSTS,
    LEVELS,
    Assumption,
    Candidate,
    Change,
    RemedyOption,
    Rule,
    Stack,
    StackProblem,
    Want,
)


def price(chosen: frozenset[Change] | tuple[Change, ...]) -> int:
    """Return what changes cost."""
    return sum(CHANGE_COSTS[change.kind] for change in chosen)


@dataclass
class Asked:
    """A problem with what is changed of it, and the laws that do not hold."""

    problem: StackProblem
    lawless: frozenset[Assumption] = frozenset()
    changes: frozenset[Change] = frozenset()
    world: World = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.world = self.world or World(self.problem)

    def is_changed(self, kind: str, of: Assumption) -> bool:
        return any((each.kind, each.of) == (kind, of) for each in self.changes)

    @cached_property
    def candidates(self) -> dict[str, Candidate]:
        return {each.id: each for each in self.problem.candidates}

    @cached_property
    def order(self) -> list[Assumption]:
        """The order in which changes are named: wants, additions, flags, rows."""
        return [
            *(want.ref for want in (*self.problem.wants, *self.problem.addable)),
            *(Assumption("flag", flag) for flag in self.problem.flags),
            *(Assumption("row", row) for row in sorted({rule.row for rule in self.problem.rules})),
        ]

    @cached_property
    def kept(self) -> frozenset[str]:
        """The flags that are kept."""
        return frozenset(
            flag
            for flag in self.problem.flags
            if not self.is_changed("flag", Assumption("flag", flag))
        )

    @cached_property
    def wants(self) -> list[tuple[int, Want, frozenset[str]]]:
        """The wants that are not dropped, and those added: place, want, what meets it."""
        found = []
        for place, want in enumerate(self.problem.wants):
            if self.is_changed("drop", want.ref):
                continue
            more = [k for k, _ in want.distance] if self.is_changed("widen", want.ref) else []
            found.append((place, want, want.allowed | frozenset(more)))
        for place, want in enumerate(self.problem.addable, start=len(self.problem.wants)):
            if self.is_changed("add", want.ref):
                found.append((place, want, want.allowed))
        return found

    def fills(self, candidate: str, role: str) -> bool:
        return role in roles(self.candidates[candidate])


def rule_row(rule: Rule) -> Assumption:
    return Assumption("row", rule.row)


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
class PlanOptions:
    """All that is decided of a stack."""

    loaded: Loaded
    by_want: Mapping[Assumption, str]
    used: frozenset[str]
    effective: frozenset[str]
    violated: Sequence[tuple[Rule, RemedyOption | None]]


def _choices(asked: Asked, loaded: Loaded) -> Iterator[PlanOptions]:
    for by_want in _uses(asked, loaded):
        for more, further in product(_optional(asked, loaded), _further(asked, loaded)):
            used = frozenset(by_want.values()) | more | further
            effective = _effective(asked, loaded, used)
            if not _lawful_use(asked, loaded, by_want, used, effective):
                continue
            for violated in _remedied(asked, effective, used, more):
                yield PlanOptions(loaded, by_want, used, effective, violated)


def _uses(asked: Asked, loaded: Loaded) -> Iterator[dict[Assumption, str]]:
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
        yield {want.ref: k for (_, want, _), k in zip(asked.wants, chosen, strict=True)}


def _further(asked: Asked, loaded: Loaded) -> Iterator[frozenset[str]]:
    """Yield what is used beside, where a virtual that is wanted need not have one provider."""
    roles_wanted = {want.component for _, want, _ in asked.wants}
    given_up = {role for role in roles_wanted if Assumption("provider", role) in asked.lawless}
    beside = [
        k
        for k, each in asked.candidates.items()
        if each.roles & given_up and each.module in (None, *loaded.final)
    ]
    for chosen in product((False, True), repeat=len(beside)):
        yield frozenset(k for k, taken in zip(beside, chosen, strict=True) if taken)


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
    active = _active(asked, loaded, used)
    firm = _firm(active)
    return frozenset(each.id for each in active if not (each.shadowable and roles(each) & firm))


def _active(asked: Asked, loaded: Loaded, used: frozenset[str]) -> list[Candidate]:
    return [
        each
        for each in asked.candidates.values()
        if (each.id in used if each.module is None else each.module in loaded.final)
    ]


def _firm(active: Sequence[Candidate]) -> frozenset[str]:
    return frozenset().union(*(roles(each) for each in active if not each.shadowable))


def _lawful_use(
    asked: Asked,
    loaded: Loaded,
    by_want: Mapping[Assumption, str],
    used: frozenset[str],
    effective: frozenset[str],
) -> bool:
    """Whether what is used goes together and every load has its use."""
    candidates = asked.candidates
    in_use = [candidates[k] for k in used]
    if len({each.component for each in in_use}) < len(in_use):
        return False
    for k in used - effective:
        # It is shadowed, which only matters where its role is to have one provider.
        shadowed = roles(candidates[k]) & _firm(_active(asked, loaded, used))
        if any(Assumption("provider", role) not in asked.lawless for role in shadowed):
            return False
    return (
        _one_provider(asked, effective)
        and _fitting(in_use)
        and all(_has_use(asked, loaded, name, used) for name in loaded.loads)
    )


def _one_provider(asked: Asked, effective: frozenset[str]) -> bool:
    there = [asked.candidates[k] for k in effective]
    return not any(
        Assumption("provider", role) not in asked.lawless and _same(one) != _same(other)
        for one, other in combinations(there, 2)
        for role in roles(one) & roles(other)
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
        waived = asked.is_changed("waive", rule_row(rule))
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


def _stack(asked: Asked, choice: PlanOptions) -> Stack:
    loaded = choice.loaded
    order = (
        asked.world.an_order(loaded) if Assumption("law", "loading") not in asked.lawless else None
    )
    numbers = _costs(asked, choice)
    return Stack(
        loads=order or tuple(sorted(loaded.loads)),
        final=tuple(sorted(loaded.final)),
        replaced=tuple(sorted(loaded.replaced.items())),
        used=tuple((want.ref, choice.by_want[want.ref]) for _, want, _ in asked.wants),
        effective=tuple(sorted(choice.effective)),
        violated=tuple(
            sorted((rule.key, one.id if one else None) for rule, one in choice.violated)
        ),
        costs=tuple((level, numbers[level]) for level in LEVELS),
        changes=tuple(sorted(asked.changes, key=lambda change: asked.order.index(change.of))),
    )


def _costs(asked: Asked, choice: PlanOptions) -> dict[str, tuple[int, ...]]:
    loaded, by_want, modules = choice.loaded, choice.by_want, asked.world.modules
    far = sum(
        dict(want.distance).get(by_want[want.ref], 0)
        for _, want, _ in asked.wants
        if asked.is_changed("widen", want.ref)
    )
    borne = [
        rule
        for rule, remedy in choice.violated
        if remedy is None and not rule.hard and not asked.is_changed("waive", rule_row(rule))
    ]
    generations = {modules[name].generation for name in loaded.final} - {None}
    preferred = asked.problem.preferred
    run_time = asked.world.run_time_generations(loaded)
    strange = run_time - {preferred} if preferred else frozenset()
    chosen = [rule.remedies.index(one) for rule, one in choice.violated if one is not None]
    extra = choice.used - set(by_want.values())
    ranks = {place: asked.candidates[by_want[want.ref]].rank for place, want, _ in asked.wants}
    places = sorted(modules)
    count = len(asked.problem.wants) + len(asked.problem.addable)
    return {
        "changes": (price(asked.changes),),
        "distance": (far,),
        "additions": (sum(_is_addition(asked, choice, name) for name in loaded.loads),),
        "warnings": (len(borne) + len(loaded.replaced),),
        "remedies": (sum(one is not None and not one.proved for _, one in choice.violated),),
        "preference": (len(strange),),
        "generations": (len(generations),),
        "origins": (sum(asked.candidates[k].origin_cost for k in choice.used),),
        "newest": tuple(ranks.get(place, 0) for place in range(count)),
        "loads": (len(loaded.loads),),
        "names": (
            sum(places.index(name) for name in loaded.loads)
            + sum(chosen)
            + sum(asked.candidates[k].rank for k in extra)
            + sum(_place(asked.problem, change.of) for change in asked.changes),
        ),
    }


def _place(problem: StackProblem, of: Assumption) -> int:
    """Return the place of what is changed among all of its kind."""
    every: tuple[list[Assumption], ...] = (
        [want.ref for want in (*problem.wants, *problem.addable)],
        [Assumption("flag", flag) for flag in problem.flags],
        [Assumption("row", row) for row in sorted({rule.row for rule in problem.rules})],
    )
    return next(those.index(of) for those in every if of in those)


def _same(one: Candidate) -> tuple[str, str, bool]:
    return one.component, one.version, one.module is None


def _is_addition(asked: Asked, choice: PlanOptions, name: str) -> bool:
    if name in asked.problem.preload or _is_parent(asked, choice.loaded, name):
        return False
    lines = [want.ref for _, want, _ in asked.wants if want.kind == "line"]
    if any(asked.candidates[choice.by_want[ref]].module == name for ref in lines):
        return False
    by_role = [want.ref for _, want, _ in asked.wants if want.kind == "role"]
    provides = any(asked.candidates[choice.by_want[ref]].module == name for ref in by_role)
    return not provides or name in choice.loaded.replaced.values()
