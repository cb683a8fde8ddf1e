"""An image of horovod-torch-cpu: Horovod compiled in it, proved in it, and started from outside.

It takes a quarter of an hour, so it runs when asked for: ``bash ci/test.sh -m long``.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from emulated_tools import SECONDS
from image_tools import COMPILERS, QUICK, debian_base
from integration_tools import Envbuild, run
from registry_tools import needed

from envbuilder import data

pytestmark = [pytest.mark.long]

OVER = [("numpy", "mpi"), ("horovod.torch", "mpi"), ("horovod.torch", "gloo")]


@pytest.fixture(scope="module")
def image(envbuild: Envbuild, tmp_path_factory: pytest.TempPathFactory) -> Path:
    needed("apptainer")
    base = debian_base(tmp_path_factory, COMPILERS, "ENVBUILD_IMAGE_BUILD_BASE")
    output = tmp_path_factory.mktemp("images")
    # How fast large messages are is not the question.
    shipped = yaml.safe_load((data.RECIPES / "horovod-torch-cpu.yaml").read_text(encoding="utf-8"))
    recipe = output / "horovod-torch-cpu.yaml"
    smoke = {"ranks": 2, "max-bytes": 65536}
    recipe.write_text(yaml.safe_dump({**shipped, "smoke": smoke}), encoding="utf-8")
    words = ("image", recipe, "--base", base, "--json")
    done = envbuild(*words, "--output", output, env=QUICK, timeout=SECONDS)
    assert done.code == 0, done.text
    return Path(json.loads(done.out)["image"])


def test_info_reads_what_was_proved_and_its_own_test_passes(
    envbuild: Envbuild, image: Path
) -> None:
    told = json.loads(envbuild("info", image, "--json").out)
    results = [each["result"] for each in told["evidence"]]
    assert [(each["api"], each["transport"]) for each in results] == OVER
    assert {(each["verdict"], each["tier"]) for each in results} == {("passed", "several ranks")}
    facts = [each["text"] for each in told["evidence"][0]["build-facts"] if each["passed"]]
    assert any("finds" in each and "libmpi" in each for each in facts)
    tested = run([shutil.which("apptainer") or "", "test", image], timeout=SECONDS)
    assert tested.code == 0, tested.text
    assert tested.out.count("passed: several ranks, native") == len(OVER)


def test_its_horovod_talks_when_the_host_starts_it(envbuild: Envbuild, image: Path) -> None:
    needed("ompi_info")
    done = envbuild("smoke", image, "--site", "local", "--json", timeout=SECONDS)
    assert done.code == 0, done.text
    results = [each["result"] for each in json.loads(done.out)["evidence"]]
    # By Gloo ranks are started inside of an image.
    assert [(each["api"], each["transport"]) for each in results] == OVER[:2]
    assert all("apptainer exec" in each["launch"] for each in results)
