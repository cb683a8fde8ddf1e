"""``info --verify`` and ``smoke`` of an environment whose files were changed, or never recorded."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from envbuilder.target_tools.root.layout import Home, Version
from tests.cli.published import planned, publish_plan
from tests.verbs import problem_ids

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough


def run(*words: str) -> Result:
    return CliRunner().invoke(app, [*words], env={"COLUMNS": "80"})


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An environment whose prefix holds a file that was put there before it was published."""
    root = tmp_path / "root"
    version = publish_plan(root, planned("allreduce"), {"lib/module.py": "VALUE = 1\n"})
    assert version.number == 1
    return Home(root, "allreduce")


def prefix(home: Home) -> Path:
    (folder,) = (each.parent.parent for each in home.folder.glob("*/lib/module.py"))
    return folder


def info(home: Home, *words: str) -> Result:
    return run("info", "allreduce", "--root", str(home.root), *words)


def test_files_are_recorded_when_they_are_published(home: Home) -> None:
    told = info(home)
    assert (told.exit_code, "files  " in told.stdout) == (0, True)
    told = info(home, "--verify")
    assert told.exit_code == 0
    assert json.loads(info(home, "--verify", "--json").stdout)["changed"] == []
    assert json.loads(info(home, "--json").stdout)["changed"] is None


def test_a_file_that_was_changed_is_drift_and_is_not_run(home: Home) -> None:
    module = prefix(home) / "lib" / "module.py"
    module.chmod(0o644)
    module.write_text("VALUE = 2\n", encoding="utf-8")
    module.chmod(0o444)
    told = info(home, "--verify")
    assert told.exit_code == 8
    assert "  lib/module.py: other content\n" in told.stdout
    smoked = run("smoke", "allreduce", "--root", str(home.root), "--json")
    assert (smoked.exit_code, problem_ids(smoked.stdout)) == (8, ["environment.files-changed"])
    assert "\n  lib/module.py: other content\n" in smoked.stderr
    assert f"envbuild info allreduce/1 --verify --root '{home.root}'" in smoked.stderr
    assert [each.name for each in home.folder.glob("*.evidence/*")] == ["manifest.json"]


def test_the_step_check_of_a_build_folder_names_it_before_anything_of_it_runs(
    home: Home, tmp_path: Path
) -> None:
    [lock], folder = home.folder.glob("*.build/lock.json"), tmp_path / "folder"
    place = ("--root", str(home.root), "--output", str(folder))
    told = run("render", "allreduce", "--locked", str(lock), *place)
    assert told.exit_code == 0, told.stderr

    def check() -> subprocess.CompletedProcess[str]:
        words = ["bash", folder / "build.sh", "check"]
        return subprocess.run(words, check=False, capture_output=True, text=True)

    program = prefix(home) / "bin" / "python"
    prefix(home).chmod(0o755)
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch '{tmp_path / 'ran'}'\n", encoding="utf-8")
    program.chmod(0o755)
    done = check()
    assert done.returncode == 8, done.stderr
    assert "allreduce/1" in done.stderr
    assert "\n  bin/python: " in done.stderr
    assert "step check failed" in done.stderr
    assert not (tmp_path / "ran").exists()
    # Of what is not published nothing is recorded, and its Python is asked.
    home.modulefile(Version(1, lock.parent.name.partition(".")[0], "lua")).unlink()
    assert check().returncode == 0
    assert (tmp_path / "ran").exists()


def test_a_prefix_from_before_there_were_manifests_is_said_to_have_none(home: Home) -> None:
    (manifest,) = home.folder.glob("*.evidence/manifest.json")
    manifest.unlink()
    told = info(home, "--verify")
    assert (told.exit_code, "files       no manifest, " in told.stdout) == (0, True)
    assert json.loads(info(home, "--verify", "--json").stdout)["changed"] is None


@pytest.mark.parametrize("text", ["", "{}", '{"schema": 1, "recorded": "x", "files": {}}'])
def test_a_damaged_manifest_is_drift_and_says_how_to_heal_it(home: Home, text: str) -> None:
    (manifest,) = home.folder.glob("*.evidence/manifest.json")
    manifest.write_text(text, encoding="utf-8")
    told = info(home, "--json")
    assert (told.exit_code, problem_ids(told.stdout)) == (8, ["environment.manifest-damaged"])
    assert str(manifest) in told.stderr.replace("\n", "")
    assert "hint: " in told.stderr


def test_a_default_that_is_not_recognised_is_named_at_removal(home: Home) -> None:
    default = home.modulefiles / ".modulerc.lua"
    default.write_text("-- cut off\n")
    done = run("remove", "allreduce/1", "--root", str(home.root))
    assert done.exit_code == 0, done.stderr
    assert str(default) in done.stderr.replace("\n", "")
