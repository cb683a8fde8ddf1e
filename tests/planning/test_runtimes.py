"""Which proofs a plan asks for, by the runtime that the recipe names."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from envbuilder.knowledge.terms import Origin
from envbuilder.model.plan import Pin, SourceBuild
from envbuilder.model.recipe import Recipe
from envbuilder.model.runtime import ProofInputs, all_proofs, frameworks
from envbuilder.model.site import SiteLauncher
from envbuilder.runtimes import RUNTIMES
from envbuilder.workflow.entries import api_launcher, entries
from tests.shipped import read_shipped

KNOWLEDGE = read_shipped().value

SRUN = SiteLauncher(kind="srun", command=("srun",))
HYDRA = SiteLauncher(kind="hydra", command=("mpiexec",))
MPI = ("numpy", "mpi", "srun")


def recipe(stack: dict[str, str], **runtime: Any) -> Recipe:
    return Recipe.model_validate(
        {
            "schema": 1,
            "name": "demo",
            "summary": "A demo",
            "arch": ["x86_64"],
            "stack": {"python": "*", **stack},
            "runtime": runtime,
        },
        context=entries(),
    )


def told(
    wanted: Recipe,
    *components: str,
    horovod: Origin | None = None,
    flags: dict[str, str] | None = None,
    launcher: SiteLauncher = SRUN,
    version: str = "2.0",
    python: str = "3.9.1",
) -> list[tuple[str, str, str]]:
    """Return the proofs of these components, as (api, transport, launcher)."""
    names = [*components, *(["horovod"] if horovod else [])]
    pins = [
        Pin(component=name, version=version, origin=horovod or "pip", locator=name, why="w")
        for name in names
    ]
    pins.append(Pin(component="python", version=python, origin="system", locator="p", why="w"))
    versions = {pin.component: pin.version for pin in pins}
    builds = []
    if horovod:
        given = wanted.runtime.flags if flags is None else flags
        build = SourceBuild(component="horovod", version="1.0", flags=given)
        parts = frameworks(RUNTIMES, build, versions, KNOWLEDGE.components)
        builds.append(build.model_copy(update={"frameworks": parts}))
    inputs = ProofInputs(
        versions,
        KNOWLEDGE.components,
        builds,
        launcher,
        api_launcher if launcher is HYDRA else lambda _: None,
        wanted.runtime.package,
        wanted.runtime.aliases,
        ("nccl",) if "nccl" in versions else ("gloo",),
    )
    found = all_proofs(RUNTIMES, inputs)
    return [(each.api, each.transport, each.launcher.kind) for each in found]


def test_horovod_of_a_module_is_proved_like_one_that_is_built() -> None:
    flags = {"HOROVOD_GPU_ALLREDUCE": "NCCL"}
    stack = {"tensorflow": "*"}
    built = recipe(stack, package="horovod", flags=flags)
    ready = recipe(stack, package="horovod", origin="module", flags=flags)
    expected = [MPI, ("horovod.tensorflow", "nccl", "srun")]
    assert told(built, "tensorflow", horovod="build", flags=flags) == expected
    assert told(ready, "tensorflow", horovod="module") == expected


def test_of_a_module_whose_flags_nobody_states_mpi_is_expected() -> None:
    ready = recipe({"pytorch": "*"}, package="horovod", origin="module")
    assert told(ready, "pytorch", horovod="module")[1:] == [("horovod.torch", "mpi", "srun")]


def test_a_framework_that_only_comes_along_is_not_proved() -> None:
    ready = recipe({"tensorflow": "*"}, package="horovod", origin="module")
    apis = [api for api, _, _ in told(ready, "tensorflow", horovod="module")]
    assert "horovod.torch" not in apis


@pytest.mark.parametrize(
    ("components", "launcher", "expected"),
    [
        (("pytorch",), SRUN, ("torch.distributed", "gloo", "srun")),
        (("pytorch", "nccl"), SRUN, ("torch.distributed", "nccl", "srun")),
        (("pytorch",), HYDRA, ("torch.distributed", "gloo", "torchrun")),
        (("pytorch", "nccl"), HYDRA, ("torch.distributed", "nccl", "torchrun")),
    ],
)
def test_torch_distributed_is_proved_under_any_launcher(
    components: tuple[str, ...], launcher: SiteLauncher, expected: tuple[str, str, str]
) -> None:
    wanted = recipe({"pytorch": "*"}, package="torch-distributed")
    assert told(wanted, *components, launcher=launcher)[1:] == [expected]


@pytest.mark.parametrize(
    ("version", "python", "starts"),
    [
        ("1.3.1", "3.7.4", "hydra"),
        ("1.10.0", "3.9.1", "torchrun"),
        ("1.13.1", "3.10.8", "torchrun"),
        ("1.13.1", "3.11.2", "hydra"),
        ("2.0.0", "3.11.2", "torchrun"),
    ],
)
def test_where_no_torchrun_works_mpis_launcher_starts_the_ranks(
    version: str, python: str, starts: str
) -> None:
    wanted = recipe({"pytorch": "*"})
    found = told(wanted, "pytorch", launcher=HYDRA, version=version, python=python)
    assert found[1:] == [("torch.distributed", "gloo", starts)]


def test_pytorch_under_a_scheduler_is_proved_only_where_it_is_the_runtime() -> None:
    assert told(recipe({"pytorch": "*"}), "pytorch") == [MPI]


@pytest.mark.parametrize(("package", "holder"), [("tf-distribute", "tensorflow"), ("ddl", "ddl")])
def test_what_has_no_smoke_test_is_proved_over_mpi(package: str, holder: str) -> None:
    assert told(recipe({holder: "*"}, package=package), holder) == [MPI]


@pytest.mark.parametrize(
    ("package", "holder"),
    [("torch-distributed", "pytorch"), ("tf-distribute", "tensorflow"), ("ddl", "ddl")],
)
def test_a_runtime_that_is_part_of_something_wants_it_in_the_stack(
    package: str, holder: str
) -> None:
    with pytest.raises(ValidationError, match=f"part of {holder}"):
        recipe({}, package=package)


@pytest.mark.parametrize("package", ["distributed-dl-training", "ddl"])
def test_only_horovod_comes_from_a_module(package: str) -> None:
    with pytest.raises(ValidationError, match=f"not {package}"):
        recipe({"ddl": "*"}, package=package, origin="module")
