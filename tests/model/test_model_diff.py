"""The difference of two locks names every decision that is not the same."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from locks_otherwise import at, changed, leaves

from envbuilder.knowledge.artifacts import CondaArchive, GitRevision
from envbuilder.model.diff import Diff, diff
from envbuilder.model.plan import Input, Lock, SourceBuild

sys.path.insert(0, str(Path(__file__).parent.parent / "render"))
from render_cases import CASES

pytestmark = pytest.mark.thorough

SWAP = next(case for case in CASES if case.name == "swap").lock
TREE = GitRevision(url="https://github.com/horovod/horovod.git", tag="v0.18.2", commit="c" * 40)
LOCK = SWAP.model_copy(
    update={
        "plan": SWAP.plan.model_copy(
            update={
                "builds": (
                    SourceBuild(component="horovod", version="0.18.2", flags={"A": "1"}, tree=TREE),
                ),
                "packages": ("pandas>=2", "scipy"),
                "inputs": (
                    Input(kind="recipe", name="allreduce", sha256="a" * 64),
                    Input(kind="knowledge", name="knowledge", sha256="b" * 64),
                ),
            }
        )
    }
)


def compared(one: Lock, other: Lock) -> Diff:
    return diff(one, other, ("one", "other"))


# What has but one value: there is nothing to change.
FIXED = {("schema",), ("plan", "schema"), ("plan", "builds", 0, "tree", "kind")}


@pytest.mark.parametrize(
    "path",
    # None is decided: a file's size, what it needs, and which virtuals a component fulfils.
    [path for path in leaves(LOCK.plain()) if path[-1] not in {"size", "needs", "fulfils"}],
    ids=lambda path: ".".join(map(str, path)),
)
@pytest.mark.sample(40)
def test_whatever_changes_is_told(path: tuple[Any, ...]) -> None:
    others = list(changed(LOCK, path))
    if not others:
        value = at(LOCK.plain(), path)
        assert path in FIXED or (isinstance(value, list) and len(value) == 0), f"{path} untested"
    for other in others:
        told = compared(LOCK, other)
        assert told.differences, f"{path} -> {at(other.plain(), path)}"
        # The name of the prefix and the verdict agree.
        assert told.same == (LOCK.id() == other.id())
        back = compared(other, LOCK)
        assert {(each.name, each.before, each.after) for each in back.differences} == {
            (each.name, each.after, each.before) for each in told.differences
        }


def test_a_lock_and_itself_do_not_differ() -> None:
    told = compared(LOCK, LOCK)
    assert (told.same, told.differences) == (True, ())


def only(told: Diff) -> tuple[str, str, str | None, str | None]:
    (each,) = told.differences
    return each.section, each.name, each.before, each.after


def with_plan(**changes: object) -> Lock:
    return LOCK.model_copy(update={"plan": LOCK.plan.model_copy(update=changes)})


def test_another_version_is_one_difference() -> None:
    pins = LOCK.plan.pins
    other = pins[1].model_copy(update={"version": "2.0.0", "locator": "numpy2", "why": "newer"})
    told = compared(LOCK, with_plan(pins=(pins[0], other, pins[2])))
    assert only(told) == ("components", "numpy", "1.26.4 <- pip:numpy", "2.0.0 <- pip:numpy2")
    told = compared(LOCK, with_plan(pins=pins[:1] + pins[2:]))
    assert only(told) == ("components", "numpy", "1.26.4 <- pip:numpy", None)


def test_a_flag_is_told_beside_the_release() -> None:
    flags = {"A": "0", "B": "1"}
    builds = (SourceBuild(component="horovod", version="0.19.5", flags=flags, tree=TREE),)
    told = compared(LOCK, with_plan(builds=builds))
    assert [(each.name, each.before, each.after) for each in told.differences] == [
        ("horovod", "0.18.2", "0.19.5"),
        ("horovod flags A", "1", "0"),
        ("horovod flags B", None, "1"),
    ]


def test_the_order_of_loads_is_a_decision() -> None:
    modules = LOCK.plan.modules
    turned = modules.model_copy(update={"loads": modules.loads[::-1]})
    section, name, before, after = only(compared(LOCK, with_plan(modules=turned)))
    assert (section, name) == ("modules", "loads (order)")
    assert before == ", ".join(modules.loads)
    assert after == ", ".join(modules.loads[::-1])


def test_inputs_are_told_and_do_not_count() -> None:
    inputs = (LOCK.plan.inputs[0], LOCK.plan.inputs[1].model_copy(update={"sha256": "c" * 64}))
    told = compared(LOCK, with_plan(inputs=inputs))
    assert told.same
    assert only(told)[:2] == ("inputs", "knowledge")


def test_a_plan_has_no_files_to_compare() -> None:
    assert diff(LOCK, LOCK.plan, ("lock", "live")).differences == ()
    fewer = LOCK.model_copy(update={"artifacts": LOCK.artifacts[1:]})
    section, name, before, after = only(compared(LOCK, fewer))
    assert (section, name, after) == ("files", "numpy", None)
    assert before == "numpy-1.26.4-py3-none-any.whl"


def test_a_file_with_another_content_is_told() -> None:
    first, *rest = LOCK.artifacts
    other = first.model_copy(update={"sha256": "d" * 64})
    told = compared(LOCK, LOCK.model_copy(update={"artifacts": (other, *rest)}))
    assert only(told) == ("files", "numpy sha256", first.sha256, "d" * 64)


def test_conda_packages_are_told_by_their_files() -> None:
    def lock(build: str) -> Lock:
        url = f"https://conda.example/linux-64/numpy-1.26.4-{build}.conda"
        package = CondaArchive(
            name="numpy", version="1.26.4", build=build, url=url, sha256="a" * 64
        )
        return LOCK.model_copy(update={"artifacts": (package,)})

    told = only(compared(lock("py312_0"), lock("py312_1")))
    assert told == ("files", "numpy", "numpy-1.26.4-py312_0.conda", "numpy-1.26.4-py312_1.conda")
