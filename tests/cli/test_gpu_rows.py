"""A row about a GPU, its driver or the CUDA of a wheel applies to recipes that use GPUs alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app

pytestmark = [pytest.mark.usefixtures("_x86_64"), pytest.mark.thorough]

SITE = """\
schema: 1
name: old-driver
summary: Nodes with GPUs and a driver that CUDA 13 does not run with
arch: [x86_64]
module-system: lmod
module-init: /usr/share/lmod/lmod/init/bash
origins: [module, pip]
facts: {glibc: "2.28", driver: "550.54", gpu: [sm_90]}
modules:
  - {name: Python/3.12.1, provides: {python: "3.12.1"}, python: /sw/python/bin/python3}
  - {name: OpenMPI/4.1.6, provides: {openmpi: "4.1.6"}, loads: [CUDA/11.4.2]}
  - {name: CUDA/11.4.2, provides: {cuda: "11.4.2"}}
"""

RECIPE = """\
schema: 1
name: ours
summary: A recipe of the tests
arch: [x86_64]
"""

GPU_ROWS = {"WHEEL-DRIVER", "TORCH-215", "TORCH-234", "CUDA-041", "CUDA-042", "CUDA-043", "TF-129"}


@pytest.fixture
def _x86_64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "old-driver.yaml"
    path.write_text(SITE)
    return path


def plan(site: Path, recipe: str | Path, *words: str) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(
        app, ["plan", str(recipe), "--site", str(site), "--json", *words], env={"PATH": "/usr/bin"}
    )
    return done.exit_code, json.loads(done.stdout)


def written(site: Path, more: str) -> Path:
    path = site.parent / "ours.yaml"
    path.write_text(RECIPE + more)
    return path


def ids(value: dict[str, Any]) -> set[str]:
    return {each["id"] for each in value["findings"]}


@pytest.mark.parametrize("name", ["collective-torch-cpu", "horovod-alias-torch-cpu"])
def test_a_driver_refuses_no_shipped_recipe_for_cpus(site: Path, name: str) -> None:
    code, value = plan(site, name)
    assert code == 0
    assert not ids(value) & GPU_ROWS
    assert "2.13.0" in {each["version"] for each in value["pins"]}


def test_the_cuda_that_a_module_loads_is_none_of_a_recipe_for_cpus(site: Path) -> None:
    """Neither its driver nor that the wheels hold another CUDA."""
    stack = 'stack: {python: "*", pytorch: "==2.13.*", tensorflow: "*", openmpi: "<5"}\n'
    code, value = plan(site, written(site, stack))
    assert code == 0
    assert "cuda" in {each["component"] for each in value["brought"]}
    assert not ids(value) & GPU_ROWS


@pytest.mark.parametrize(
    "more",
    [
        'stack: {python: "*", pytorch: "==2.13.*", mpich: "*", nccl: "*"}\n',
        'stack: {python: "*", pytorch: "==2.13.*", mpich: "*"}\npackages: [cupy-cuda12x]\n',
        'stack: {python: "*", pytorch: "==2.13.*", mpich: "*"}\n'
        "pip-indexes: ['https://wheels.example/whl/cu130']\n",
    ],
    ids=["component", "package", "index"],
)
def test_a_driver_refuses_a_wheel_to_a_recipe_for_gpus(site: Path, more: str) -> None:
    code, value = plan(site, written(site, more))
    assert code == 4
    assert "WHEEL-DRIVER" in json.dumps(value)


def test_a_driver_has_an_older_wheel_chosen_for_gpus(site: Path) -> None:
    stack = 'stack: {python: "*", pytorch: ">=2", mpich: "*", nccl: "*"}\n'
    code, value = plan(site, written(site, stack))
    assert code == 0
    torch = next(each for each in value["pins"] if each["component"] == "pytorch")
    # Of those that the driver runs the one whose NCCL has the fewest warnings.
    assert torch["version"] == "2.7.1"
    assert "WHEEL-DRIVER" not in ids(value)


def test_the_cuda_of_a_wheel_is_compared_with_the_toolkit_for_gpus(site: Path) -> None:
    stack = 'stack: {python: "*", pytorch: "==2.10.*", openmpi: "<5", cuda: "*"}\n'
    code, value = plan(site, written(site, stack))
    assert code == 0
    assert "TORCH-233" in ids(value)


def test_versions_with_a_toolkit_are_for_gpus() -> None:
    words = ["advisories", "check", "pytorch==2.10.0", "cuda==11.4.2", "--arch", "x86_64", "--json"]
    done = CliRunner().invoke(app, [*words, "--fact", "pytorch.origin=pip"])
    found = {each["id"]: each["verdict"] for each in json.loads(done.stdout)["rows"]}
    assert found["TORCH-233"] == "holds"
