"""``envbuild render``: forms on standard output, to files, of a lock, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from envbuilder.commands.render import forms
from envbuilder.model.plan import Lock, Plan
from tests.made_up_files import locked
from tests.verbs import problem_ids

SITE = ("--site", "taurus-ml", "--root", "/projects/envbuild")


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "80"})


def render(*words: object) -> Result:
    return run("render", "horovod-nccl", *SITE, *words)


@pytest.fixture(scope="module")
def lock() -> Lock:
    planned = run("plan", "horovod-nccl", "--site", "taurus-ml", "--json").stdout
    return locked(Plan.model_validate_json(planned))


@pytest.fixture
def lock_file(lock: Lock, tmp_path: Path) -> Path:
    file = tmp_path / "horovod.lock.json"
    file.write_text(lock.text(), encoding="utf-8")
    return file


def test_a_form_is_printed_alone(tmp_path: Path) -> None:
    done = render("--as", "environment.yml")
    assert done.exit_code == 0
    first, second, *_ = done.stdout.splitlines()
    assert first.startswith("# horovod-nccl ")
    assert second.startswith("# horovod-nccl: ")
    written = render("--as", "environment.yml", "--output", tmp_path / "e.yml")
    assert (written.exit_code, written.stdout) == (0, f"{tmp_path}/e.yml\n")
    assert (tmp_path / "e.yml").read_text(encoding="utf-8") == done.stdout
    as_json = json.loads(render("--as", "environment.yml", "--json").stdout)
    assert (as_json["form"], as_json["text"]) == ("environment.yml", done.stdout)


def test_a_lock_gives_the_id_of_its_environment(lock: Lock, lock_file: Path) -> None:
    text = render("--as", "lua", "--locked", lock_file).stdout
    assert f"/projects/envbuild/horovod-nccl/{lock.id()}/bin" in text
    assert "/projects/envbuild/horovod-nccl/not-locked/bin" in render("--as", "lua").stdout


def test_a_lock_of_another_recipe_is_refused(lock: Lock, tmp_path: Path) -> None:
    other = lock.plan.model_copy(update={"recipe": "other"})
    file = tmp_path / "other.json"
    file.write_text(locked(other).text(), encoding="utf-8")
    done = render("--as", "lua", "--locked", file, "--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["lock.other-request"])


def test_all_writes_every_form_that_the_plan_can_have(tmp_path: Path) -> None:
    done = render("--as", "all", "--output", tmp_path / "all")
    assert done.exit_code == 0
    images, lists = {"def", "dockerfile"}, {"explicit", "conda-lock", "pixi"}
    refused = images | lists
    known = forms()
    expected = {known[form].file.format(name="horovod-nccl") for form in known.keys() - refused}
    assert set(done.stdout.split()) == expected
    assert {path.name for path in (tmp_path / "all").iterdir()} == expected
    for form in images | lists:
        assert f"skipped {form}: " in done.stderr


def test_a_lock_s_build_folder_needs_no_index(lock: Lock, lock_file: Path, tmp_path: Path) -> None:
    done = render("--locked", lock_file, "--output", tmp_path / "folder")
    assert done.exit_code == 0
    text = (tmp_path / "folder" / "environment.sh").read_text(encoding="utf-8")
    assert f"PREFIX=/projects/envbuild/horovod-nccl/{lock.id()}\n" in text
    assert (tmp_path / "folder" / "lock.json").read_text(encoding="utf-8") == lock.text()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--as", "enviroment.yml"], "option.unknown-value"),
        (["--as", "all"], "output.missing"),
        ([], "output.missing"),
        (["--as", "image", "--output", "NEW"], "bind.not-a-folder"),
        (["--as", "all", "--output", "FULL"], "output.exists"),
    ],
)
def test_what_is_refused(words: list[str], problem: str, tmp_path: Path) -> None:
    (tmp_path / "FULL").mkdir()
    (tmp_path / "FULL" / "mine").touch()
    paths = [tmp_path / word if word in ("NEW", "FULL") else word for word in words]
    done = render(*paths, "--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, [problem])
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["FULL", "mine"]
