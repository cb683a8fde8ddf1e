"""``envbuild image --to``: an image with a number, a module, and programs that start it.

It takes minutes, so it runs when asked for: ``bash ci/test.sh -m long``.
"""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path
from typing import Any

import pytest
from emulated_tools import SECONDS
from image_tools import QUICK, debian_base
from integration_tools import Done, Envbuild, run
from module_tools import new_shell, start_lines
from registry_tools import needed, registry

from tests.verbs import problem_ids

pytestmark = [pytest.mark.long]

IMAGE = f"-{platform.machine()}.sif"
RANKS = "import distributed_dl_training.numpy as hvd; hvd.init(); print(hvd.rank(), hvd.size())"


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needed("apptainer")
    return debian_base(tmp_path_factory)


def publish(envbuild: Envbuild, debian: Path, folder: Path, *words: object) -> Done:
    line = ("image", "allreduce", "--base", debian, "--to", folder, *words)
    return envbuild(*line, env=QUICK, timeout=SECONDS)


@pytest.fixture(scope="module")
def published(envbuild: Envbuild, debian: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which an image of allreduce is published as number 1."""
    folder = tmp_path_factory.mktemp("published") / "images"
    done = publish(envbuild, debian, folder)
    assert done.code == 0, done.text
    return folder


@pytest.fixture(scope="module")
def number(envbuild: Envbuild, published: Path) -> dict[str, Any]:
    """Return what ``info`` says of the number."""
    verified = envbuild("info", "allreduce/1", "--root", published, "--verify", "--json")
    assert verified.code == 0, verified.text
    value: dict[str, Any] = json.loads(verified.out)
    return value


@pytest.mark.parametrize("shell", ["bash", "tcsh"])
@pytest.mark.parametrize("system", ["lmod", "environment-modules"])
def test_every_shell_and_module_system_loads_it(
    published: Path, number: dict[str, Any], tmp_path: Path, system: str, shell: str
) -> None:
    (tmp_path / "ranks.py").write_text(RANKS, encoding="utf-8")
    lines = [
        f"module use {published}/modulefiles",
        "module load allreduce",
        "module help allreduce",
        "which python",
        "python ranks.py",
    ]
    done = new_shell(shell, [*start_lines(system, shell), *lines], tmp_path)
    assert done.code == 0, done.text
    which, ranks = done.out.splitlines()[-2:]
    assert Path(which).parent.name == "bin"
    assert Path(which).is_relative_to(published / "allreduce")
    assert ranks == "0 1"
    for proof in number["evidence"]:
        assert f"MPI: {proof['result']['mpi']}" in done.text
        assert f"Proved: {proof['result']['tier']}" in done.text


def test_it_has_a_number_and_its_evidence(
    envbuild: Envbuild, published: Path, number: dict[str, Any]
) -> None:
    image = published / "allreduce" / f"1{IMAGE}"
    own = json.loads(envbuild("info", image, "--json").out)
    assert number["lock"] == own["lock"]
    assert [each["time"] for each in number["evidence"]] == [
        each["time"] for each in own["evidence"]
    ]
    for form in ("cyclonedx", "provenance", "recipe"):
        stated = envbuild("info", "allreduce", "--root", published, "--as", form)
        assert stated.code == 0, stated.text
    listed = json.loads(envbuild("list", "--root", published, "--json").out)["environments"]
    assert [(each["number"], each["default"], each["tier"]) for each in listed] == [
        (1, True, "several ranks")
    ]


def test_a_second_call_builds_nothing(envbuild: Envbuild, debian: Path, published: Path) -> None:
    image = (published / "allreduce" / f"1{IMAGE}").resolve()
    before = image.stat()
    done = publish(envbuild, debian, published, "--json")
    assert done.code == 0, done.text
    value = json.loads(done.out)
    assert (value["number"], value["image"]) == (1, str(published / "allreduce" / f"1{IMAGE}"))
    assert (image.stat().st_ino, image.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_is_for_environments_alone_names_the_image(
    envbuild: Envbuild, published: Path
) -> None:
    for words in (("smoke", "allreduce"), ("validate", "allreduce")):
        done = envbuild(*words, "--root", published)
        assert (done.code, f"1{IMAGE}" in done.err) == (2, True), done.text


def test_a_number_is_rolled_back_and_removed(
    envbuild: Envbuild, debian: Path, published: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "images"
    shutil.copytree(published, folder, symlinks=True)
    recipe = tmp_path / "allreduce.yaml"
    text = envbuild("info", "allreduce", "--root", folder, "--as", "recipe").out
    recipe.write_text(f"{text.rstrip()}\nenv: {{SECOND: '1'}}\n", encoding="utf-8")
    line = ("image", recipe, "--base", debian, "--to", folder)
    second = envbuild(*line, env=QUICK, timeout=SECONDS)
    assert second.code == 0, second.text
    links = sorted(path.name for path in (folder / "allreduce").glob("*.sif"))
    assert links == [f"1{IMAGE}", f"2{IMAGE}"]
    assert envbuild("remove", "allreduce/2", "--root", folder).code == 2
    assert envbuild("rollback", "allreduce", "--root", folder).code == 0
    done = envbuild("remove", "allreduce/2", "--root", folder)
    assert done.code == 0, done.text
    assert [path.name for path in (folder / "allreduce").glob("*.sif")] == [f"1{IMAGE}"]


def test_a_registry_has_a_number_and_the_id_and_is_not_pushed_to_again(
    envbuild: Envbuild, debian: Path, tmp_path: Path
) -> None:
    needed("docker-registry", "skopeo")
    with registry(tmp_path / "registry") as at:
        line = ("image", "allreduce", "--base", debian, "--to", f"docker://{at}/images")
        refused = envbuild(*line, "--json")
        assert (refused.code, problem_ids(refused.out)) == (2, ["image.format-not-published"])
        first, second = (
            envbuild(*line, "--format", "oci", "--json", timeout=SECONDS) for _ in range(2)
        )
        assert (first.code, second.code) == (0, 0), first.text + second.text
        skopeo = ("skopeo", "list-tags", "--tls-verify=false", f"docker://{at}/images/allreduce")
        tags = json.loads(run(list(skopeo)).out)["Tags"]
    pushed, found = json.loads(first.out), json.loads(second.out)
    arch = platform.machine()
    assert set(tags) == {f"1-{arch}", f"{pushed['id']}-{arch}"}
    assert pushed["image"] == f"docker://{at}/images/allreduce:{pushed['id']}-{arch}"
    assert (pushed["number"], found["image"]) == (1, pushed["image"])
    # Read from the image in the registry: nothing was built.
    assert [each["time"] for each in found["proofs"]] == [each["time"] for each in pushed["proofs"]]
