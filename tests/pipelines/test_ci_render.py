"""``envbuild ci render``: lines of shell, rows, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envbuilder.ci.values import Command, Pipeline, PipelineJob, shell_lines
from envbuilder.cli import app
from envbuilder.model.site import Runner

BROKEN = """\
schema: 1
name: broken
summary: An Open MPI that there is nowhere
arch: [x86_64, aarch64, ppc64le]
stack: {python: ">=3.8", openmpi: "==3.1.3"}
"""


def job(stage: str, recipe: str, *needs: PipelineJob) -> PipelineJob:
    commands = (Command((stage, recipe)),)
    ids = tuple(each.id for each in needs)
    return PipelineJob(stage, recipe, "x86_64", commands, Runner(), needs=ids)  # type: ignore[arg-type]


A_PLAN = job("plan", "a")
A_BUILD = job("build", "a", A_PLAN)
A_PROVE = job("prove", "a", A_BUILD)
B_PLAN = job("plan", "b")
B_BUILD = job("build", "b", B_PLAN)
JOBS = (A_PLAN, A_BUILD, A_PROVE, B_PLAN, B_BUILD)


def test_words_are_quoted_for_the_shell() -> None:
    commands = (Command(("lock", "a b.yaml")), Command(("info", "$x"), "out/a'b", ranks=True))
    one = PipelineJob("plan", "a", "x86_64", commands, Runner(in_job=("salloc", "-p", "m l")))
    *_, first, second = shell_lines(one, in_job=False)
    assert first == "envbuild lock 'a b.yaml' 2>&1 | tee -a envbuild-ci/a-x86_64/plan.log"
    assert second == "salloc -p 'm l' envbuild info '$x' > 'out/a'\"'\"'b'"
    found = replace(one, commands=(Command(("validate", "a"), "x.xml", reports=True),))
    assert shell_lines(found, in_job=True)[-1] == "envbuild validate a > x.xml || true"
    assert shell_lines(one, in_job=True)[-1].startswith("envbuild info")


def test_the_night_is_no_row() -> None:
    night = replace(job("drift", "a"), when="nightly")
    rows = [*Pipeline("here", (), (*JOBS, night)).rows()]
    assert rows == [(A_PLAN, A_BUILD, A_PROVE), (B_PLAN, B_BUILD)]


def run(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["ci", *words], env={"COLUMNS": "80"})


def test_a_recipe_that_cannot_be_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.yaml").write_text(BROKEN, encoding="utf-8")
    words = ("broken.yaml", "--site", "local", "--base", str(tmp_path / "base"))
    done = run(tmp_path, "render", *words)
    assert (done.exit_code, done.stdout) == (3, "")
    assert ": broken.yaml:5:26: " in done.stderr
    assert "openmpi ==3.1.3" in done.stderr
    assert not (tmp_path / "base").exists()


def test_what_cannot_be_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    site = ("--site", "local")
    assert "--base DIR" in run(tmp_path, "render", "allreduce", *site).stderr
    here = (*site, "--base", ".")
    assert run(tmp_path, "render", *here).exit_code == 2
    assert "the same name" in run(tmp_path, "render", "allreduce", "allreduce", *here).stderr
    done = run(tmp_path, "render", "allreduce", *here, "--provider", "github-")
    assert (done.exit_code, "'github'?" in done.stderr) == (2, True)
    unreadable = run(tmp_path, "render", "none.yaml", *here)
    assert (unreadable.exit_code, unreadable.stdout) == (2, "")
    assert "none.yaml" in unreadable.stderr


def test_the_verb_that_is_gone_names_the_runner(tmp_path: Path) -> None:
    done = run(tmp_path, "run", "allreduce", "--base", ".", "--nightly")
    assert (done.exit_code, "gitlab-ci-local" in done.stderr) == (2, True)
    assert "run" not in CliRunner().invoke(app, ["ci", "--help"]).stdout.split()
