"""The standing test against false refusals: what EasyBuild and Spack ship passes check and plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from envbuilder.cli import app

_FILE = Path(__file__).with_name("shipped_stacks.tsv")
_LINES = [line for line in _FILE.read_text().splitlines() if not line.startswith("#")]
STACKS = {
    source: dict(each.split("=") for each in versions.split())
    for source, versions in (line.split("\t") for line in _LINES)
}
# What starts the ranks of an MPI that has no mpiexec of its own.
_LAUNCHERS = {"cray-mpich": ["srun", "--mpi=cray_shasta"]}
# Of a stack that names none.
_PYTHON = "3.11.6"
# The bundled runtime needs it, and the index has no wheel of it for Python 3.7.
_RUNTIME = {"mpi4py": "3.1.4"}


def answer(*words: str | Path) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(app, [*map(str, words), "--json"])
    value: dict[str, Any] = json.loads(done.stdout)
    return done.exit_code, value


def test_enough_stacks_are_listed() -> None:
    spack = [source for source in STACKS if ":" in source]
    assert (len(STACKS) - len(spack) >= 200, len(spack) >= 100) == (True, True)


@pytest.mark.sample(6)
@pytest.mark.parametrize("source", STACKS)
def test_it_passes_check(source: str) -> None:
    versions = STACKS[source]
    words = [f"{name}=={release}" for name, release in versions.items()]
    origins = [word for name in versions for word in ("--fact", f"{name}.origin=module")]
    code, value = answer("advisories", "check", *words, *origins, "--arch", "x86_64")
    holding = (row for row in value["rows"] if row["verdict"] == "holds")
    refusing = [row["id"] for row in holding if row["severity"] == "error"]
    assert (code, refusing) == (0, [])


@pytest.mark.sample(6)
@pytest.mark.parametrize("source", STACKS)
def test_it_is_planned(source: str, tmp_path: Path) -> None:
    versions = {"python": _PYTHON, **STACKS[source]}
    provided = {**_RUNTIME, **versions}
    modules = [
        {
            "name": f"{name}/{release}",
            "provides": {name: release},
            **({"python": "/apps/bin/python3"} if name == "python" else {}),
        }
        for name, release in provided.items()
    ]
    launcher = next((_LAUNCHERS[name] for name in versions if name in _LAUNCHERS), None)
    site = {
        "schema": 1,
        "name": "site",
        "summary": "The modules of a stack",
        "arch": ["x86_64"],
        "module-system": "lmod",
        "module-init": "/apps/lmod/init/bash",
        "facts": {"glibc": "2.34"},
        "origins": ["module", "pip"],
        "modules": modules,
        **({"launcher": {"command": launcher}} if launcher else {}),
    }
    recipe = {
        "schema": 1,
        "name": "recipe",
        "summary": "A stack that was shipped",
        "arch": ["x86_64"],
        "stack": {name: f"=={release}" for name, release in versions.items()},
    }
    for name, document in (("site", site), ("recipe", recipe)):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    code, value = answer("plan", tmp_path / "recipe.yaml", "--site", tmp_path / "site.yaml")
    texts = [each["text"] for conflict in value.get("conflicts", ()) for each in conflict]
    assert (code, texts) == (0, [])
    pins = {pin["component"]: pin["version"] for pin in value["pins"]}
    assert {name: pins.get(name) for name in versions} == versions
