"""What every entry of ``runtimes/`` must keep to, a made-up one too."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic import ValidationError

from envbuilder.knowledge.terms import Api
from envbuilder.launching.launchers import LAUNCHERS
from envbuilder.model.plan import Proof, SourceBuild
from envbuilder.model.recipe import Recipe
from envbuilder.model.runtime import FlagMeaning, ProofInputs, all_proofs, frameworks
from envbuilder.model.site import SiteLauncher
from envbuilder.runtimes import RUNTIMES
from envbuilder.workflow.entries import entries
from tests.shipped import read_shipped

KNOWN = read_shipped().value
MPIEXEC = SiteLauncher(kind="hydra", command=("mpiexec",))


def check_traits(name: str) -> None:
    traits = RUNTIMES[name].TRAITS
    assert traits.summary
    assert "\n" not in traits.summary
    assert traits.holder is None or traits.holder in KNOWN.components
    assert traits.launcher is None or traits.launcher in LAUNCHERS
    assert {*traits.apis} <= {*get_args(Api)}
    assert not traits.apis or traits.launcher
    assert traits.gloo_with is None or traits.gloo_with in KNOWN.components
    # Gloo starts without an MPI.
    assert not (traits.gloo_with and LAUNCHERS[traits.launcher or ""].TRAITS.mpi.only)
    assert {*traits.aliases} <= {*RUNTIMES}
    assert traits.bundled == bool(traits.package)
    assert not (traits.bundled and traits.holder)
    virtuals = {role for each in KNOWN.components.values() for role in each.fulfils}
    assert {*traits.needs, *traits.build_needs} <= {*KNOWN.components, *virtuals}
    # What is a component of its own is asked for, built and loaded by that name.
    assert not traits.is_component or name in KNOWN.components
    assert traits.is_component or not (traits.from_module or traits.instrumented)


def check_flags(name: str) -> None:
    """The meaning is pure, total, and the same whatever the order of the flags."""
    runtime = RUNTIMES[name]
    releases = [each.version for each in KNOWN.releases.get(name, ())]
    flags = [flag for flag, known in KNOWN.flags.items() if known.runtime == name]
    for release in (None, *releases):
        unset = runtime.meaning({}, release)
        assert (unset.operations, unset.left_out, unset.cpu_operations) == ({}, frozenset(), None)
        for value in ("", "0", "1", "MPI", "NCCL", "what"):
            every = dict.fromkeys(flags, value)
            means = runtime.meaning(every, release)
            assert means == runtime.meaning(dict(reversed(every.items())), release)
            assert all(isinstance(built, bool) for built in means.parts.values())
            assert value or means._replace(stated=unset.stated) == unset
    assert flags or runtime.meaning({}, None) == FlagMeaning()


def proofs_of(name: str, launcher: SiteLauncher | None = MPIEXEC) -> list[Proof]:
    """Return the proofs of an environment that has just this runtime."""
    traits = RUNTIMES[name].TRAITS
    bindings = RUNTIMES[name].bindings(KNOWN.components)
    # One component for each framework.
    bound = {part.name: component for component, part in bindings.items()}.values()
    stack = {"numpy": "2.0", "mpi4py": "4.0", "python": "3.12.1", **dict.fromkeys(bound, "2.1")}
    builds = []
    if traits.is_component:
        build = SourceBuild(component=name, version="1.0")
        names = frameworks(RUNTIMES, build, stack, KNOWN.components)
        builds.append(build.model_copy(update={"frameworks": names}))
    if traits.holder:
        stack[traits.holder] = "2.1"
    inputs = ProofInputs(stack, KNOWN.components, builds, launcher, lambda _: None, name)
    return list(all_proofs(RUNTIMES, inputs))


def check_proofs(name: str) -> list[Proof]:
    """Return what is proved beside the bundled runtime."""
    found = proofs_of(name)
    assert found == proofs_of(name)
    assert (found[0].api, found[0].transport) == ("numpy", "mpi")
    assert len({(each.api, each.transport) for each in found}) == len(found)
    assert proofs_of(name, launcher=None) == []
    return found[1:]


def check_traces(name: str) -> None:
    runtime = RUNTIMES[name]
    assert runtime.traces("/packages", (), lambda *_: True) is None
    assert runtime.traces("/packages", ("/packages/other/lib.so",), lambda *_: True) is None


def recipe(name: str, **stack: str) -> Recipe:
    return Recipe.model_validate(
        {
            "schema": 1,
            "name": "demo",
            "summary": "A demo",
            "arch": ["x86_64"],
            "stack": {"python": "*", **stack},
            "runtime": {"package": name},
        },
        context=entries(),
    )


def check_recipe(name: str) -> None:
    """A recipe may name it, and must name what it is a part of."""
    holder = RUNTIMES[name].TRAITS.holder
    assert recipe(name, **({holder: "*"} if holder else {})).runtime.package == name
    if holder:
        with pytest.raises(ValidationError, match=holder):
            recipe(name)
