"""An image of each stack of the documents, built and tested: what cannot be had stands in.

Those of Taurus for x86_64, natively: ``stand_in_trees`` says what is real, such as TensorFlow,
PyTorch and the Open MPI that starts their ranks, and the evidence what stands in. Without a GPU
those on NCCL are candidates. That of Summit is emulated. It takes long, so it runs when asked for:
``bash ci/test.sh -m long``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from emulated_tools import SECONDS, Emulated
from image_tools import COMPILERS, QUICK, debian_base
from integration_tools import Envbuild, run
from registry_tools import needed
from stand_in_trees import SPECTRUM, WMLCE, StandInTrees, make_summit, make_trees

from envbuilder import data
from envbuilder.images.sif import arch_of

pytestmark = [pytest.mark.long]

PASSED, CANDIDATE = ("passed", "several ranks"), ("failed", "imported")
# Of generation 2018b, and of 2019b with all that its PyTorch loads.
OF_2018B = {
    "CMake/3.12.1-GCCcore-7.3.0",
    "CUDA/9.2.88-GCC-7.3.0-2.30",
    "GCC/7.3.0-2.30",
    "GCCcore/7.3.0",
    "binutils/2.30-GCCcore-7.3.0",
}
OF_2019B = {
    "CMake/3.15.3-GCCcore-8.3.0",
    "CUDA/10.1.243-GCC-8.3.0",
    "FFTW/3.3.8-gompic-2019b",
    "GCC/8.3.0",
    "GCCcore/8.3.0",
    "NCCL/2.4.8-gcccuda-2019b",
    "OpenBLAS/0.3.7-GCC-8.3.0",
    "ScaLAPACK/2.0.2-gompic-2019b",
    "binutils/2.32-GCCcore-8.3.0",
    "cuDNN/7.6.4.38-gcccuda-2019b",
}
FOR_NCCL = {
    "FFTW/3.3.8-gompic-2018b",
    "NCCL/2.3.7-fosscuda-2018b",
    "OpenBLAS/0.3.1-GCC-7.3.0-2.30",
    "ScaLAPACK/2.0.2-gompic-2018b-OpenBLAS-0.3.1",
}


@pytest.fixture(scope="module")
def trees(index: None, tmp_path_factory: pytest.TempPathFactory) -> StandInTrees:
    needed("apptainer")
    return make_trees(tmp_path_factory.mktemp("trees"))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    packages = f"{COMPILERS},cmake,lmod"
    return debian_base(tmp_path_factory, packages, "ENVBUILD_IMAGE_STACKS_BASE")


def evidence(envbuild: Envbuild, image: Path) -> list[dict[str, Any]]:
    told: dict[str, Any] = json.loads(envbuild("info", image, "--json").out)
    records: list[dict[str, Any]] = told["evidence"]
    return records


def image_of(envbuild: Envbuild, words: Sequence[str | Path], output: Path) -> Path:
    """Build an image; return it, once its own test has passed."""
    done = envbuild("image", *words, "--output", output, env=QUICK, timeout=2 * SECONDS)
    assert done.code == 0, done.text
    [image] = output.glob("*.sif")
    assert "! stand-ins, so this " in done.out, done.text
    return image


@pytest.mark.parametrize(
    ("name", "api", "framework", "outcome", "stand_ins"),
    [
        ("horovod-mpi", "horovod.tensorflow", "tensorflow 1.15.0", PASSED, OF_2018B),
        ("horovod-pytorch", "horovod.torch", "torch 1.6.0", PASSED, OF_2019B),
        ("horovod-nccl", "horovod.tensorflow", None, CANDIDATE, OF_2018B | FOR_NCCL),
        ("horovod-pytorch-nccl", "horovod.torch", None, CANDIDATE, OF_2019B),
    ],
)
def test_on_the_modules_of_taurus_it_is_built_and_tested(
    envbuild: Envbuild,
    trees: StandInTrees,
    base: Path,
    tmp_path: Path,
    name: str,
    api: str,
    framework: str | None,
    outcome: tuple[str, str],
    stand_ins: set[str],
) -> None:
    words = [trees.recipe(name), "--site", trees.site, "--arch", "x86_64", "--base", base]
    words += ["--bind", trees.bind, *(["--candidate"] if outcome == CANDIDATE else [])]
    image = image_of(envbuild, words, tmp_path)
    check(envbuild, image, api, framework, outcome, stand_ins)
    # Its own test, in another container.
    tested = run([shutil.which("apptainer") or "", "test", "--bind", trees.bind, image])
    assert tested.code == 0, tested.text


def check(
    envbuild: Envbuild,
    image: Path,
    api: str,
    framework: str | None,
    outcome: tuple[str, str],
    stand_ins: set[str],
) -> None:
    """Fail unless the evidence of an image of Taurus says what was proved and what stood in."""
    numpy, horovod = evidence(envbuild, image)
    for record in (numpy, horovod):
        assert set(record["stand-ins"]) == stand_ins
        assert (record["execution"], record["result"]["ranks"]) == ("native", 2)
    assert (numpy["result"]["verdict"], numpy["result"]["tier"]) == PASSED
    assert (horovod["result"]["verdict"], horovod["result"]["tier"]) == outcome
    assert horovod["result"]["api"] == api
    if framework is not None:
        assert horovod["result"]["framework"] == framework
    facts = [each["text"] for each in numpy["build-facts"] if each["passed"]]
    linked = "libnccl.so.2" if outcome == CANDIDATE else "libmpi.so.40"
    assert any(linked in each for each in facts), facts


def test_ddl_on_the_modules_of_summit_is_built_and_tested(
    envbuild: Envbuild, ppc64el: Path, tmp_path: Path
) -> None:
    needed("apptainer")
    asks = "/usr/bin/python3 -c 'import json, platform, numpy, mpi4py\nprint(json.dumps("
    asks += "dict(python=platform.python_version(), numpy=numpy.__version__,\n"
    asks += "mpi4py=mpi4py.__version__)))'"
    provides = json.loads(Emulated.below(ppc64el, tmp_path / "asked")(asks).out)
    site = make_summit(tmp_path, provides)
    recipe = yaml.safe_load((data.RECIPES / "ddl.yaml").read_text(encoding="utf-8"))
    recipe["smoke"] = {"ranks": 2, "max-bytes": 65536}
    file = tmp_path / "ddl.yaml"
    file.write_text(yaml.safe_dump(recipe), encoding="utf-8")
    bind = f"{tmp_path}/machine/sw:/sw"
    words = [file, "--site", site, "--arch", "ppc64le", "--base", ppc64el, "--bind", bind]
    image = image_of(envbuild, words, tmp_path / "images")
    assert arch_of(image) == "ppc64le"
    [record] = evidence(envbuild, image)
    assert record["stand-ins"] == [WMLCE, SPECTRUM]
    assert (record["execution"], record["arch"]) == ("emulated", "ppc64le")
    assert (record["result"]["verdict"], record["result"]["tier"]) == PASSED
    # DDL itself is there by name and version, and cannot be used.
    asks = "import ddl, tensorflow; print(ddl.__version__, tensorflow.__version__); ddl.rank"
    used = run(["apptainer", "run", "--bind", bind, image, "python", "-c", asks], timeout=SECONDS)
    assert used.out == "1.5.0 1.15\n", used.text
    assert "RuntimeError: ddl 1.5.0 is a stand-in: it has no rank" in used.err
