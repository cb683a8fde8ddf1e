"""A brute-force solver of stack problems, straight from the docstring of ``resolve.problem``.

It shares no code with the engine: it tries every set of loads (``oracle_loads``), every choice of
candidates and every choice of remedies (``oracle_stacks``). Whether loads can be ordered it finds
out by trying all orders in ``simulate``, which is checked against Lmod itself. Fit for problems of
some seven modules.

What the docstring leaves open is read like this:

- A module that another one replaces is not loaded explicitly, not even as a preload.
- Generations are those of modules that are active at the end.
- Besides what wants use, a candidate is used only if its component is optional and a remedy that is
  taken needs a candidate of that component; of each component there is at most one.
- A remedy is taken only for a rule that is violated and whose row is not waived.
- The place of a module in the text order of all names counts from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Literal

from oracle_loads import World
from oracle_stacks import Asked, price, roles, rule_row, stacks

from envbuilder.resolve.problem import (
    LAWS,
    Assumption,
    Change,
    Stack,
    StackProblem,
)

Costs = tuple[tuple[str, tuple[int, ...]], ...]


# --- What is asked: of users, and of this module -------------------------------------------------


def best(problem: StackProblem) -> tuple[Costs, frozenset[Stack]] | None:
    """Return the least costs, by level, and all stacks that have them; None: there is no stack."""
    return _least(Asked(problem))


def solvable(problem: StackProblem, given_up: frozenset[Assumption] = frozenset()) -> bool:
    """Whether there is a stack where these assumptions are given up: each may hold or not.

    Laws and fits do not hold then. A want, a flag or a row may hold or not: mostly a stack is found
    without it, but what a want uses may shadow another candidate, be what a rule lacks or a remedy
    needs, or give a load its use; a flag may be what a rule asks for, and a row may have a remedy
    that adds what another one lacks. A want may also be met by any other candidate of its
    component, or be thought to be met: then no rule lacks its component.
    """
    lawless = frozenset(each for each in given_up if each.is_law)
    either = sorted(given_up & _reinstated(problem), key=str)
    return any(
        True
        for chosen in product(*(_states(problem, each) for each in either))
        for _ in stacks(
            Asked(_in_states(problem, given_up, dict(zip(either, chosen, strict=True))), lawless)
        )
    )


State = Literal["holds", "gone", "wide", "supposed"]


def _states(problem: StackProblem, of: Assumption) -> tuple[State, ...]:
    if not of.is_want:
        return "gone", "holds"
    role = next(want.component for want in problem.wants if want.ref == of)
    lacked = any(role in rule.lack_of for rule in problem.rules)
    # "Wide" holds whatever "holds" does.
    return ("gone", "wide", "supposed") if lacked else ("gone", "wide")


def _in_states(
    problem: StackProblem, given_up: frozenset[Assumption], states: Mapping[Assumption, State]
) -> StackProblem:
    """Return the problem where what is given up is as its state says; gone where it has none."""
    there = {each for each, state in states.items() if state in ("holds", "wide")}
    kept = without(problem, given_up - there)
    everything = frozenset(each.id for each in problem.candidates)
    supposed = {want.component for want in problem.wants if states.get(want.ref) == "supposed"}
    return replace(
        kept,
        wants=tuple(
            replace(want, allowed=everything) if states.get(want.ref) == "wide" else want
            for want in kept.wants
        ),
        rules=tuple(rule for rule in kept.rules if not set(rule.lack_of) & supposed),
    )


def _reinstated(problem: StackProblem) -> frozenset[Assumption]:
    """Return the assumptions that can help to find a stack by being there."""
    # A flag may also be what violates a rule whose remedy adds something.
    flagged = frozenset().union(
        *(case.dropped for rule in problem.rules for case in rule.cases),
        *(
            case.kept
            for rule in problem.rules
            if any(remedy.needs for remedy in rule.remedies)
            for case in rule.cases
        ),
    )
    return frozenset(
        [
            *(want.ref for want in problem.wants),
            *(Assumption("flag", flag) for flag in flagged if flag in problem.flags),
            *(
                Assumption("row", rule.row)
                for rule in problem.rules
                if any(r.needs for r in rule.remedies)
            ),
        ]
    )


def closest(problem: StackProblem, count: int) -> list[tuple[Costs, frozenset[Stack]]]:
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


def mistakes(problem: StackProblem, stack: Stack) -> list[str]:
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


def assumptions(problem: StackProblem) -> frozenset[Assumption]:
    """Return all that may be given up."""
    return frozenset(
        [
            *(want.ref for want in problem.wants),
            *(rule_row(rule) for rule in problem.rules),
            *(Assumption("flag", flag) for flag in problem.flags),
            *(
                Assumption("fit", each.component)
                for each in problem.candidates
                if each.pythons is not None
            ),
            *(Assumption("provider", role) for each in problem.candidates for role in roles(each)),
            *(Assumption("law", law) for law in LAWS),
        ]
    )


def without(problem: StackProblem, off: frozenset[Assumption]) -> StackProblem:
    """Return the problem without these wants, rules, flags and fits."""
    return replace(
        problem,
        wants=tuple(want for want in problem.wants if want.ref not in off),
        rules=tuple(rule for rule in problem.rules if rule_row(rule) not in off),
        flags=tuple(flag for flag in problem.flags if Assumption("flag", flag) not in off),
        candidates=tuple(
            each._replace(pythons=None) if Assumption("fit", each.component) in off else each
            for each in problem.candidates
        ),
    )


def changes(problem: StackProblem) -> list[frozenset[Change]]:
    """Return all sets of changes that may be proposed, the cheapest first."""
    choices: list[list[Change | None]] = []
    for want in problem.wants:
        widen = [Change("widen", want.ref)] if want.distance else []
        drop = [Change("drop", want.ref)] if want.can_drop else []
        choices.append([None, *widen, *drop])
    choices += [[None, Change("add", want.ref)] for want in problem.addable]
    choices += [[None, Change("flag", Assumption("flag", flag))] for flag in problem.flags]
    rows = sorted({rule.row for rule in problem.rules if rule.can_waive})
    choices += [[None, Change("waive", Assumption("row", row))] for row in rows]
    every = [frozenset(each for each in chosen if each) for chosen in product(*choices)]
    return sorted(every, key=price)


def _least(asked: Asked) -> tuple[Costs, frozenset[Stack]] | None:
    found: list[Stack] = []
    for stack in stacks(asked):
        if not found or cost(stack.costs) < cost(found[0].costs):
            found = [stack]
        elif stack.costs == found[0].costs:
            found.append(stack)
    return (found[0].costs, frozenset(found)) if found else None


def _cheapest(
    problem: StackProblem, world: World, sets: Iterator[frozenset[Change]]
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
