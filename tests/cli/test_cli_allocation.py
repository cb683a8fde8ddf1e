"""``job`` and ``shell``: the job lines of documents 002 and 003, word for word."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envbuilder import data
from envbuilder.cli import app
from envbuilder.render.job import expand_variables
from tests.cli.published import planned, publish_plan
from tests.strict_tools import write_tool
from tests.verbs import problem_ids

# Document 002, lines 48 and 62.
SRUN = "srun -N 1 --ntasks-per-node=6 -p ml --time=08:00:00 --pty bash"
SHORT = {"-N": "--nodes", "-p": "--partition"}
# Document 003, line 112.
BSUB_SHELL = "bsub -P PROJ -W 0:20 -nnodes 1 -Is $SHELL"
# Document 003, line 339: the script for 18 nodes of Summit.
DIRECTIVES = ["-W 0:20", "-P PROJ", "-q batch", "-J ddl_test", "-nnodes 18"]
PROGRAM = (
    *(
        "python",
        "$CONDA_PREFIX/tf_cnn_benchmarks/tf_cnn_benchmarks.py",
        "--variable_update=horovod",
    ),
    *("--model=resnet50", "--num_gpus=1", "--batch_size=256", "--num_batches=100"),
    *("--num_warmup_batches=10", "--data_name=imagenet", "--allow_growth=True", "--use_fp16"),
)
SITE = """\
schema: 1
name: cluster
summary: A cluster
arch: [x86_64]
facts: {gpus-per-node: 4, cores-per-node: 8}
"""


def run(*words: str | Path, **env: str) -> Result:
    outside = dict.fromkeys(("LSB_JOBID", "PBS_JOBID", "SLURM_JOB_ID"))
    line = [str(word) for word in words]
    return CliRunner().invoke(app, line, env={"COLUMNS": "80", **outside, **env})


def printed(*words: str | Path) -> str:
    done = run(*words)
    assert done.exit_code == 0, done.output
    return done.stdout


def directives(text: str, mark: str) -> list[str]:
    return [row.removeprefix(mark) for row in text.splitlines() if row.startswith(mark)]


def options(words: list[str]) -> set[str]:
    """Return the options of srun, each as ``--name=value``."""
    found, rest = set(), words[1:]
    while rest[0] != "--pty":
        word = rest.pop(0)
        found.add(f"{SHORT[word]}={rest.pop(0)}" if word in SHORT else word)
    return found


def site(folder: Path, more: str) -> Path:
    file = folder / "cluster.yaml"
    file.write_text(SITE + more, encoding="utf-8")
    return file


# ``--queue batch`` is Summit's own default.
SUMMIT = ("--site", "summit", "--root", "/apps", "--account", "PROJ", "--minutes", "20")


def test_document_003s_script_for_18_nodes() -> None:
    words = ("job", "ddl", *SUMMIT, "--nodes", "18", "--job-name", "ddl_test", "--", *PROGRAM)
    text = printed(*words)
    # Added: where the output goes, which LSF would send by mail.
    assert sorted(directives(text, "#BSUB ")) == sorted([*DIRECTIVES, "-o ddl_test-%J.out"])
    line = text.splitlines()[-1]
    assert line.startswith("ddlrun python ")
    show = f"ddlrun() {{ printf '%s\\n' \"$@\"; }}; CONDA_PREFIX=/sw/c; {line}"
    done = subprocess.run(["bash", "-c", show], capture_output=True, text=True, check=True)
    there = [word.replace("$CONDA_PREFIX", "/sw/c") for word in PROGRAM]
    assert done.stdout.splitlines() == there


def test_document_003s_interactive_job() -> None:
    value = json.loads(printed("shell", "ddl", *SUMMIT, "--queue", "debug", "--json"))
    *words, shell = value["words"]
    theirs = shlex.split(BSUB_SHELL)[:-1]
    # Added: the queue.
    assert words == [*theirs[:-1], "-q", "debug", theirs[-1]]
    program = shlex.split(shell)
    assert program[:2] == ["bash", "-c"]
    assert "module load ddl/1; " in program[3]


def test_document_002s_interactive_job() -> None:
    words = ("--site", "taurus-ml", "--root", "/apps", "--ranks-per-node", "6", "--minutes", "480")
    ours = shlex.split(printed("shell", "horovod-mpi", *words, "--print"))
    theirs = shlex.split(SRUN)
    # Added: the GPUs, if the stack uses them.
    assert options(ours) - {"--gres=gpu:6"} == options(theirs)
    end = ours.index("--pty")
    assert ours[end : end + 2] == theirs[-2:]
    text = printed("job", "horovod-mpi", *words, "--", "python", "x.py")
    assert options(theirs) <= {*directives(text, "#SBATCH ")}


def test_a_site_states_the_defaults_of_its_scheduler(tmp_path: Path) -> None:
    sites = data.RECIPES / "sites"
    text = (sites / "summit.yaml").read_text(encoding="utf-8")
    stated = "queue: fast\n  account: ours\n  alloc-flags: gpumps smt1\n"
    text = text.replace("queue: batch\n", stated).replace("snapshot: ", f"snapshot: {sites}/")
    there = tmp_path / "summit.yaml"
    there.write_text(text, encoding="utf-8")
    words = ("job", "ddl", "--site", there, "--root", "/apps")
    program = ("--", "python", "x.py")
    found = directives(printed(*words, *program), "#BSUB ")
    assert {"-P ours", "-q fast", '-alloc_flags "gpumps smt1"'} <= {*found}
    found = directives(printed(*words, "--account", "mine", *program), "#BSUB ")
    assert "-P mine" in found
    # What it states is for its own scheduler alone.
    found = directives(printed(*words, "--on", "slurm", *program), "#SBATCH ")
    assert not [line for line in found if "account" in line or "partition" in line]


def test_what_a_site_requires_is_asked_for(tmp_path: Path) -> None:
    more = "scheduler: slurm\njob: {required: [account, memory]}\n"
    there = site(tmp_path, more)
    words = ("allreduce", "--site", there, "--root", "/apps")
    done = run("job", *words, "--", "python", "x.py")
    assert done.exit_code == 2
    assert f"{there}" in done.stderr
    assert "--account NAME --mem SIZE" in done.stderr
    done = run("shell", *words, "--json", "--account", "me")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["job.option-missing"])
    given = ("--account", "me", "--mem", "64G", "--", "python", "x.py")
    found = directives(printed("job", *words, *given), "#SBATCH ")
    assert {"--account=me", "--mem=64G"} <= {*found}
    found = directives(printed("job", *words, "--on", "pbs", *given), "#PBS ")
    assert "mem=64gb" in found[2].split(":")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("job", "--on", "slurm"), "launch.no-program"),
        (("job", "--", "python"), "site.no-scheduler"),
        (("shell",), "site.no-scheduler"),
        (("shell", "--on", "oar"), "option.unknown-value"),
        (("shell", "--on", "pbs"), "shell.no-program"),
        (("shell", "--on", "lsf", "--mem", "4G"), "job.unknown-option"),
        (("shell", "--on", "slurm", "--alloc-flags", "smt1"), "job.unknown-option"),
        (("shell", "--on", "lsf", "--alloc-flags", "smt1"), "job.no-csm"),
        (("shell", "--on", "slurm", "--mem", "many"), "job.invalid-option"),
        (("shell", "--on", "slurm", "--queue", "a b"), "job.invalid-name"),
        (("shell", "--on", "slurm", "--ranks-per-node", "9"), "launch.too-few-cores"),
    ],
)
def test_what_is_refused(words: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    verb, *rest = words
    there = site(tmp_path, "")
    done = run(verb, "allreduce", "--site", there, "--root", "/apps", "--json", *rest)
    assert (done.exit_code, problem_ids(done.stdout)) == (2, [problem])
    assert "\nhint: " in done.stderr


def test_a_shell_of_what_is_not_built_does_not_start() -> None:
    done = run("shell", "allreduce", "--site", "local", "--root", "/apps", "--on", "slurm")
    assert done.exit_code == 2
    assert "envbuild create allreduce" in done.stderr


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("$CONDA_PREFIX/x", "/p/x"),
        ("${CONDA_PREFIX}x", "/px"),
        ("$CONDA_PREFIXES", "$CONDA_PREFIXES"),
        ('a "b" `c` \\ $HOME $(d) $CONDA_PREFIX', 'a "b" `c` \\ $HOME $(d) /p'),
        ("$HOME", "$HOME"),
    ],
)
def test_only_the_prefix_is_expanded_in_the_job(word: str, value: str) -> None:
    text = expand_variables(word, ["CONDA_PREFIX"])
    line = f"CONDA_PREFIX=/p; printf %s {text if text != word else shlex.quote(word)}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout == value


def test_a_strict_bsub_starts_the_shell_with_the_environment(tmp_path: Path) -> None:
    """LSF gives the words after -Is to a shell."""
    there = site(tmp_path, "scheduler: lsf\n")
    root = tmp_path / "my root"
    version = publish_plan(
        root, planned("allreduce", "--site", str(there)), {"bin/python": "#!/bin/sh\necho ours\n"}
    )
    (root / "allreduce" / version.id / "bin" / "python").chmod(0o755)
    (tmp_path / "bin").mkdir()
    write_tool(tmp_path / "bin", "bsub")
    env = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "HOME": str(tmp_path)}
    line = shlex.split(printed("shell", "allreduce/1", "--site", there, "--root", root, "--print"))
    done = subprocess.run(
        line, env=env, input="python\n", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "ours\n"), done.stderr
