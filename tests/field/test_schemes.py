"""One stack in the snapshots of sites that name modules in different ways: one plan.

tests/sites/test_naming_schemes.py does the same with trees and a real module system, for those
schemes that have a definition: here are also the names that vendors and sites choose.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from typer.testing import CliRunner

from envbuilder.cli import app


class Software(NamedTuple):
    """What is installed. ``kind``: EasyBuild's module class, and the folder of other schemes."""

    component: str
    version: str
    kind: str
    name: str
    suffix: str = ""


STACK = (
    Software("gcc", "12.3.0", "compiler", "GCC"),
    Software("openmpi", "4.1.5", "mpi", "OpenMPI", "-GCC-12.3.0"),
    Software("cuda", "12.1.1", "system", "CUDA"),
    Software("nccl", "2.18.3", "lib", "NCCL", "-GCCcore-12.3.0-CUDA-12.1.1"),
    Software("cudnn", "8.9.2.26", "numlib", "cuDNN", "-CUDA-12.1.1"),
    Software("python", "3.11.3", "lang", "Python", "-GCCcore-12.3.0"),
    Software("cmake", "3.26.3", "devel", "CMake", "-GCCcore-12.3.0"),
    Software("pytorch", "2.1.2", "ai", "PyTorch", "-foss-2023a-CUDA-12.1.1"),
)
VERSIONS = {each.component: each.version for each in STACK}


def flat(each: Software) -> str:
    """easybuild/tools/module_naming_scheme/easybuild_mns.py."""
    return f"{each.name}/{each.version}{each.suffix}"


def categorised(each: Software) -> str:
    """categorized_mns.py: class, name, full version."""
    return f"{each.kind}/{flat(each)}"


def hierarchical(each: Software) -> str:
    """hierarchical_mns.py: the full names, from the top of the tree."""
    core = each.component in ("gcc", "cuda", "cudnn")
    of_mpi = "MPI/GCC/12.3.0/OpenMPI/4.1.5"
    folder = "Core" if core else of_mpi if each.component == "pytorch" else "Compiler/GCC/12.3.0"
    suffix = "-CUDA-12.1.1" if "CUDA" in each.suffix else ""
    return f"{folder}/{each.name}/{each.version}{suffix}"


def spack(each: Software) -> str:
    """Spack's projection of Tcl modules: name/version-compiler-version, a hash of 7 digits."""
    return f"{_of_spack(each)}/{each.version}-gcc-12.3.0-k3fa7c{len(each.name)}"


def spack_flat(each: Software) -> str:
    """hash_length 0, and the projection of ^mpi for what depends on MPI."""
    mpi = "-openmpi-4.1.5" if each.component == "pytorch" else ""
    return f"{_of_spack(each)}/{each.version}{mpi}-gcc-12.3.0"


def spack_hierarchical(each: Software) -> str:
    """Spack's Lmod layout, from the top of the tree: compiler/version/name/version."""
    folder = "Core" if each.component == "gcc" else "gcc/12.3.0"
    return f"linux-rocky9-x86_64/{folder}/{_of_spack(each)}/{each.version}"


def _of_spack(each: Software) -> str:
    return "py-torch" if each.component == "pytorch" else each.component


def bright(each: Software) -> str:
    """Names as those of the list in tests/field/names/arc_vt.yaml."""
    names = {
        "gcc": "gcc12/12.3.0",
        "openmpi": "openmpi4-geib-cuda12.1-gcc12/4.1.5",
        "cuda": "cuda12.1/toolkit/12.1.1",
        "nccl": "nccl2-cuda12.1-gcc12/2.18.3",
        "cudnn": "cudnn8.9-cuda12.1/8.9.2.26",
        "python": "python311/3.11.3",
        "pytorch": "pytorch-py311-cuda12.1-gcc12/2.1.2",
    }
    return names.get(each.component, f"{each.component}/{each.version}")


def sheffield(each: Software) -> str:
    """Folders by use, and what it is built with behind the release."""
    names = {
        "gcc": "dev/gcc/12.3.0",
        "openmpi": "mpi/openmpi/4.1.5/gcc-12.3.0",
        "cuda": "libs/CUDA/12.1.1/binary",
        "nccl": "libs/nccl/2.18.3/binary-cuda-12.1.1",
        "cudnn": "libs/cudnn/8.9.2.26/binary-cuda-12.1.1",
        "python": "apps/python/3.11.3/gcc-12.3.0",
        "cmake": "dev/cmake/3.26.3/gcc-12.3.0",
        "pytorch": "apps/pytorch/2.1.2/gcc-12.3.0-cuda-12.1.1",
    }
    return names[each.component]


def cray(each: Software) -> str:
    """Names of the Cray Programming Environment, and of sites beside it."""
    names = {
        "gcc": "gcc-native/12.3.0",
        "cuda": "cudatoolkit/12.1.1",
        "nccl": "nccl/2.18.3-cu12",
        "cudnn": "cudnn/8.9.2.26_cuda12.1",
    }
    return names.get(each.component, f"{each.component}/{each.version}")


Scheme = Callable[[Software], str]
SCHEMES: tuple[Scheme, ...] = (
    *(flat, categorised, hierarchical),
    *(spack, spack_flat, spack_hierarchical),
    *(bright, sheffield, cray),
)


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.__name__)
def test_every_scheme_gives_the_same_plan(scheme: Scheme, tmp_path: Path) -> None:
    modules = [
        {"name": scheme(each), **({"python": "/usr/bin/python3"} if each.kind == "lang" else {})}
        for each in STACK
    ]
    site = {
        "schema": 1,
        "name": "named",
        "summary": "A site with one naming scheme",
        "arch": ["x86_64"],
        "module-system": "lmod",
        "module-init": "/apps/lmod/init/bash",
        "facts": {"glibc": "2.34", "driver": "535.54", "gpu": ["sm_80"], "network": ["ethernet"]},
        "origins": ["module", "pip"],
        "snapshot": "named.snapshot.json",
    }
    taken = {"schema": 1, "kind": "documented", "taken": "2026-11-28", "source": "a test"}
    stack = {each.component: "*" for each in STACK}
    recipe = {"schema": 1, "name": "all", "summary": "x", "arch": ["x86_64"], "stack": stack}
    (tmp_path / "named.snapshot.json").write_text(json.dumps({**taken, "modules": modules}))
    (tmp_path / "named.yaml").write_text(yaml.safe_dump(site))
    (tmp_path / "all.yaml").write_text(yaml.safe_dump(recipe))
    words = ("plan", tmp_path / "all.yaml", "--site", tmp_path / "named.yaml", "--json")
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    pins = json.loads(done.stdout)["pins"]
    found = {pin["component"]: pin for pin in pins if pin["component"] in VERSIONS}
    assert {name: pin["version"] for name, pin in found.items()} == VERSIONS
    assert {pin["locator"] for pin in found.values()} == {module["name"] for module in modules}
