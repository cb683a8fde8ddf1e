"""A further runtime is a module and a line: verbs, schema and docs accept it."""

from __future__ import annotations

import json
import venv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.target_tools.smoke.rank import APIS
from tests.made_up_runtime import add_runtime, write_recipe

from .contract import check_flags, check_proofs, check_recipe, check_traces, check_traits
from .test_entries import table


@pytest.fixture
def name(monkeypatch: pytest.MonkeyPatch) -> str:
    return add_runtime(monkeypatch)


def envbuild(*words: str | Path, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(each) for each in words], env={"COLUMNS": "100"})
    assert done.exit_code == code, done.output
    return done.stdout


def test_it_keeps_the_contract(name: str) -> None:
    check_traits(name)
    check_flags(name)
    check_traces(name)
    check_recipe(name)
    (proof,) = check_proofs(name)
    assert proof.api in APIS


def test_every_verb_accepts_it(name: str, tmp_path: Path) -> None:
    mine = ("mine", "--recipes", write_recipe(tmp_path / "recipes", name), "--site", "local")
    plan = json.loads(envbuild("plan", *mine, "--json"))
    assert plan["runtime"]["beside"] == name
    assert [each["api"] for each in plan["proofs"]] == ["numpy", "mpi4py"]
    assert envbuild("launch", *mine, "--", "python", "train.py").split()[0] == "mpiexec"
    envbuild("recipes", "check", tmp_path / "recipes" / "mine.yaml")
    assert f'"{name}"' in envbuild("recipes", "schema")
    assert f"`{name}`" in table()


def test_validate_compares_an_environment_with_a_recipe_for_it(name: str, tmp_path: Path) -> None:
    recipes = write_recipe(tmp_path / "recipes", name)
    venv.create(tmp_path / "env", symlinks=True)
    words = ("--recipe", "mine", "--recipes", recipes, "--json")
    found = json.loads(envbuild("validate", tmp_path / "env", *words, code=4))
    missing = [each["id"] for each in found["findings"]]
    assert "recipe.component-missing" in missing


def test_a_recipe_must_name_what_it_is_a_part_of(name: str, tmp_path: Path) -> None:
    folder = write_recipe(tmp_path / "recipes", name)
    file = folder / "mine.yaml"
    file.write_text(file.read_text().replace('  mpi4py: ">=4"\n', ""))
    envbuild("recipes", "check", file, code=2)


def test_without_the_line_it_is_unknown(tmp_path: Path) -> None:
    folder = write_recipe(tmp_path / "recipes", "mpi4py-collectives")
    envbuild("recipes", "check", folder / "mine.yaml", code=2)
