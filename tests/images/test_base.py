"""What a folder with a system says of itself, without a program of it being run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from envbuilder import data
from envbuilder.documents.knowledge import load_knowledge
from envbuilder.errors import UsageError
from envbuilder.images.base import read_base
from envbuilder.model.base_image import BaseImage
from envbuilder.model.site import DebianSystem, Site, SiteFacts, Snapshot
from envbuilder.render.image import bases
from envbuilder.workflow.image_base import base_name
from tests.debian_system import DEBIAN, PACKAGES, system

pytestmark = pytest.mark.thorough


def read(folder: Path) -> BaseImage:
    components = load_knowledge([data.RECIPES]).value.components
    return read_base(folder, components, bases().programs, bases().nvidia_packages)


def held(base: BaseImage) -> dict[str, str]:
    return {each.component: f"{each.version} {each.locator}" for each in base.snapshot.system}


def test_a_debian(tmp_path: Path) -> None:
    base = read(system(tmp_path))
    site = base.site
    assert (site.name, site.arch, site.facts.os) == ("debian-12", ("x86_64",), "debian 12")
    assert site.facts.glibc == "2.36"
    assert held(base) == {
        "gcc": "12.2.0 /usr/bin/g++",
        "openmpi": "4.1.4 /usr/bin/mpicxx",
        "numpy": "1.24.2 /usr/bin/python3",
    }
    [python] = base.snapshot.interpreters
    assert (python.version, python.arch, python.can_make_venv) == ("3.11.2", "x86_64", True)


def test_an_ubuntu_for_another_architecture(tmp_path: Path) -> None:
    packages = {"dpkg": "1.22.6ubuntu6.5", "libc6": "2.39-0ubuntu8.6", "python3": "3.12.3-0ubuntu2"}
    release = "ID=ubuntu\nVERSION_ID='24.04'\n"
    base = read(system(tmp_path, packages, "ppc64el", release))
    assert (base.site.name, base.site.arch) == ("ubuntu-24-04", ("ppc64le",))
    assert (base.site.facts.os, base.site.facts.glibc) == ("ubuntu 24.04", "2.39")
    assert base.snapshot.interpreters[0].can_make_venv is False


def test_packages_of_other_architectures_and_removed_ones_do_not_count(tmp_path: Path) -> None:
    foreign = "Package: {}\nStatus: {}\nArchitecture: {}\nVersion: 9.9-1\n"
    more = "\n".join(
        foreign.format(*each)
        for each in (
            ("libc6", "install ok installed", "i386"),
            ("cmake", "deinstall ok config-files", "amd64"),
            ("mpich", "install ok half-configured", "amd64"),
            ("python3-mpi4py", "install ok installed", "all"),
        )
    )
    base = read(system(tmp_path, more=more))
    assert base.site.facts.glibc == "2.36"
    assert {"cmake", "mpich"} & held(base).keys() == set()
    assert held(base)["mpi4py"] == "9.9 /usr/bin/python3"


def test_cuda_and_nccl_of_nvidia(tmp_path: Path) -> None:
    ours = {
        "cuda-nvcc-12-4": "12.4.131-1",
        "cuda-nvcc-12-10": "12.10.2-1",
        "cuda-cudart-12-11": "12.11.1-1",
        "libnccl2": "2.23.4-1+cuda12.6",
        "libnccl-dev": "2.23.4-1+cuda12.6",
    }
    base = read(system(tmp_path, PACKAGES | ours))
    assert held(base)["cuda"] == "12.10.2 /usr/local/cuda/bin/nvcc"
    assert held(base)["nccl"] == "2.23.4 /usr/include/nccl.h"
    homes = {each.component: each.facts.get("home") for each in base.snapshot.system}
    assert (homes["cuda"], homes["nccl"]) == ("/usr/local/cuda", "/usr")
    runtime = {name: version for name, version in ours.items() if name == "libnccl2"}
    assert "nccl" not in held(read(system(tmp_path / "other", PACKAGES | runtime)))


@pytest.mark.parametrize(
    ("packages", "release", "problem_id", "value"),
    [
        ({}, DEBIAN, "base.not-a-system", "var/lib/dpkg/status"),
        (PACKAGES, "", "base.not-a-system", "etc/os-release"),
        ({"dpkg": "1"}, DEBIAN, "base.missing-package", "python3"),
        ({"dpkg": "1", "python3": "3.11"}, DEBIAN, "base.missing-package", "libc6"),
    ],
)
def test_what_is_no_base(
    packages: dict[str, str], release: str, problem_id: str, value: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as raised:
        read(system(tmp_path, packages, release=release))
    assert raised.value.id == problem_id
    assert value in str(raised.value)
    assert "mmdebstrap" in raised.value.problems[0].hints[0]


def test_an_architecture_that_no_recipe_has(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        read(system(tmp_path, arch="riscv64"))
    assert raised.value.id == "base.unknown-architecture"
    assert "riscv64" in str(raised.value)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        read(tmp_path / "none")
    assert raised.value.id == "base.not-a-system"


def test_the_debian_of_a_site_is_what_its_images_begin_with() -> None:
    own = Site.model_validate(
        {
            "schema": 1,
            "name": "power",
            "summary": "Power9",
            "arch": ["ppc64le"],
            "facts": SiteFacts(os="rhel 7"),
        }
    )
    assert base_name(None, SimpleNamespace(site=own)) == "rhel 7"  # type: ignore[arg-type]
    debian = DebianSystem(suite="bookworm", packages=("python3",))
    stood_for = own.model_copy(update={"debian": debian})
    inputs = SimpleNamespace(site=stood_for)
    assert base_name(None, inputs) == "debian bookworm"  # type: ignore[arg-type]
    named = BaseImage(Path(), own, Snapshot())
    assert base_name(named, inputs) == "rhel 7"  # type: ignore[arg-type]
