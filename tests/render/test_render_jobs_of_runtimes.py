"""Jobs of runtimes that are started in a way of their own: TF_CONFIG, ddlrun."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app
from tests.verbs import problem_ids


def job(recipe: str, site: str, form: str = "job", *more: str) -> str:
    words = ["render", recipe, "--site", site, "--as", form, "--root", "/apps", *more]
    done = CliRunner().invoke(app, words, env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.stderr
    return done.stdout


def last(text: str) -> str:
    return text.rstrip().splitlines()[-1]


@pytest.mark.parametrize(
    ("site", "line", "scheduler"),
    [
        (
            "taurus-ml",
            "srun --mpi=pmix --nodes=1 --ntasks=2 --ntasks-per-node=2 --kill-on-bad-exit=1 "
            "--distribution=block",
            "#SBATCH --gres=gpu:2",
        ),
        ("summit", "jsrun -n1 -r1 -g6 -a2 -c42 -bpacked:21", "#BSUB -nnodes 1"),
    ],
)
def test_strategies_of_tensorflow_get_tf_config_on_every_rank(
    site: str, line: str, scheduler: str
) -> None:
    text = job("tensorflow-distribute", site)
    assert last(text) == f'{line} bash -c "$task" tf-config python my_program.py "$@"'
    assert "export TF_CONFIG=" in text
    assert scheduler in text


def test_strategies_without_gpus_ask_for_none() -> None:
    assert "gres" not in job(
        "tensorflow-distribute", "taurus-scs5", "job", "--partition", "haswell"
    )


@pytest.mark.parametrize(("form", "scheduler"), [("job", "#BSUB -nnodes 1"), ("slurm", "#SBATCH")])
def test_ddl_is_started_by_ddlrun(form: str, scheduler: str) -> None:
    text = job("ddl", "summit", form)
    assert last(text) == 'ddlrun python my_program.py "$@"'
    assert scheduler in text
    assert "TF_CONFIG" not in text


def test_horovod_on_ddl_is_not() -> None:
    text = job("horovod-ddl-module", "summit")
    assert last(text) == 'jsrun -n1 -r1 -g6 -a6 -c42 -bpacked:7 python my_program.py "$@"'


def test_a_job_needs_a_site_with_a_scheduler() -> None:
    words = ["render", "allreduce", "--site", "local", "--as", "job", "--json"]
    done = CliRunner().invoke(app, words, env={"COLUMNS": "100"})
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["site.no-scheduler"])
