"""A made-up backend on its whole way: created, proved, published, started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app
from tests.made_up_backend import add_backend, write_recipe


@pytest.mark.long
def test_a_further_backend_is_built_proved_and_launched(
    index: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = add_backend(tmp_path, monkeypatch)
    recipes, root = write_recipe(tmp_path / "recipes"), tmp_path / "root"

    def envbuild(*words: str | Path) -> str:
        verb, *rest = map(str, words)
        done = CliRunner().invoke(app, [verb, "--recipes", str(recipes), *rest])
        assert done.exit_code == 0, done.output
        return done.stdout

    made = json.loads(envbuild("create", "mine", "--site", "local", "--root", root, "--json"))
    assert made["evidence"]["result"]["tier"] == "several ranks"
    prefix = Path(made["prefix"])
    # Copied, as its template says, where a virtualenv has links.
    assert not (prefix / "bin" / "python").is_symlink()
    lock = json.loads((root / "mine" / f"{made['id']}.build" / "lock.json").read_text())
    assert lock["plan"]["backend"] == name
    module = (root / "modulefiles" / "mine" / "1.lua").read_text()
    assert f'pushenv("COPIED_ENV", "{prefix}")' in module
    line = envbuild("launch", "mine", "--root", root, "--", "python", "train.py")
    assert line.split()[-2:] == ["python", "train.py"]
