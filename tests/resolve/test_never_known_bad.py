"""Whatever is asked: no error row holds for a plan unless it is lifted or waived, and shown.

The rows are evaluated by ``model.matching``, which shares nothing with the resolver's grounding.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envbuilder import data
from envbuilder.documents.load import LoadedDocument, load_site
from envbuilder.documents.site_choice import ChosenSite
from envbuilder.documents.snapshots import load_snapshot
from envbuilder.documents.tree import Pairs
from envbuilder.errors import NoSolutionError, Place
from envbuilder.machine.modules.merge import merged
from envbuilder.model.recipe import Recipe
from envbuilder.model.resolution import Resolution
from envbuilder.resolve import explain
from envbuilder.resolve.engine import solve
from envbuilder.resolve.problem import Stack
from envbuilder.resolve.problem_builder import ProblemInputs, problem_inputs
from envbuilder.resolve.request import Request
from envbuilder.resolve.resolver import resolve
from envbuilder.resolve.verdicts import StackFacts, match
from envbuilder.workflow.entries import entries
from envbuilder.workflow.load import PlanInputs, request
from tests.shipped import read_shipped

pytestmark = pytest.mark.thorough

SITES = ("taurus-ml", "taurus-alpha", "summit")
RANGES = {
    "tensorflow": ["*", "==1.14.*", "<2.3", ">=2"],
    "pytorch": ["*", "<1.8", ">=1.9"],
    "nccl": ["*", ">=2.3.7", "==2.4.2"],
    "openmpi": ["*", "==3.1.3", "<3.1.3", ">=3.1.4", "!=3.1.4"],
    "cudnn": ["*", "<8"],
    "cmake": ["*", ">=3.12", "<3.12"],
}
FLAGS = {
    "HOROVOD_GPU_ALLREDUCE": ["NCCL", "MPI"],
    "HOROVOD_GPU_BROADCAST": ["NCCL", "MPI"],
    "HOROVOD_GPU_OPERATIONS": ["NCCL"],
    "HOROVOD_WITH_MPI": ["1"],
    "HOROVOD_WITHOUT_MPI": ["1"],
    "HOROVOD_WITHOUT_GLOO": ["1"],
    "HOROVOD_NCCL_LINK": ["SHARED", "STATIC"],
}


@pytest.fixture(scope="module", autouse=True)
def refusals_are_short() -> Iterator[None]:
    """What would plan instead takes as long again to find, and is not looked at here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explain, "CLOSEST", 0)
        yield


@cache
def knowledge() -> Any:
    return read_shipped()


@cache
def place(name: str) -> tuple[Any, Any, tuple[Any, ...]]:
    path = data.RECIPES / "sites" / f"{name}.yaml"
    site = load_site(path, knowledge().value, entries())
    snapshot = load_snapshot(path.parent / (site.value.snapshot or ""))
    modules, _ = merged(site.value, snapshot)
    return site, snapshot.model_copy(update={"modules": modules}), modules


@st.composite
def recipes(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(sorted(RANGES)), unique=True, max_size=4))
    stack = {"python": "*", **{name: draw(st.sampled_from(RANGES[name])) for name in names}}
    flags = draw(st.lists(st.sampled_from(sorted(FLAGS)), unique=True, max_size=3))
    runtime: dict[str, Any] = {}
    if draw(st.booleans()):
        version = draw(st.sampled_from(["*", "<0.20", "==0.18.2", ">=0.21", "==0.28.1"]))
        values = {flag: draw(st.sampled_from(FLAGS[flag])) for flag in flags}
        runtime = {"package": "horovod", "version": version, "flags": values}
    return {
        "schema": 1,
        "name": "demo",
        "summary": "A demo",
        "arch": ["ppc64le", "x86_64"],
        "stack": stack,
        "runtime": runtime,
        "uses": draw(st.lists(st.sampled_from(["alltoall", "elastic"]), unique=True)),
        "allow": draw(st.sampled_from([{}, {"OMPI-001": "a test"}])),
    }


def asked(plain: dict[str, Any], site_name: str) -> Request:
    site, snapshot, _ = place(site_name)
    recipe = Recipe.model_validate(plain)
    path = Path("demo.yaml")
    loaded = LoadedDocument(recipe, path, "0" * 64, Pairs(Place(str(path)), ()))
    plan_inputs = PlanInputs(
        recipe=loaded,
        chosen=ChosenSite(site.value, "asked for", site.sha256, site.path),
        arch=site.value.arch[0],
        knowledge=knowledge(),
        snapshot=snapshot,
        snapshot_sha256="0" * 64,
        runtime_source=data.RUNTIME,
    )
    return request(plan_inputs, plan_inputs.knowledge.value)


def stack_of(inputs: ProblemInputs, stack: Stack) -> StackFacts:
    """Return what is there in a stack, and what is known of it."""
    provided = {
        inputs.candidate(name).component: inputs.candidate(name) for name in stack.effective
    }
    components = inputs.request.knowledge.components
    of_providers = {
        f"{owner}.{name}": value
        for component, candidate in provided.items()
        for owner in (component, *components[component].fulfils)
        for name, value in inputs.pool.facts.get(candidate.id, {}).items()
    }
    return StackFacts(
        versions={name: each.version for name, each in provided.items()},
        facts=inputs.facts._replace(stated={**inputs.facts.stated, **of_providers}),
        origins={name: each.origin for name, each in provided.items()},
        complete=True,
    )


@settings(max_examples=50)
@given(plain=recipes(), site=st.sampled_from(SITES))
@pytest.mark.long
def test_no_error_row_holds_for_a_plan(plain: dict[str, Any], site: str) -> None:
    request_ = asked(plain, site)
    with contextlib.suppress(NoSolutionError):
        _check(request_, resolve(request_))


def _check(request_: Request, found: Resolution) -> None:
    # The cut to what the lines allow leaves nothing better out.
    uncut = solve(problem_inputs(request_, strict=False).problem)
    assert uncut is not None
    assert uncut.loads == found.loads
    shown = {each.id: each.status for each in found.findings}
    inputs = problem_inputs(request_, strict=True)
    stack = solve(inputs.problem)
    assert stack is not None
    for each in match(request_.knowledge, stack_of(inputs, stack)):
        assert shown.get(each.row.id) in STATUSES[each.verdict], (each.row.id, each.verdict, shown)


# What a plan says of a row that is asked about the plan's own stack.
STATUSES = {
    "holds": ("warning", "info", "waived"),
    "lifted": ("lifted", "waived", "info"),
    "unknown": ("unknown", "waived"),
}
