"""Modules whose names state the CUDA or the Python that they were built with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app

# Bright's names; what the modules load is not recorded.
SITE = """\
schema: 1
name: named
summary: Modules with their CUDA in the name
arch: [x86_64]
module-system: lmod
module-init: /usr/share/lmod/lmod/init/bash
facts: {{glibc: "2.28", gpu: [sm_70], driver: "535.54"}}
origins: [module, pip]
modules:
  - {{name: python/3.9.5, provides: {{python: "3.9.5"}}, python: /apps/python/bin/python3}}
  - {{name: gcc/11.2.0}}
  - {{name: openmpi/gcc/64/4.1.5}}
  - {{name: cuda11.4/toolkit/11.4.2}}
  - {{name: cuda12.0/toolkit/12.0.1}}
  - {{name: {nccl}}}
"""
RECIPE = """\
schema: 1
name: ours
summary: MPI and CUDA of the site
arch: [x86_64]
stack: {{python: "*", openmpi: "*", cuda: "{cuda}", nccl: "*"}}
allow: {{{allow}}}
"""


@pytest.fixture
def plan(tmp_path: Path) -> object:
    def run(nccl: str, cuda: str = "*", allow: str = "") -> Result:
        (tmp_path / "named.yaml").write_text(SITE.format(nccl=nccl))
        (tmp_path / "ours.yaml").write_text(RECIPE.format(cuda=cuda, allow=allow))
        words = ["plan", tmp_path / "ours.yaml", "--site", tmp_path / "named.yaml", "--json"]
        return CliRunner().invoke(app, list(map(str, words)), env={"PATH": "/usr/bin:/bin"})

    return run


def pins(done: Result) -> dict[str, str]:
    assert done.exit_code == 0, done.stderr
    return {each["component"]: each["locator"] for each in json.loads(done.stdout)["pins"]}


@pytest.mark.parametrize(
    ("nccl", "cuda"),
    [
        ("nccl/cuda-11.4_2.11.4", "cuda11.4/toolkit/11.4.2"),
        ("nccl2-cuda11.4-gcc/2.11.4", "cuda11.4/toolkit/11.4.2"),
        ("nccl/2.18.3-CUDA-12.1.1", "cuda12.0/toolkit/12.0.1"),
        ("nccl/2.18.3", "cuda12.0/toolkit/12.0.1"),
    ],
)
def test_the_cuda_of_a_name_decides(plan, nccl: str, cuda: str) -> None:  # type: ignore[no-untyped-def]
    chosen = pins(plan(nccl))
    assert (chosen["nccl"], chosen["cuda"]) == (nccl, cuda)
    assert chosen["openmpi"] == "openmpi/gcc/64/4.1.5"


def test_a_module_for_another_cuda_is_refused(plan) -> None:  # type: ignore[no-untyped-def]
    done = plan("nccl/cuda-11.4_2.11.4", "==12.*")
    taken = pins(done)
    assert taken["nccl"] != "nccl/cuda-11.4_2.11.4"
    kept = plan("nccl/cuda-11.4_2.11.4", "==12.*", "NAME-CUDA: it was relinked")
    assert pins(kept)["nccl"] == "nccl/cuda-11.4_2.11.4"


def test_cuda_before_11_has_no_compatible_minor_releases(plan) -> None:  # type: ignore[no-untyped-def]
    taken = pins(plan("nccl/cuda-10.1_2.7.8"))
    assert taken["nccl"] != "nccl/cuda-10.1_2.7.8"
