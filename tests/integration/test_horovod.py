"""Horovod for PyTorch, really compiled and really talking: MPI, Gloo, and from the cache.

It takes a compiler and minutes, so it runs when asked for: ``bash ci/test.sh -m long``. Every test
looks at one moment of one story. What is built, patched, cached and refused in between is tested on
a small extension in test_sources.py.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from integration_tools import Done, Envbuild, run

from envbuilder.target_tools.manifest import look

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not all(shutil.which(each) for each in ("g++", "make", "patch", "mpicxx")),
        reason="g++, make, patch and an MPI's mpicxx build Horovod; not all of them are on PATH",
    ),
]

# Horovod with Gloo and MPI takes a minute and a half on two idle processors.
BUILD_SECONDS = 1500.0


@dataclass(frozen=True)
class Story:
    """Two environments of one lock, the second from the cache."""

    first: Done
    second: Done
    four: Done
    root: Path
    other: Path

    def log(self, root: Path, step: str) -> str:
        return next(root.glob(f"horovod-torch-cpu/*.build/logs/*-{step}.log")).read_text()

    def evidence(self) -> list[dict[str, Any]]:
        files = sorted(self.root.glob("horovod-torch-cpu/*.evidence/*/evidence.json"))
        return [json.loads(file.read_text()) for file in files]


@pytest.fixture(scope="module")
def story(envbuild: Envbuild, tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("horovod")
    env = {"ENVBUILD_WHEEL_CACHE": str(folder / "cache")}

    def create(root: str) -> Done:
        words = ("create", "horovod-torch-cpu", "--root", folder / root)
        return envbuild(*words, env=env, timeout=BUILD_SECONDS)

    first = create("one")
    assert first.code == 0, first.text
    words = ("smoke", "horovod-torch-cpu", "--ranks", "4", "--root", folder / "one")
    four = envbuild(*words, timeout=BUILD_SECONDS)
    second = create("two")
    return Story(first, second, four, folder / "one", folder / "two")


def test_it_is_compiled_and_proved_over_mpi_and_gloo(story: Story) -> None:
    assert "Created wheel for horovod" in story.log(story.root, "build-horovod")
    assert "patching file horovod/torch/CMakeLists.txt" in story.log(story.root, "build-horovod")
    for proved in ("numpy over mpi", "horovod.torch over mpi", "horovod.torch over gloo"):
        assert f"proved: {proved}: several ranks" in story.first.out
    assert "facts hold" in story.log(story.root, "verify")


def test_the_evidence_says_what_carried_the_data(story: Story) -> None:
    records = story.evidence()
    results = [(each["result"]["api"], each["result"]["transport"]) for each in records]
    kinds = [("numpy", "mpi"), ("horovod.torch", "mpi"), ("horovod.torch", "gloo")]
    # Those of create, then those of the smoke test on four ranks.
    assert results == [*kinds, *kinds]
    for record in records:
        result = record["result"]
        assert result["verdict"] == "passed"
        if result["api"] == "horovod.torch":
            carried = {c["transport"] for c in result["carried"] if c["operation"] == "allreduce"}
            assert carried == {result["transport"]}
    assert "horovodrun" in records[2]["result"]["launch"]


def test_the_evidence_says_what_the_libraries_link(story: Story) -> None:
    for record in story.evidence():
        facts = record["build-facts"]
        assert all(each["passed"] for each in facts)
        mpi = " ".join(each["text"] for each in facts if each["topic"] == "mpi")
        assert "mpi_lib_v2" in mpi
        assert "libmpi.so" in mpi
        assert "horovod_gloo_built() is 1" in [each["text"] for each in facts]


def test_four_ranks(story: Story) -> None:
    assert story.four.code == 0, story.four.text
    assert [each["result"]["ranks"] for each in story.evidence()] == [2, 2, 2, 4, 4, 4]


def test_the_second_one_is_not_compiled(story: Story) -> None:
    assert story.second.code == 0, story.second.text
    log = story.log(story.other, "build-horovod")
    assert "from the cache: " in log
    assert "Created wheel" not in log
    assert "proved: horovod.torch over gloo: several ranks" in story.second.out
    # Its libraries do not look into the environment that they were built in.
    assert str(story.root) not in story.log(story.other, "verify")


def test_the_runtimes_alias_leaves_the_name_to_it(story: Story) -> None:
    """The bundled runtime, which is in the same environment, does not answer to horovod."""
    [prefix] = [each.parent for each in story.root.glob("horovod-torch-cpu/*/bin")]
    python = str(prefix / "bin" / "python")
    refused = run([python, "-m", "distributed_dl_training.alias", "enable", "horovod"])
    assert refused.code == 1
    assert f"a real horovod is installed: {prefix}" in refused.text
    hidden = (
        "import sys, distributed_dl_training.alias as alias; sys.path.insert(0, alias._HOME); "
        "import horovod.torch"
    )
    assert "ImportError: a real horovod is installed" in run([python, "-c", hidden]).text


def test_another_mpi_in_front_is_refused(story: Story, tmp_path: Path) -> None:
    build = next(story.root.glob("horovod-torch-cpu/*.build"))
    shown = run(["bash", build / "shell.sh", "mpicxx", "-show"]).out
    folders = [Path(word[2:]) for word in shown.split() if word.startswith("-L")]
    [library] = [each / "libmpi.so" for each in folders if (each / "libmpi.so").exists()]
    # libmpi.so is for the linker; a program asks for libmpi.so.40, or what it is called there.
    name = ".".join(library.resolve().name.split(".")[:3])
    shutil.copy(library, tmp_path / name)
    # What only the build needed is gone after the proof: its tools are put back for this.
    run(["bash", build / "build.sh", "fetch", "tools"])
    prefix = build.with_suffix("")
    words = ["target_tools", "verify", "--builds", "builds.json", "--prefix", prefix]
    asked = run(
        [
            "bash",
            build / "shell.sh",
            "env",
            "PYTHONPATH=build-tools",
            prefix / "bin/python",
            *words,
        ],
        env={"LD_LIBRARY_PATH": str(tmp_path)},
    )
    assert asked.code == 1, asked.text
    assert str(tmp_path) in asked.text


def test_a_library_that_was_cut_off_and_the_flags_of_another_recipe_are_found(
    envbuild: Envbuild, story: Story, tmp_path: Path
) -> None:
    """What is published is looked at where it is; what is broken is a copy."""
    [prefix] = (each.parent for each in story.root.glob("horovod-torch-cpu/*/pyvenv.cfg"))

    def ids(folder: Path, *words: str) -> set[str]:
        """Return what is found, but for what is told for information."""
        before = look(folder)
        done = envbuild("validate", folder, *words, "--json")
        assert look(folder) == before
        found = json.loads(done.out)["findings"]
        return {each["id"] for each in found if each["severity"] != "info"}

    # What is known of the machine's MPI, the plan told already.
    lock = json.loads((story.root / "horovod-torch-cpu" / "lock.json").read_text())
    assert ids(prefix) <= {each["id"] for each in lock["plan"]["findings"]}
    flags = ids(prefix, "--recipe", "horovod-pytorch-nccl")
    assert flags >= {"recipe.other-flag", "recipe.component-missing"}
    broken = tmp_path / "env"
    assert run(["cp", "-a", prefix, broken]).code == 0
    [library] = broken.glob("lib/python3.*/site-packages/horovod/torch/mpi_lib_v2*.so")
    library.parent.chmod(0o755)
    # Further on is only what no program loads, the names of its own symbols.
    data = library.read_bytes()[: 2**20]
    library.unlink()
    library.write_bytes(data)
    assert "library.damaged" in ids(broken)
