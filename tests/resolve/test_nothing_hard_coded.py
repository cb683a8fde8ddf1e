"""The answer hangs on the data alone: renamed, it is the same renamed; changed, it changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from resolve_fixture import asked, module, plain, renamed

from envbuilder.errors import KnownBadError, NoSolutionError
from envbuilder.model.resolution import Resolution
from envbuilder.resolve.engine import conflict, solve
from envbuilder.resolve.problem_builder import problem_inputs
from envbuilder.resolve.resolver import resolve


def answer(found: Resolution) -> dict[str, Any]:
    return {
        "pins": [f"{p.component}@{p.version} <- {p.origin}:{p.locator}" for p in found.pins],
        "loads": list(found.loads),
        "final": list(found.final),
        "replaced": [f"{each.module} {each.by}" for each in found.replaced],
        "findings": [f"{each.id} {each.status}" for each in found.findings],
        "flags": [build.flags for build in found.builds],
        "python": found.python,
    }


def test_the_stack_of_the_fixture() -> None:
    found = resolve(asked(plain()))
    assert sorted(found.loads) == [
        "CMake/3.12.1-GCCcore-7.3.0",
        "NCCL/2.3.7-fosscuda-2018b",
        "OpenMPI/3.1.4-gcccuda-2018b",
        "TensorFlow/1.14.0-PythonAnaconda-3.6",
    ]
    assert found.loads.index("NCCL/2.3.7-fosscuda-2018b") < found.loads.index(
        "OpenMPI/3.1.4-gcccuda-2018b"
    )
    assert [(r.module, r.by) for r in found.replaced] == [
        ("OpenMPI/3.1.1-gcccuda-2018b", "OpenMPI/3.1.4-gcccuda-2018b")
    ]
    (build,) = found.builds
    assert build.version == "0.18.2"
    assert build.flags["HOROVOD_NCCL_HOME"] == "/sw/NCCL/2.3.7-fosscuda-2018b"
    assert found.python == "/sw/PythonAnaconda/3.6/bin/python3"


def test_all_names_changed_gives_the_same_answer_with_the_names_changed() -> None:
    original = answer(resolve(asked(plain())))
    other = answer(resolve(asked(renamed(plain()))))
    # What the answer is renamed to needs the same context as the documents had.
    whole = {**plain(), "answer": json.loads(json.dumps(original))}
    assert other == renamed(whole)["answer"]
    assert "OpenMPI/" not in json.dumps(other).replace("XOpenMPI/", "")


def test_a_module_less_changes_the_answer() -> None:
    documents = plain()
    documents["modules"] = [
        m for m in documents["modules"] if m["name"] != "OpenMPI/3.1.4-gcccuda-2018b"
    ]
    found = resolve(asked(documents))
    assert not found.replaced
    assert [f"{f.id} {f.status}" for f in found.findings] == ["BAD-2 warning"]
    assert "OpenMPI/3.1.1-gcccuda-2018b" in found.final


@pytest.mark.parametrize(
    ("aware", "version", "status"),
    [(True, "3.1.4", None), (False, "3.1.1", None), (None, "3.1.1", "unknown")],
)
def test_a_fact_flipped_changes_the_answer(
    aware: bool | None, version: str, status: str | None
) -> None:
    documents = plain()
    documents["recipe"]["runtime"]["flags"]["HOROVOD_GPU_ALLREDUCE"] = "MPI"
    # Whatever else speaks for 3.1.4 is taken away, so that the fact alone decides.
    del documents["recipe"]["stack"]["openmpi"]
    documents["recipe"]["stack"]["nccl"] = "==2.3.7"
    documents["knowledge"]["advisories"] = [
        each for each in documents["knowledge"]["advisories"] if each["id"] == "BAD-3"
    ]
    for each in documents["modules"]:
        if each["name"] == "OpenMPI/3.1.1-gcccuda-2018b" and aware is not None:
            each["facts"] = {"cuda_aware": aware}
    found = resolve(asked(documents))
    (mpi,) = [pin for pin in found.pins if pin.component == "openmpi"]
    assert mpi.version == version
    assert [f.status for f in found.findings if f.id == "BAD-3"] == ([status] if status else [])


def test_a_known_bad_module_is_refused_with_its_row_and_place() -> None:
    documents = plain()
    documents["recipe"]["stack"]["openmpi"] = "OpenMPI/3.1.3-gcccuda-2019a"
    with pytest.raises(KnownBadError) as caught:
        resolve(asked(documents))
    (problem,) = caught.value.problems
    assert problem.id == "plan.known-bad"
    assert "BAD-1 (openmpi ==3.1.3): " in problem.message
    assert "source of BAD-1" in problem.message
    assert "(OpenMPI/3.1.4-gcccuda-2018b)" in problem.message
    assert (problem.place and problem.place.line) == 11


def test_a_waiver_lets_it_through_and_shows() -> None:
    documents = plain()
    documents["recipe"]["stack"] |= {"openmpi": "==3.1.3", "nccl": "==2.4.2"}
    documents["recipe"]["allow"] = {"BAD-1": "a test"}
    found = resolve(asked(documents))
    (waived,) = [f for f in found.findings if f.id == "BAD-1"]
    assert (waived.status, waived.reason) == ("waived", "a test")


def test_a_home_written_by_hand_must_be_the_chosen_modules() -> None:
    documents = plain()
    flags = documents["recipe"]["runtime"]["flags"]
    flags["HOROVOD_NCCL_HOME"] = "/sw/NCCL/2.4.2-gcccuda-2019a"
    documents["recipe"]["stack"]["nccl"] = "==2.3.7"
    with pytest.raises(NoSolutionError) as caught:
        resolve(asked(documents))
    message = caught.value.problems[0].message
    assert "HOROVOD_NCCL_HOME=/sw/NCCL/2.4.2-gcccuda-2019a" in message
    assert "demo.yaml:32:5" in message
    assert "nccl ==2.3.7" in message
    assert "demo.yaml:10:3" in message
    assert "without HOROVOD_NCCL_HOME" in message


def test_flags_that_contradict_each_other_are_named_with_their_places() -> None:
    documents = plain()
    documents["recipe"]["runtime"]["flags"]["HOROVOD_WITHOUT_MPI"] = "1"
    problem = asked(documents)
    found = conflict(problem_inputs(problem, strict=False).problem)
    assert tuple(map(str, found)) == (
        "line:horovod",
        "flag:HOROVOD_WITH_MPI",
        "flag:HOROVOD_WITHOUT_MPI",
        "row:FLAG-015",
    )
    with pytest.raises(KnownBadError, match="without HOROVOD_WITH") as caught:
        resolve(problem)
    assert caught.value.id == "plan.known-bad"


def _without(documents: dict[str, Any], assumption: str) -> dict[str, Any]:
    """Take away what an assumption stands for, in the documents."""
    kind, _, name = assumption.partition(":")
    if kind == "line":
        if name == "horovod":
            documents["recipe"]["runtime"] = {}
        else:
            documents["recipe"]["stack"][name] = "*"
    elif kind == "flag":
        del documents["recipe"]["runtime"]["flags"][name]
    elif kind == "row":
        for rows in ("advisories", "couplings", "flag_rules"):
            documents["knowledge"][rows] = [
                each for each in documents["knowledge"][rows] if each["id"] != name
            ]
        if name.startswith("FLAG-HOME"):
            for flag in documents["knowledge"]["flags"].values():
                flag.pop("home_of", None)
                flag.pop("derived", None)
    else:
        pytest.fail(f"no document says {assumption}")
    return documents


CONFLICTS: dict[str, dict[str, Any]] = {
    "known bad": {"stack": {"openmpi": "==3.1.3"}},
    "two MPI flags": {"flags": {"HOROVOD_WITHOUT_MPI": "1"}},
    "home": {
        "stack": {"nccl": "==2.3.7"},
        "flags": {"HOROVOD_NCCL_HOME": "/sw/NCCL/2.4.2-gcccuda-2019a"},
        # Else the NCCL that lies there had a trouble of its own: the Open MPI beside it.
        "modules": [module("OpenMPI/4.0.0-gcccuda-2019a", "gcccuda/2019a")],
    },
    "a version that is not there": {"stack": {"tensorflow": "==2.0.0"}},
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_without_any_one_of_a_conflict_there_is_a_stack(name: str) -> None:
    def documents() -> dict[str, Any]:
        changed = plain()
        changed["recipe"]["stack"] |= CONFLICTS[name].get("stack", {})
        changed["recipe"]["runtime"]["flags"] |= CONFLICTS[name].get("flags", {})
        changed["modules"] += CONFLICTS[name].get("modules", [])
        return changed

    members = conflict(problem_inputs(asked(documents()), strict=False).problem)
    assert members
    for each in map(str, members):
        if each.startswith("law:"):
            continue
        left = _without(documents(), each)
        assert solve(problem_inputs(asked(left), strict=False).problem) is not None, each
