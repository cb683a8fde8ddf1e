"""Which candidates a better one stands for. That answers stay the same is the oracle's to say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from envbuilder.resolve.dominance import keep
from envbuilder.resolve.engine import solve
from envbuilder.resolve.problem import (
    Assumption,
    Candidate,
    RemedyOption,
    Rule,
    SolverModule,
    StackProblem,
    Want,
)


def release(number: int, **more: Any) -> Candidate:
    """Return the candidate numpy@NUMBER of the index; 9 is the newest and has rank 0."""
    name = f"numpy@{number}"
    values = {"component": "numpy", "origin": "pip", "locator": "numpy", "rank": 9 - number}
    return Candidate(id=name, version=str(number), **{**values, **more})


LINE = Assumption("line", "numpy")
RELEASES = tuple(release(number) for number in range(1, 10))
NAMES = frozenset(each.id for each in RELEASES)
ALL = StackProblem(candidates=RELEASES, wants=(Want(LINE, "numpy", NAMES),))


def kept(problem: StackProblem) -> list[str]:
    return [each.id for each in keep(problem).candidates]


def rule(**more: Any) -> Rule:
    return Rule("NP-001", "NP-001", hard=True, **more)


def some(*numbers: int) -> frozenset[str]:
    return frozenset(f"numpy@{number}" for number in numbers)


def test_the_newest_stands_for_those_that_differ_in_nothing_else() -> None:
    assert kept(ALL) == ["numpy@9"]


@pytest.mark.parametrize(
    "apart",
    [
        {"wants": (*ALL.wants, Want(Assumption("line", "other"), "numpy", some(2, 4)))},
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
    problem = StackProblem(candidates=(*pythons, wheel))
    assert kept(problem) == ["numpy@2", "numpy@3", "torch@1"]


def test_of_those_as_far_from_what_was_asked_the_nearest_counts_where_it_is_widened() -> None:
    distance = (("numpy@7", 2), ("numpy@6", 1), ("numpy@5", 3))
    problem = replace(ALL, wants=(Want(LINE, "numpy", some(8, 9), distance=distance),))
    assert kept(problem) == ["numpy@7", "numpy@9"]
    relaxed = keep(problem, relaxing=True).candidates
    # 6 is the nearest, 7 the best where the line is dropped, 4 is at no distance at all.
    assert [each.id for each in relaxed] == ["numpy@4", "numpy@6", "numpy@7", "numpy@9"]


def inside(*numbers: int) -> StackProblem:
    modules = tuple(SolverModule(f"NumPy/{number}", "NumPy") for number in numbers)
    own = tuple(release(n, origin="module", module=f"NumPy/{n}") for n in numbers)
    return replace(ALL, modules=modules, candidates=own)


def test_of_modules_alike_the_newest_is_kept_and_the_first_in_text_order() -> None:
    assert [each.name for each in keep(inside(1, 2, 3, 4)).modules] == ["NumPy/1", "NumPy/4"]


@pytest.mark.parametrize(
    "apart",
    [
        {"loads": ("GCC/1",)},
        {"parents": (("GCC/1",),)},
        {"conflicts": ("GCC",)},
        {"families": ("python",)},
        {"generation": "2018b"},
        {"build_only": True},
    ],
    ids=lambda apart: next(iter(apart)),
)
def test_modules_of_another_kind_are_apart(apart: dict[str, Any]) -> None:
    problem = inside(1, 2, 3, 4)
    modules = [replace(m, **apart) if m.name == "NumPy/3" else m for m in problem.modules]
    problem = replace(problem, modules=(*modules, SolverModule("GCC/1", "GCC")))
    assert [each.name for each in keep(problem).modules if each.key == "NumPy"] == [
        "NumPy/1",
        "NumPy/3",
        "NumPy/4",
    ]


def test_modules_that_others_name_are_kept() -> None:
    problem = inside(1, 2, 3, 4, 5)
    names = ("NumPy/2",), ("NumPy/3",)
    other = SolverModule("SciPy/1", "SciPy", loads=names[0], parents=(names[1],))
    problem = replace(problem, modules=(*problem.modules, other), preload=("NumPy/4",))
    assert len(keep(problem).modules) == 6


def test_of_those_whose_place_another_may_take_only_what_is_brought_tells_modules_apart() -> None:
    problem = inside(1, 2, 3, 4)
    modules = tuple(replace(m, abi=m.name, replaces=frozenset({m.name})) for m in problem.modules)
    problem = replace(problem, modules=modules)
    assert [each.name for each in keep(problem).modules] == ["NumPy/1", "NumPy/4"]
    replacing = (*modules[:2], replace(modules[2], replaces=frozenset({"NumPy/1"})), modules[3])
    loading = SolverModule("SciPy/1", "SciPy", loads=("NumPy/1",))
    problem = replace(problem, modules=(*replacing, loading))
    names = [each.name for each in keep(problem).modules if each.key == "NumPy"]
    assert names == ["NumPy/1", "NumPy/2", "NumPy/3", "NumPy/4"]


def test_a_release_that_is_alone_in_being_free_of_a_rule_is_chosen() -> None:
    stack = solve(replace(ALL, rules=(rule(slots=(NAMES - some(3),)),)))
    assert stack is not None
    assert stack.used == ((LINE, "numpy@3"),)


def nccl(number: int, *loads: str) -> tuple[SolverModule, Candidate]:
    name = f"NCCL/{number}"
    one = Candidate(f"nccl@{number}", "nccl", str(number), "module", name, 9 - number, module=name)
    return SolverModule(name, "NCCL", loads=loads, generation="a"), one


def loading(
    *libraries: SolverModule, more: tuple[SolverModule, ...] = (), **values: Any
) -> list[str]:
    """Return the modules that are looked at of several NCCLs, each with a library of its own."""
    pairs = [nccl(n, library.name) for n, library in enumerate(libraries, start=1)]
    ids = frozenset(candidate.id for _, candidate in pairs)
    problem = StackProblem(
        modules=(*(module for module, _ in pairs), *libraries, *more),
        candidates=tuple(candidate for _, candidate in pairs),
        wants=(Want(Assumption("line", "nccl"), "nccl", ids),),
        **values,
    )
    stack = solve(problem)
    assert stack is not None
    return [module.name for module in keep(problem).modules]


def library(number: int, **more: Any) -> SolverModule:
    return SolverModule(f"lib{number}/1", f"lib{number}", **{"generation": "a", **more})


def test_of_libraries_that_matter_to_nobody_one_stands_for_all() -> None:
    # The first one by its name, the last one by its rank.
    alone = loading(*map(library, (1, 2, 3)))
    assert alone == ["NCCL/1", "NCCL/3", "lib1/1", "lib3/1"]
    deep = [library(n, loads=(f"lib{n + 10}/1",)) for n in (1, 2, 3)]
    found = loading(*deep, more=tuple(map(library, (11, 12, 13))))
    assert found == [*alone, "lib11/1", "lib13/1"]


@pytest.mark.parametrize(
    ("other", "more", "values"),
    [
        (library(2, generation="b"), (), {}),
        (library(2, build_only=True), (), {}),
        (library(2, conflicts=("NCCL",)), (), {}),
        (library(2, families=("lib",)), (), {}),
        (library(2), (SolverModule("lib2/2", "lib2"),), {}),
        (library(2), (SolverModule("other/1", "other", conflicts=("lib2",)),), {}),
        (library(2), (SolverModule("other/1", "other", parents=(("lib2/1",),)),), {}),
        (library(2), (), {"preload": ("lib2/1",)}),
        (library(2, loads=("deep/1",)), (SolverModule("deep/1", "deep", families=("x",)),), {}),
    ],
)
def test_a_library_that_matters_is_looked_at(
    other: SolverModule, more: tuple[SolverModule, ...], values: dict[str, Any]
) -> None:
    assert "NCCL/2" in loading(library(1), other, library(3), more=more, **values)
