"""``import``: what others built is listed with what was found, and nothing of it is changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import zoo
from typer.testing import CliRunner, Result
from zoo import Made

from envbuilder.cli import app
from envbuilder.target_tools.manifest import look
from envbuilder.target_tools.root import store
from tests.verbs import problem_ids

pytestmark = pytest.mark.thorough

Run = Callable[..., Result]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    store.open_root(path, "local", "x86_64")
    return path


@pytest.fixture
def run(root: Path, tmp_path: Path) -> Run:
    env = {"COLUMNS": "80", "HOME": str(tmp_path), "PYTHONPATH": "", "LD_LIBRARY_PATH": ""}

    def called(*words: str | Path) -> Result:
        everything = [*map(str, words), "--root", str(root)]
        return CliRunner().invoke(app, everything, env=env)

    return called


@pytest.fixture
def other(first: Made, tmp_path: Path) -> Made:
    made = zoo.copy(first, tmp_path / "Old Env")
    (made.packages / "yaml" / "loader.py").unlink()
    return made


def test_it_is_listed_with_what_was_found(run: Run, root: Path, other: Made) -> None:
    before = look(other.prefix)
    done = run("import", other.prefix)
    assert done.exit_code == 0, done.output
    listed = run("list")
    assert "\nexternal (" in listed.stdout
    assert f"old-env: {other.prefix}" in " ".join(listed.stdout.split())
    assert "virtualenv, Python" in listed.stdout
    assert "1 error" in listed.stdout
    (row,) = json.loads(run("list", "--json").stdout)["external"]
    assert (row["name"], row["errors"], row["there"]) == ("old-env", 1, True)
    found = run("validate", "old-env")
    assert found.exit_code == 4
    assert "package.gone: PyYAML" in found.stdout
    assert look(other.prefix) == before


def test_the_first_of_a_root(other: Made, tmp_path: Path) -> None:
    """A site may begin with what is there already. No folder of anything else becomes a root."""
    env = {"COLUMNS": "80", "HOME": str(tmp_path), "ENVBUILD_ROOT": str(tmp_path / "new")}
    done = CliRunner().invoke(app, ["import", str(other.prefix)], env=env)
    assert done.exit_code == 0, done.output
    listed = json.loads(CliRunner().invoke(app, ["list", "--json"], env=env).stdout)
    assert [each["name"] for each in listed["external"]] == ["old-env"]
    words = ["import", str(other.prefix), "--root", str(tmp_path), "--json"]
    refused = CliRunner().invoke(app, words, env=env)
    assert (refused.exit_code, problem_ids(refused.stdout)) == (2, ["root.not-empty"])
    words = ["import", "--forget", "old-env", "--root", str(tmp_path / "no"), "--json"]
    absent = CliRunner().invoke(app, words, env=env)
    assert (absent.exit_code, problem_ids(absent.stdout)) == (2, ["root.missing"])
    assert not (tmp_path / "no").exists()


def test_nothing_of_it_is_changed_or_removed(run: Run, root: Path, other: Made) -> None:
    run("import", other.prefix, "--name", "old")
    before = look(other.prefix)
    for words in (("remove", "old"), ("remove", "old", "--all")):
        done = run(*words, "--json")
        assert (done.exit_code, problem_ids(done.stdout)) == (2, ["environment.external"])
    gone = run("import", "--forget", "old")
    assert gone.exit_code == 0
    assert str(other.prefix) in gone.stdout
    assert look(other.prefix) == before
    assert json.loads(run("list", "--json").stdout)["external"] == []


def test_again_and_gone(run: Run, root: Path, other: Made, first: Made) -> None:
    run("import", other.prefix)
    kept = first.packages / "yaml" / "loader.py"
    shutil.copy2(kept, other.packages / "yaml" / "loader.py")
    assert run("import", other.prefix).exit_code == 0
    assert "no findings" in run("list").stdout
    shutil.rmtree(other.prefix)
    assert "no longer exists" in " ".join(run("list").stdout.split())


def test_names(run: Run, root: Path, other: Made, first: Made, tmp_path: Path) -> None:
    run("import", other.prefix, "--name", "old")
    taken = run("import", first.prefix, "--name", "old", "--json")
    assert (taken.exit_code, problem_ids(taken.stdout)) == (2, ["environment.name-in-use"])
    own = run("import", zoo.copy(first, root / "own").prefix, "--json")
    assert (own.exit_code, problem_ids(own.stdout)) == (2, ["environment.not-external"])
    assert run("import", other.prefix, "--name", "../x").exit_code == 2
    assert run("import", tmp_path / "absent").exit_code == 2
    assert run("import", "--forget", "../old").exit_code == 2
    assert run("import").exit_code == 2
    assert [each.name for each in (root / ".external").iterdir()] == ["old.json"]


@pytest.mark.parametrize("text", ["", "{}", "[" * 5000, '{"schema": 1, "name": "x"}'])
@pytest.mark.sample(2)
def test_a_damaged_record_is_named(text: str, run: Run, root: Path, other: Made) -> None:
    run("import", other.prefix)
    (root / ".external" / "old-env.json").write_text(text)
    done = run("list", "--json")
    assert done.exit_code == 0
    (line,) = json.loads(done.stdout)["damaged"]
    assert "old-env.json" in line
    assert run("import", other.prefix).exit_code == 0
    assert json.loads(run("list", "--json").stdout)["damaged"] == []
