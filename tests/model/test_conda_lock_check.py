"""A lock with conda packages is checked against itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from envbuilder.knowledge.artifacts import CondaArchive
from envbuilder.locking.lock_check import CONDA_CHECKS
from envbuilder.model.plan import Lock, Pin

sys.path.insert(0, str(Path(__file__).parent.parent / "render"))
from render_cases import make_plan


def package(name: str, version: str, *depends: str, **more: object) -> CondaArchive:
    channel = "https://conda.example"
    said = {
        "name": name,
        "version": version,
        "build": "0",
        "url": f"{channel}/linux-64/{name}-{version}-0.conda",
        "sha256": "c" * 64,
        "channel": channel,
        "subdir": "linux-64",
        "depends": depends,
        **more,
    }
    return CondaArchive.model_validate(said)


PYTHON = package("python", "3.11.7", "__glibc >=2.17")
NUMPY = package(
    "numpy", "1.26.4", "python >=3.11,<3.12.0a0", "c::blas[build=*x]", distribution="numpy"
)
BLAS = package("blas", "3.9")
PIP = package("pip", "24.0", "python")


def lock(*artifacts: CondaArchive) -> Lock:
    pins = tuple(
        Pin(component=name, version=version, origin="conda", locator=f"c/{name}", why="test")
        for name, version in (("python", "3.11.7"), ("numpy", "1.26.4"))
    )
    return Lock(plan=make_plan(backend="conda", pins=pins), artifacts=artifacts)


def said(*artifacts: CondaArchive) -> list[str]:
    return [line for check in CONDA_CHECKS for line in check(lock(*artifacts))]


def test_a_whole_lock_is_without_fault() -> None:
    assert said(PYTHON, NUMPY, BLAS, PIP) == []


@pytest.mark.parametrize(
    ("packages", "part"),
    [
        ((PYTHON, BLAS, PIP), "numpy@1.26.4 <- conda:c/numpy"),
        ((PYTHON, NUMPY, PIP), "numpy needs blas"),
        ((PYTHON, NUMPY, BLAS, package("six", "1")), "needs six-1-0.conda"),
        ((PYTHON, NUMPY, BLAS, BLAS), "two conda packages have the name blas"),
        (
            (package("python", "3.12.1"), NUMPY, BLAS),
            "python-3.12.1-0.conda",
        ),
        (
            (PYTHON, NUMPY, package("blas", "3.9", subdir="linux-ppc64le", channel=None)),
            "for linux-ppc64le",
        ),
        (
            (PYTHON, NUMPY, package("blas", "3.9", channel="https://other.example")),
            "https://conda.example/linux-64/blas-3.9-0.conda",
        ),
        (
            (PYTHON, NUMPY, package("blas", "3.9", build="1")),
            "file blas-3.9-0.conda",
        ),
    ],
)
def test_what_cannot_be_is_named(packages: tuple[CondaArchive, ...], part: str) -> None:
    assert any(part in line for line in said(*packages)), said(*packages)


def test_a_package_that_depends_on_the_mark_stands_in_for_the_one_of_its_name() -> None:
    nccl = package("nccl", "2.5.6", "cudatoolkit", "envbuild-stand-in 1.*")
    other = package("envbuild-stand-in-list", "1", "envbuild-stand-in-lister")
    assert lock(PYTHON, nccl, other).stand_ins == ("nccl 2.5.6",)
    assert lock(PYTHON, other).stand_ins == ()
