"""The recipes of documents 000, 002 and 003, created for ppc64le by emulation.

tests/power_stand_ins.py says what is real of their channels. The system that they are built in is
named by ENVBUILD_PPC64EL_DEVEL_ROOT (docs/testing.md).
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from integration_tools import Done, Envbuild
from wmlce_recipes import LICENCE, evidence, recipes, write_power_channels

from tests.debian_channel import SERIES

pytest.importorskip("rattler")
pytestmark = [pytest.mark.long]

SECONDS = 5400.0
# The Debian's, in the place of WMLCE's 3.7; and what differs from the recipe for want of it.
STACK = {"python": f"=={SERIES}.*", "mpi4py": "*"}
# The PyTorch is the Debian's, and the MPI is; what Horovod wants of an older one its headers have.
REASON = "the channel's PyTorch is of another release, without Spectrum MPI"
ALLOW = {"WML-111": REASON, "WML-116": REASON}
OLDER = {f"HVD-00{each}": "the headers of the channel's PyTorch say it" for each in (5, 6, 7, 9)}
STAND_INS = {
    "cudatoolkit-dev 10.2.89",
    "gxx_linux-ppc64le 7.3.0",
    "powerai 1.7.0",
    "powerai-license 1.7.0",
    "powerai-release 1.7.0",
    "pytorch 1.13.1",
    "tensorflow 2.1.0",
}


@pytest.fixture(scope="module")
def system(ppc64el_devel: Path) -> Path:
    """Return the Debian that compiles; not to be changed."""
    if f"{sys.version_info[0]}.{sys.version_info[1]}" != SERIES:
        pytest.skip(f"a module of the Debian's Python is that of a Python {SERIES}")
    return ppc64el_devel


@pytest.fixture(scope="module")
def channels(
    index: None, system: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Return the folders of WMLCE's channel and of Anaconda's, for ppc64le."""
    return write_power_channels(system, tmp_path_factory.mktemp("channels"))


def written(folder: Path, channels: dict[str, Path], name: str, version: str | None = None) -> Path:
    """Write a recipe for what the channels have; return its folder."""
    allow = ALLOW if name == "ibm-wml-ce" else ALLOW | OLDER
    changes: dict[str, Any] = {"stack": STACK, "version": version, "allow": allow}
    return recipes(folder, channels, name, "ppc64le", **changes)


def create(
    envbuild: Envbuild, system: Path, folder: Path, root: Path, name: str, *more: str
) -> Done:
    words = ("create", name, "--recipes", folder, "--site", "debian-ppc64le", "--arch", "ppc64le")
    env = {**LICENCE, "ENVBUILD_EMULATED_SYSTEM": str(system)}
    return envbuild(*words, "--emulate", "--root", root, *more, env=env, timeout=SECONDS)


def published(envbuild: Envbuild, root: Path) -> list[dict[str, object]]:
    return json.loads(envbuild("list", "--root", root, "--json").out)["environments"]


def whole_log(done: Done) -> str:
    """Return all that an emulated build said that did not go well."""
    (path,) = re.findall(r"complete log: (\S+)", done.err)
    return Path(path).read_text(encoding="utf-8")


def test_horovod_of_pytorch_is_compiled_and_proved_and_its_stand_ins_are_told(
    envbuild: Envbuild, system: Path, channels: dict[str, Path], tmp_path: Path
) -> None:
    name, root = "horovod-pytorch-conda", tmp_path / "root"
    folder = written(tmp_path / "recipes", channels, name)
    done = create(envbuild, system, folder, root, name)
    assert done.code == 0, done.text
    proof = evidence(root)[-1]
    assert proof["execution"] == "emulated"
    assert set(proof["stand-ins"]) == STAND_INS | {"cudnn 7.6.5_10.2"}
    result = proof["result"]
    assert (result["tier"], result["ranks"]) == ("several ranks", 2)
    assert (result["api"], result["framework"]) == ("horovod.torch", "torch 1.13.1")
    (listed,) = published(envbuild, root)
    assert listed["number"] == 1


def test_horovod_on_nccl_is_compiled_and_without_a_gpu_not_published(
    envbuild: Envbuild, system: Path, channels: dict[str, Path], tmp_path: Path
) -> None:
    name, root = "horovod-pytorch-nccl-conda", tmp_path / "root"
    folder = written(tmp_path / "recipes", channels, name)
    done = create(envbuild, system, folder, root, name)
    assert done.code == 6, done.text
    assert "torch finds none" in done.err
    found = evidence(root)
    assert [each["result"]["verdict"] for each in found] == ["passed", "failed"]
    assert all("nccl 2.5.6" in each["stand-ins"] for each in found)
    assert published(envbuild, root) == []


def test_horovod_of_tensorflow_ends_where_it_would_use_the_stand_in(
    envbuild: Envbuild, system: Path, channels: dict[str, Path], tmp_path: Path
) -> None:
    name, root = "horovod-nccl-wmlce", tmp_path / "root"
    folder = written(tmp_path / "recipes", channels, name)
    done = create(envbuild, system, folder, root, name)
    assert done.code == 5, done.text
    assert "build.headers-missing: headers of TensorFlow cannot be found: " in whole_log(done)
    assert published(envbuild, root) == []


def test_horovod_on_ddl_is_compiled_and_not_for_the_stand_in_of_tensorflow(
    envbuild: Envbuild, system: Path, channels: dict[str, Path], tmp_path: Path
) -> None:
    """Horovod before 0.19 compiles for no PyTorch that is of C++14, as the Debian's is."""
    name, root = "horovod-ddl-wmlce", tmp_path / "root"
    folder = written(tmp_path / "recipes", channels, name, version=">=0.19.5,<0.20")
    done = create(envbuild, system, folder, root, name)
    assert done.code == 5, done.text
    said = whole_log(done)
    assert "horovod_ddl_built() is 1" in said
    assert "horovod/tensorflow has no library" in said
    assert published(envbuild, root) == []


def test_wmlce_with_own_packages_is_proved(
    envbuild: Envbuild, system: Path, channels: dict[str, Path], tmp_path: Path
) -> None:
    """torchrun of that PyTorch starts nothing under Python 3.11: mpirun starts the ranks."""
    name, root = "ibm-wml-ce", tmp_path / "root"
    folder = written(tmp_path / "recipes", channels, name)
    done = create(envbuild, system, folder, root, name)
    assert done.code == 0, done.text
    found = evidence(root)
    told = [(one["api"], one["verdict"], one["ranks"]) for one in (e["result"] for e in found)]
    assert told == [(api, "passed", 2) for api in ("numpy", "torch.distributed")]
    assert all(each["execution"] == "emulated" for each in found)
    assert all(set(each["stand-ins"]) <= STAND_INS for each in found)
    (listed,) = published(envbuild, root)
    assert (listed["number"], listed["tier"]) == (1, "several ranks")
