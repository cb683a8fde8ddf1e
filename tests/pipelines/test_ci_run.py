"""``envbuild ci run``: its order, what is done again, its table; and on a recipe that cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envbuilder.ci.command import in_order
from envbuilder.ci.values import (
    Command,
    JobResult,
    JobState,
    Pipeline,
    PipelineJob,
    RunResult,
    shell_lines,
)
from envbuilder.ci.view import finished
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


def result(job: PipelineJob, state: JobState = "passed", **more: object) -> JobResult:
    about = {"job": job.id, "stage": job.stage, "matrix": job.matrix, "state": state, "key": "k"}
    return JobResult.model_validate({**about, **more})


def follow(
    failing: tuple[PipelineJob, ...] = (), earlier: Mapping[str, JobResult] | None = None
) -> tuple[list[str], dict[str, JobState]]:
    """Return the jobs that are done, in order, and how each ended."""
    done = []

    def do(job: PipelineJob) -> JobResult:
        done.append(job.id)
        return result(job, "failed" if job in failing else "passed", code=5 * (job in failing))

    keys = {each.id: "k" for each in JOBS}
    ended = {each.job: each.state for each in in_order(JOBS, keys, earlier or {}, do)}
    return done, ended


def test_every_job_is_done_in_order() -> None:
    assert follow() == ([each.id for each in JOBS], dict.fromkeys((j.id for j in JOBS), "passed"))


def test_one_that_fails_ends_its_own_row_alone() -> None:
    done, ended = follow(failing=(A_BUILD,))
    assert done == ["plan-a-x86_64", "build-a-x86_64", "plan-b-x86_64", "build-b-x86_64"]
    assert [*ended.values()] == ["passed", "failed", "not run", "passed", "passed"]


def test_what_passed_is_not_done_again() -> None:
    earlier = {each.id: result(each) for each in (A_PLAN, A_BUILD, B_PLAN, B_BUILD)}
    done, ended = follow(earlier=earlier)
    assert done == [A_PROVE.id]
    assert set(ended.values()) == {"passed"}


def test_what_needs_one_that_is_done_again_is_too() -> None:
    earlier = {each.id: result(each) for each in (A_BUILD, A_PROVE, B_PLAN, B_BUILD)}
    assert follow(earlier=earlier)[0] == [A_PLAN.id, A_BUILD.id, A_PROVE.id]


def test_the_table_says_why() -> None:
    jobs = (
        result(A_PLAN, seconds=2.0),
        result(A_BUILD, "failed", code=5, seconds=3.0, reason="no compiler", log="x/build.log"),
        result(A_PROVE, "not run", reason=f"needs {A_BUILD.id}"),
        result(B_PLAN, seconds=0.6),
        result(B_BUILD),
    )
    value = RunResult(site="here", jobs=jobs)
    assert finished(value) == (
        "          plan  build   prove  seconds\n"
        "a-x86_64  ok    FAILED  -      5\n"
        "b-x86_64  ok    ok             1\n"
        "\n"
        "build-a-x86_64: no compiler\n"
        "  exit code 5, log: x/build.log\n"
        "\n"
        "1 of 2 passed"
    )
    assert value.exit_code() == 5


@pytest.mark.parametrize(("code", "exit_code"), [(4, 4), (6, 6), (-9, 5), (1, 5), (None, 5)])
def test_the_exit_code_is_that_of_the_first_that_failed(code: int | None, exit_code: int) -> None:
    jobs = (result(A_PLAN), result(B_PLAN, "failed", code=code), result(A_BUILD, "failed", code=3))
    assert RunResult(site="here", jobs=jobs).exit_code() == exit_code
    assert RunResult(site="here", jobs=jobs[:1]).exit_code() == 0


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
    for verb in ("run", "render"):
        done = run(tmp_path, verb, *words)
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
