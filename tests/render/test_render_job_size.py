"""The size of a job, as it is asked for on the command line."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from tests.verbs import problem_ids


def render(recipe: str, site: str, *words: str) -> Result:
    line = ["render", recipe, "--site", site, "--root", "/apps", *words]
    return CliRunner().invoke(app, line, env={"COLUMNS": "80"})


def lines(text: str, mark: str) -> list[str]:
    return [line.removeprefix(mark) for line in text.splitlines() if line.startswith(mark)]


ASKED = ("--nodes", "4", "--ranks-per-node", "6", "--minutes", "480", "--account", "p_dl")


@pytest.mark.parametrize("form", ["slurm", "job"])
def test_a_job_of_slurm_has_the_size_that_was_asked_for(form: str) -> None:
    done = render("horovod-nccl", "taurus-ml", "--as", form, *ASKED, "--cpus-per-rank", "7")
    assert done.exit_code == 0, done.stderr
    assert lines(done.stdout, "#SBATCH ") == [
        "--job-name=horovod-nccl",
        "--nodes=4",
        "--ntasks-per-node=6",
        "--cpus-per-task=7",
        "--gres=gpu:6",
        "--time=08:00:00",
        "--account=p_dl",
        "--partition=ml",
        "--output=horovod-nccl-%j.out",
    ]
    assert "\nexpected=4 found=" in done.stdout
    assert done.stdout.endswith(
        "\nsrun --mpi=pmix --nodes=4 --ntasks=24 --ntasks-per-node=6 --kill-on-bad-exit=1 "
        '--cpus-per-task=7 python my_program.py "$@"\n'
    )


def test_a_job_of_lsf_with_a_launch_node_has_it_too() -> None:
    asked = (*ASKED[:2], *ASKED[4:], "--cpus-per-rank", "4")
    done = render("horovod-ddl-module", "summit", "--as", "lsf", *asked)
    assert done.exit_code == 0, done.stderr
    assert lines(done.stdout, "#BSUB ") == [
        "-P p_dl",
        "-J horovod-ddl-module",
        "-W 8:00",
        "-nnodes 4",
        "-q batch",
        "-o horovod-ddl-module-%J.out",
    ]
    assert "\njsrun -n4 -r1 -g6 -a6 -c42 -bpacked:4 python" in done.stdout


def test_a_job_of_lsf_elsewhere_asks_for_cores_by_affinity() -> None:
    done = render("allreduce", "local", "--as", "lsf", *ASKED, "--cpus-per-rank", "2")
    assert done.exit_code == 0, done.stderr
    assert lines(done.stdout, "#BSUB ")[3:5] == [
        "-n 24",
        '-R "span[ptile=6] affinity[core(2)]"',
    ]


def test_nothing_asked_is_the_smoke_test_s_size() -> None:
    text = render("horovod-nccl", "taurus-ml", "--as", "slurm").stdout
    assert lines(text, "#SBATCH ")[1:4] == ["--nodes=1", "--ntasks-per-node=4", "--gres=gpu:4"]
    # It says by which command one of another size is made.
    assert lines(text, "#   envbuild ") == [
        "job horovod-nccl --on slurm --nodes N --ranks-per-node N -- PROGRAM"
    ]


def test_strategies_of_tensorflow_get_a_gpu_for_each_rank_or_are_refused() -> None:
    words = ("--as", "slurm", "--ranks-per-node")
    done = render("tensorflow-distribute", "taurus-ml", *words, "6")
    assert lines(done.stdout, "#SBATCH --gres=") == ["gpu:6"]
    done = render("tensorflow-distribute", "taurus-ml", *words, "7", "--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["launch.too-few-gpus"])


@pytest.mark.parametrize(
    ("site", "words", "problem"),
    [
        ("taurus-ml", ["--as", "slurm", "--nodes", "0"], "job.invalid-size"),
        ("taurus-ml", ["--as", "slurm", "--ranks-per-node", "0"], "job.invalid-size"),
        ("taurus-ml", ["--as", "slurm", "--minutes", "-5"], "job.invalid-size"),
        ("taurus-ml", ["--as", "slurm", "--cpus-per-rank", "0"], "job.invalid-size"),
        ("taurus-ml", ["--as", "slurm", "--account", "a b; rm"], "job.invalid-name"),
        ("taurus-ml", ["--as", "slurm", "--ranks-per-node", "7"], "launch.too-few-gpus"),
        ("taurus-ml", ["--as", "lua", "--nodes", "2"], "option.only-for-job"),
        ("taurus-ml", ["--as", "all", "--minutes", "2"], "option.only-for-job"),
        ("taurus-ml", ["--account", "me", "--cpus-per-rank", "2"], "option.only-for-job"),
    ],
)
def test_what_is_refused(site: str, words: list[str], problem: str) -> None:
    done = render("horovod-nccl", site, *words, "--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, [problem])
    assert "\nhint: " in done.stderr
    assert render("horovod-nccl", site, *words).stdout == ""


def test_more_cores_than_a_node_has_are_refused() -> None:
    words = ("--as", "lsf", "--cpus-per-rank", "8", "--json")
    done = render("horovod-ddl-module", "summit", *words)
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["launch.too-few-cores"])
    assert "42" in done.stderr
