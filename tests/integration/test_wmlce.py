"""The recipes of documents 000, 002 and 003, created against a channel that stands in for WMLCE's.

tests/stand_ins.py says what is real of it. It takes minutes, and runs when asked for.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from image_tools import COMPILERS, QUICK, debian_base
from integration_tools import Envbuild, run
from registry_tools import needed
from wmlce_recipes import LICENCE, evidence, recipes, runnable, site_with_copies

from tests.conda_channel import write_channel
from tests.pythons import find_python
from tests.stand_ins import (
    CUDA,
    SERIES,
    TENSORFLOW,
    TORCH,
    WHEELS,
    anacondas,
    cuda_files,
    ddl_files,
    download,
    inert,
    nccl_files,
    packed,
    wmlce,
)

pytest.importorskip("rattler")
pytestmark = [pytest.mark.long]

SECONDS = 3600.0


@pytest.fixture(scope="module")
def channels(index: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folders of WMLCE's channel and of Anaconda's, for x86_64."""
    program = find_python(SERIES)
    if program is None or shutil.which("gcc") is None:
        pytest.skip(f"needs a Python {SERIES} and a compiler")
    wheels, cuda = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("cuda")
    download(wheels, program, *WHEELS.values(), *TORCH.values(), *TENSORFLOW.values())
    download(cuda, Path(shutil.which("python3") or "python3"), *CUDA)
    (torch,) = packed(wheels, TORCH)
    files = cuda_files(cuda)
    nccl = nccl_files(tmp_path_factory.mktemp("nccl"), files)
    base = Path(run([program, "-c", "import sys; print(sys.base_prefix)"]).out.strip())
    packages = wmlce(
        torch=torch,
        tensorflow=packed(wheels, TENSORFLOW),
        cuda=files,
        nccl=nccl,
        ddl=ddl_files(tmp_path_factory.mktemp("ddl")),
    )
    folder = tmp_path_factory.mktemp("channels")
    return {
        "wmlce": write_channel(folder / "wmlce", packages),
        "defaults": write_channel(folder / "defaults", anacondas(wheels, base)),
    }


@pytest.fixture(scope="module")
def copies(index: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folders of both channels for both architectures, as a site may have kept them."""
    folder = tmp_path_factory.mktemp("copies")
    packages = zip(inert("ppc64le"), inert("x86_64"), strict=True)
    return {
        name: write_channel(folder / name, [*power, *(p for p in x86 if p.subdir != "noarch")])
        for name, (power, x86) in zip(("wmlce", "defaults"), packages, strict=True)
    }


def from_copies(folder: Path, name: str, channels: dict[str, Path]) -> tuple[str | Path, ...]:
    """Return the words of the shipped recipe of a name, with copies of its channels."""
    site = site_with_copies(folder, "workstation", channels)
    return "--recipes", runnable(folder / "recipes", name), "--site", site


STAND_INS = {
    "cudatoolkit-dev 10.2.89",
    "cudnn 7.6.5_10.2",
    "gxx_linux-64 7.3.0",
    "powerai 1.7.0",
    "powerai-license 1.7.0",
    "powerai-release 1.7.0",
}


def test_horovod_of_pytorch_is_compiled_and_proved_and_its_stand_ins_are_told(
    envbuild: Envbuild, channels: dict[str, Path], tmp_path: Path
) -> None:
    name = "horovod-pytorch-conda"
    folder, root = recipes(tmp_path / "recipes", channels, name, stack={}), tmp_path / "root"
    words = ("create", name, "--recipes", folder, "--site", "local", "--root", root)
    refused = envbuild(*words, timeout=SECONDS)
    assert refused.code == 5, refused.text
    assert "IBM_POWERAI_LICENSE_ACCEPT=yes" in refused.err
    done = envbuild(*words, "--resume", env=LICENCE, timeout=SECONDS)
    assert done.code == 0, done.text
    assert ", with stand-ins; " in done.out
    info = json.loads(envbuild("info", name, "--root", root, "--json").out)
    proof = info["evidence"][-1]
    assert set(proof["stand-ins"]) == STAND_INS
    assert (proof["result"]["tier"], proof["result"]["ranks"]) == ("several ranks", 2)
    assert (proof["result"]["api"], proof["result"]["framework"]) == (
        "horovod.torch",
        "torch 1.3.1",
    )
    listing = envbuild("list", "--root", root).out
    assert f"! {len(STAND_INS)} stand-ins: " in listing


def test_horovod_on_nccl_is_compiled_and_without_a_gpu_not_published(
    envbuild: Envbuild, channels: dict[str, Path], tmp_path: Path
) -> None:
    name = "horovod-pytorch-nccl-conda"
    folder, root = recipes(tmp_path / "recipes", channels, name, stack={}), tmp_path / "root"
    words = ("create", name, "--recipes", folder, "--site", "local", "--root", root)
    done = envbuild(*words, env=LICENCE, timeout=SECONDS)
    # Everything before the proof went well, and the stand-in is what it is linked with.
    assert done.code == 6, done.text
    assert "and compare: done" in done.err
    assert "torch finds none" in done.err
    found = evidence(root)
    assert [each["result"]["verdict"] for each in found] == ["passed", "failed"]
    assert all({"nccl 2.5.6", *STAND_INS} == set(each["stand-ins"]) for each in found)
    facts = "\n".join(
        each["text"] for each in found[0]["build-facts"] if each.get("topic") == "nccl"
    )
    assert "libnccl.so.2" in facts
    assert json.loads(envbuild("list", "--root", root, "--json").out)["environments"] == []


def test_horovod_of_tensorflow_is_compiled_and_without_a_gpu_not_published(
    envbuild: Envbuild, channels: dict[str, Path], tmp_path: Path
) -> None:
    name, root = "horovod-nccl-wmlce", tmp_path / "root"
    words = ("create", name, "--root", root, *from_copies(tmp_path, name, channels))
    done = envbuild(*words, env=LICENCE, timeout=SECONDS)
    assert done.code == 6, done.text
    assert "and compare: done" in done.err
    assert "TensorFlow finds none" in done.err
    found = evidence(root)
    assert [each["result"]["verdict"] for each in found] == ["passed", "failed"]
    assert all("nccl 2.5.6" in each["stand-ins"] for each in found)
    assert not any("tensorflow 2.1.0" in each["stand-ins"] for each in found)
    assert json.loads(envbuild("list", "--root", root, "--json").out)["environments"] == []


Words = tuple[str | Path, ...]
OWN = {
    "horovod-nccl-wmlce": {"horovod": "0.19.5", "nccl": "2.5.6", "tensorflow": "2.1.0"},
    "horovod-ddl-wmlce": {"horovod": "0.18.2", "ddl": "1.5.1", "tensorflow": "2.1.0"},
    "ibm-wml-ce": {"pytorch": "1.3.1", "tensorflow": "2.1.0"},
    "horovod-pytorch-conda": {"horovod": "0.19.5", "pytorch": "1.3.1"},
    "horovod-pytorch-nccl-conda": {"horovod": "0.19.5", "nccl": "2.5.6"},
}
SUBDIRS = {"workstation": "linux-64", "summit": "linux-ppc64le", "taurus-ml": "linux-ppc64le"}
MPIS = {"linux-64": ("openmpi", "3.1.3"), "linux-ppc64le": ("spectrum-mpi", "10.3")}


@pytest.mark.parametrize(
    ("name", "site"),
    [
        # Document 000's own, as they ship: only the channels are copies.
        ("horovod-nccl-wmlce", "workstation"),
        ("horovod-nccl-wmlce", "taurus-ml"),
        ("horovod-ddl-wmlce", "workstation"),
        ("horovod-ddl-wmlce", "summit"),
        ("ibm-wml-ce", "taurus-ml"),
        ("horovod-pytorch-conda", "taurus-ml"),
        ("horovod-pytorch-nccl-conda", "taurus-ml"),
    ],
)
def test_a_recipe_is_planned_locked_and_bundled(
    envbuild: Envbuild, copies: dict[str, Path], tmp_path: Path, name: str, site: str
) -> None:
    where: Words = (name, "--site", site_with_copies(tmp_path, site, copies))
    if not name.startswith(("horovod-nccl", "horovod-ddl")):
        folder = recipes(tmp_path / "recipes", copies, name, "ppc64le")
        where = (name, "--recipes", folder, "--site", site)
    planned = envbuild("plan", *where, "--json")
    assert planned.code == 0, planned.text
    plan = json.loads(planned.out)
    pins = {each["component"]: each["version"] for each in plan["pins"]}
    mpi, release = MPIS[SUBDIRS[site]]
    wanted = {**OWN[name], "wmlce": "1.7.0", mpi: release}
    assert {each: pins.get(each) for each in wanted} == wanted
    assert {each["gone-since"] for each in plan["channels"]} == {None}

    file = tmp_path / "lock.json"
    done = envbuild("lock", *where, "--output", file, timeout=SECONDS)
    assert done.code == 0, done.text
    lock = json.loads(file.read_text(encoding="utf-8"))
    packages = [each for each in lock["artifacts"] if each["kind"] == "conda-package"]
    assert {each["subdir"] for each in packages} == {SUBDIRS[site], "noarch"}
    assert {"powerai", "powerai-license", mpi} <= {each["name"] for each in packages}
    # The release's pins hold what is newer off.
    assert ("tensorflow", "2.2.0") not in {(each["name"], each["version"]) for each in packages}

    more = ("--locked", file, "--bundle", "--output", tmp_path, "--json")
    done = envbuild("create", *where, *more, timeout=SECONDS)
    assert done.code == 0, done.text
    said = json.loads(done.out)
    # Nothing was run, and it is told.
    assert said["tier"] == "rendered"
    bundle = Path(said["folder"])
    assert (bundle / "build" / "conda-prefix.tar.gz").is_file()
    assert envbuild("bundle", "verify", bundle).code == 0
    build = (bundle / "build" / "build.sh").read_text(encoding="utf-8")
    assert "IBM_POWERAI_LICENSE_ACCEPT" in build


def test_a_recipe_locked_on_x86_is_compared_with_its_lock_for_summit(
    envbuild: Envbuild, copies: dict[str, Path], tmp_path: Path
) -> None:
    locks = {}
    for site in ("workstation", "summit"):
        locks[site] = tmp_path / f"{site}.json"
        where = (site_with_copies(tmp_path, site, copies), "--output", locks[site])
        done = envbuild("lock", "horovod-ddl-wmlce", "--site", *where, timeout=SECONDS)
        assert done.code == 0, done.text
    done = envbuild("diff", locks["workstation"], locks["summit"], "--json")
    assert done.code == 8, done.text
    differences = json.loads(done.out)["differences"]
    changed = {each["name"] for each in differences if each["section"] == "components"}
    assert {"openmpi", "spectrum-mpi", "gcc"} <= changed
    assert {"wmlce", "ddl", "pytorch", "tensorflow", "horovod"}.isdisjoint(changed)


def test_horovod_on_ddl_is_compiled_and_refused_by_the_stand_in_itself(
    envbuild: Envbuild, channels: dict[str, Path], tmp_path: Path
) -> None:
    name, root = "horovod-ddl-wmlce", tmp_path / "root"
    words = ("create", name, "--root", root, *from_copies(tmp_path, name, channels))
    done = envbuild(*words, env=LICENCE, timeout=SECONDS)
    assert done.code == 6, done.text
    assert "and compare: done" in done.err
    assert "ddl 1.5.1 is a stand-in: it has no ddl_init" in done.err
    found = evidence(root)
    assert [each["result"]["verdict"] for each in found] == ["passed", "failed"]
    assert all("ddl 1.5.1" in each["stand-ins"] for each in found)
    assert json.loads(envbuild("list", "--root", root, "--json").out)["environments"] == []


def test_wmlce_with_own_packages_is_proved_by_mpis_launcher(
    envbuild: Envbuild, channels: dict[str, Path], tmp_path: Path
) -> None:
    """torchrun came with PyTorch 1.10: mpiexec starts the ranks that prove its collectives."""
    name = "ibm-wml-ce"
    folder, root = recipes(tmp_path / "recipes", channels, name, stack={}), tmp_path / "root"
    words = ("create", name, "--recipes", folder, "--site", "local", "--root", root)
    done = envbuild(*words, env=LICENCE, timeout=SECONDS)
    assert done.code == 0, done.text
    assert "and compare: done" in done.err
    found = evidence(root)
    assert [each["result"]["verdict"] for each in found] == ["passed", "passed"]
    assert all("powerai 1.7.0" in each["stand-ins"] for each in found)
    told = [(one["api"], one["tier"], one["ranks"]) for one in (each["result"] for each in found)]
    assert told == [(api, "several ranks", 2) for api in ("numpy", "torch.distributed")]
    (listed,) = json.loads(envbuild("list", "--root", root, "--json").out)["environments"]
    assert listed["number"] == 1


def test_an_image_of_horovod_on_nccl_is_a_candidate(
    envbuild: Envbuild,
    channels: dict[str, Path],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    needed("apptainer")
    base = debian_base(tmp_path_factory, COMPILERS, "ENVBUILD_IMAGE_STACKS_BASE")
    name = "horovod-nccl-wmlce"
    folder = recipes(tmp_path / "recipes", channels, name, stack={})
    words = ("image", name, "--recipes", folder, "--base", base, "--candidate")
    output = ("--output", tmp_path / "images")
    done = envbuild(*words, *output, env={**LICENCE, **QUICK}, timeout=2 * SECONDS)
    assert done.code == 0, done.text
    [image] = (tmp_path / "images").glob("*.sif")
    numpy, *horovod = json.loads(envbuild("info", image, "--json").out)["evidence"]
    assert (numpy["result"]["verdict"], numpy["result"]["tier"]) == ("passed", "several ranks")
    assert {each["result"]["tier"] for each in horovod} == {"imported"}
    # Its stack has no cuDNN.
    for record in (numpy, *horovod):
        assert {"nccl 2.5.6", *STAND_INS} - {"cudnn 7.6.5_10.2"} == set(record["stand-ins"])
    tested = run([shutil.which("apptainer") or "", "test", image], timeout=SECONDS)
    assert tested.code == 0, tested.text
