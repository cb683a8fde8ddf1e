"""Which candidates a better one stands for. That answers stay the same is the oracle's to say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from envbuilder.resolve.alike import worth_looking_at
from envbuilder.resolve.engine import solve
from envbuilder.resolve.problem import Candidate, Module, Problem, RemedyOption, Rule, Want


def release(number: int, **more: Any) -> Candidate:
    """Return the candidate numpy@NUMBER of the index; 9 is the newest and has rank 0."""
    name = f"numpy@{number}"
    values = {"component": "numpy", "origin": "pip", "locator": "numpy", "rank": 9 - number}
    return Candidate(id=name, version=str(number), **{**values, **more})


RELEASES = tuple(release(number) for number in range(1, 10))
NAMES = frozenset(each.id for each in RELEASES)
ALL = Problem(candidates=RELEASES, wants=(Want("line:numpy", "numpy", NAMES, 0),))


def kept(problem: Problem) -> list[str]:
    return [each.id for each in worth_looking_at(problem)]


def rule(**more: Any) -> Rule:
    return Rule("NP-001", "NP-001", hard=True, **more)


def some(*numbers: int) -> frozenset[str]:
    return frozenset(f"numpy@{number}" for number in numbers)


def test_the_newest_stands_for_those_that_differ_in_nothing_else() -> None:
    assert kept(ALL) == ["numpy@9"]


@pytest.mark.parametrize(
    "apart",
    [
        {"wants": (*ALL.wants, Want("line:other", "numpy", some(2, 4), 1))},
        {"rules": (rule(slots=(some(2, 4),)),)},
        {"rules": (rule(lacks=(some(2, 4),)),)},
        {"rules": (rule(slots=(NAMES,), remedies=(RemedyOption("r", helps=some(2, 4)),)),)},
        {"rules": (rule(slots=(NAMES,), remedies=(RemedyOption("r", needs=some(2, 4)),)),)},
    ],
    ids=["a line", "a rule", "what a rule lacks", "a remedy's help", "a remedy's need"],
)
def test_those_that_something_asks_for_are_apart(apart: dict[str, Any]) -> None:
    assert kept(replace(ALL, **apart)) == ["numpy@4", "numpy@9"]


@pytest.mark.parametrize(
    "apart",
    [
        {"pythons": frozenset({"python@3.6"})},
        {"origin_cost": 1},
        {"roles": frozenset({"blas"})},
        {"shadowable": True},
        {"component": "numpy-base"},
    ],
    ids=lambda apart: next(iter(apart)),
)
def test_those_that_are_of_another_kind_are_apart(apart: dict[str, Any]) -> None:
    others = tuple(release(number, **apart) for number in (2, 4))
    those = [each for each in RELEASES if each.id not in some(2, 4)]
    assert kept(replace(ALL, candidates=(*those, *others))) == ["numpy@9", "numpy@4"]


def test_pythons_that_packages_fit_differently_are_apart() -> None:
    pythons = tuple(release(n, component="python", origin="system") for n in (1, 2, 3))
    wheel = Candidate("torch@1", "torch", "1", "pip", "torch", 0, pythons=some(1, 2))
    problem = Problem(candidates=(*pythons, wheel))
    assert kept(problem) == ["numpy@2", "numpy@3", "torch@1"]


def test_how_far_from_what_was_asked_tells_releases_apart() -> None:
    want = Want("line:numpy", "numpy", some(8, 9), 0, distance=(("numpy@7", 1), ("numpy@6", 2)))
    assert kept(replace(ALL, wants=(want,))) == ["numpy@5", "numpy@6", "numpy@7", "numpy@9"]


def test_modules_are_all_kept() -> None:
    modules = tuple(Module(f"NumPy/{number}", "NumPy") for number in (1, 2))
    inside = tuple(release(n, origin="module", module=f"NumPy/{n}") for n in (1, 2))
    rest = RELEASES[2:]
    problem = replace(ALL, modules=modules, candidates=(*inside, *rest))
    assert kept(problem) == ["numpy@1", "numpy@2", "numpy@9"]


def test_a_release_that_is_alone_in_being_free_of_a_rule_is_chosen() -> None:
    stack = solve(replace(ALL, rules=(rule(slots=(NAMES - some(3),)),)))
    assert stack is not None
    assert stack.used == (("line:numpy", "numpy@3"),)
