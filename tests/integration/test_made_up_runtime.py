"""A made-up runtime on its whole way: created, proved by ranks, published, started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app
from tests.made_up_runtime import add_runtime, write_recipe


@pytest.mark.long
def test_a_further_runtime_is_proved_launched_and_validated(
    index: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipes = write_recipe(tmp_path / "recipes", add_runtime(monkeypatch))
    root = tmp_path / "root"

    def envbuild(*words: str | Path) -> str:
        verb, *rest = map(str, words)
        done = CliRunner().invoke(app, [verb, "--recipes", str(recipes), *rest])
        assert done.exit_code == 0, done.output
        return done.stdout

    made = json.loads(envbuild("create", "mine", "--site", "local", "--root", root, "--json"))
    evidence = [*(root / "mine" / f"{made['id']}.evidence").rglob("*.json")]
    proved = {json.loads(each.read_text()).get("result", {}).get("api") for each in evidence}
    assert {"numpy", "mpi4py"} <= proved
    line = envbuild("launch", "mine", "--root", root, "--", "python", "train.py")
    assert line.split()[-2:] == ["python", "train.py"]
    envbuild("validate", made["prefix"], "--recipe", "mine")
