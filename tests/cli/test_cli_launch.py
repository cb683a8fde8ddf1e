"""``envbuild launch``: which hosts, how many ranks, by what; and what is refused."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from envbuilder.launching.launchers import LAUNCHERS
from tests.cli.published import CHECK, LSF, SLURM
from tests.verbs import problem_ids

pytestmark = pytest.mark.thorough


def words(answer: Result) -> str:
    assert answer.exit_code == 0, answer.stderr
    check, line = shlex.split(answer.stdout)[:CHECK], shlex.split(answer.stdout)[CHECK:]
    assert check[:2] == ["bash", "-c"]
    assert line[-2:] == ["python", "train.py"]
    return shlex.join(line[:-2])


# Site, words, variables; the line.
LINES: dict[str, tuple[str, str, dict[str, str], str]] = {
    "this machine": ("local", "allreduce", {}, "mpiexec -n 2"),
    "by number": ("local", "allreduce/1 --ranks 3", {}, "mpiexec -n 3"),
    "-H": ("local", "allreduce -H a:4,b:4", {}, "mpiexec -n 8 -hosts a:4,b:4"),
    "-H with room": (
        "local",
        "allreduce -H a:4,b:4 --ranks 5",
        {},
        "mpiexec -n 5 -hosts a:4,b:4",
    ),
    "-H in a job": (
        "taurus-ml",
        "horovod-nccl -H ml2:4",
        SLURM,
        "srun --mpi=pmix --nodes=1 --ntasks=4 --ntasks-per-node=4 --kill-on-bad-exit=1 "
        "--nodelist=ml2",
    ),
    "Slurm": (
        "taurus-ml",
        "horovod-nccl",
        SLURM,
        "srun --mpi=pmix --nodes=2 --ntasks=8 --ntasks-per-node=4 --kill-on-bad-exit=1",
    ),
    "Slurm, MPI": ("local", "allreduce", SLURM, "mpiexec -n 8"),
    "Slurm, no MPI": (
        "local",
        "collective-torch-cpu --launcher torchrun",
        SLURM,
        "srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 torchrun --nnodes=2 "
        "--nproc_per_node=4 --no_python --rdzv_backend=c10d --rdzv_endpoint ml1:20017",
    ),
    "LSF": ("summit", "ddl", LSF, "ddlrun"),
    # Summit's slots are cores: with GPUs there is room for a rank on each.
    "LSF, GPUs": ("summit", "horovod-ddl-module", LSF, "jsrun -n2 -r1 -g6 -a6 -c42 -bpacked:7"),
    "LSF, hosts for who asks nobody": (
        "summit",
        "horovod-ddl-module --launcher horovodrun",
        LSF,
        "horovodrun --mpi -np 12 -H a01n02:6,a01n03:6",
    ),
    "LSF without launch nodes": (
        "local",
        "allreduce --launcher distributed-dl-trainingrun",
        {"LSB_JOBID": "3", "LSB_MCPU_HOSTS": "h1 4 h2 2"},
        "distributed-dl-trainingrun -np 6 -H h1:4,h2:2",
    ),
    "CUDA-aware": (
        "summit",
        "tensorflow-distribute --cuda-aware --ranks 6",
        LSF,
        "jsrun --smpiargs=-gpu -n1 -r1 -g6 -a6 -c42 -bpacked:7",
    ),
    # Document 001's own line, in a job; and its form for RDMA.
    "the documents' line": (
        "taurus-ml",
        "horovod-nccl --launcher openmpi --export NCCL_DEBUG=INFO --export LD_LIBRARY_PATH "
        "--export PATH",
        SLURM,
        "mpirun -n 8 --bind-to none --map-by slot -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH "
        "--mca pml ob1 --mca btl '^openib'",
    ),
    "RDMA": (
        "taurus-ml",
        "horovod-nccl --launcher openmpi --rdma -H a:4,b:4",
        {},
        "mpirun -n 8 --host a:4,b:4 --bind-to none --map-by slot -x LD_LIBRARY_PATH -x PATH "
        "-x PYTHONNOUSERSITE -x PYTHONPATH -x VIRTUAL_ENV -x HOROVOD_MPI_THREADS_DISABLE=1 "
        "--mca pml ob1",
    ),
    # The site states it of its OpenMPI/4.0.5, and has InfiniBand.
    "UCX": (
        "taurus-alpha",
        "horovod-pytorch --launcher openmpi",
        SLURM,
        "mpirun -n 8 --bind-to none --map-by slot --mca pml ucx",
    ),
    "handed to named hosts": (
        "local",
        "horovod-torch-cpu -H a:1,b:1 --export X=1 --export PATH=/bin",
        {},
        "mpiexec -n 2 --host a:1,b:1 --bind-to none --map-by slot -x PYTHONNOUSERSITE "
        "-x VIRTUAL_ENV -x X=1 -x PATH=/bin",
    ),
    "handed on by others without a word": (
        "local",
        "allreduce -H a:1,b:1 --export X=1 --export PATH",
        {},
        "env X=1 mpiexec -n 2 -hosts a:1,b:1",
    ),
    "Gloo by Horovod": (
        "local",
        "horovod-torch-cpu --gloo -H a:2,b:2",
        {},
        "horovodrun --gloo -np 4 -H a:2,b:2",
    ),
    "Gloo by the runtime": (
        "local",
        "collective-torch-cpu --gloo",
        {},
        "distributed-dl-trainingrun --gloo -np 2",
    ),
    "a Horovod without MPI": (
        "local",
        "horovod-gloo",
        {},
        "horovodrun --gloo -np 2",
    ),
    "the documents' spelling": (
        "local",
        "collective-torch-cpu --launcher Distributed-DL-trainingrun -H a:2,b:2",
        {},
        "distributed-dl-trainingrun -np 4 -H a:2,b:2",
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_the_exact_line(name: str, launch: Any) -> None:
    site, asked, env, line = LINES[name]
    assert words(launch(site, *shlex.split(asked), **env)) == line


def test_a_hostfile_is_read_from_where_one_is(
    launch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hosts").write_text("a slots=2\nb slots=2 # the small one\n")
    monkeypatch.chdir(tmp_path)
    answer = launch("local", "allreduce", "--hostfile", "hosts", **SLURM)
    assert words(answer) == "mpiexec -n 4 -hosts a:2,b:2"
    assert "a:2, b:2 (hosts)\n" in answer.stderr


def test_lsf_s_file_goes_before_its_variable(launch: Any, tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("batch2\n" + "a01n07\n" * 42)
    answer = launch("summit", "ddl", **LSF, LSB_DJOB_HOSTFILE=str(file))
    assert words(answer) == "ddlrun"
    assert "a01n07:6 (the job of LSF)" in answer.stderr


def test_what_to_load_first_is_said_where_it_is_not_loaded(launch: Any, roots: Path) -> None:
    answer = launch("local", "allreduce")
    assert f"module use '{roots}/local/modulefiles'; module load" in answer.stderr
    prefix = re.search(r"source '(.*)/bin/activate'", answer.stderr)
    assert prefix
    assert "load it" not in launch("local", "allreduce", VIRTUAL_ENV=prefix[1]).stderr
    # Where modules of the site belong to it, activating it would not do.
    assert "source" not in launch("taurus-ml", "horovod-nccl", **SLURM).stderr


@pytest.mark.parametrize(
    ("words", "env", "facts"),
    [
        ("local allreduce -H a:4,b:4", {}, ["cores-per-node"]),
        ("local allreduce", {}, []),
        ("local allreduce", SLURM, []),
        ("summit horovod-ddl-module --nodes 2", {}, []),
    ],
    ids=str,
)
def test_facts_that_the_check_of_the_nodes_lacks_are_named(
    launch: Any, words: str, env: dict[str, str], facts: list[str]
) -> None:
    answer = launch(*words.split(), **env)
    assert answer.exit_code == 0, answer.stderr
    assert re.findall(r"(?:gpus|cores)-per-node", answer.stderr) == facts


def test_strategies_are_told_of_tf_config(launch: Any) -> None:
    assert "TF_CONFIG" in launch("summit", "tensorflow-distribute", **LSF).stderr
    assert "TF_CONFIG" not in launch("summit", "ddl", **LSF).stderr


def test_json_gives_the_words_as_a_list(launch: Any) -> None:
    program = ("--", "python", "a b.py", "--note=it's $HOME", "")
    answer = launch("local", "allreduce", "-H", "a:2", "--json", program=program)
    told = json.loads(answer.stdout)
    check, told["words"] = told["words"][:CHECK], told["words"][CHECK:]
    assert told == {
        "environment": "allreduce",
        "number": 1,
        "contract": [],
        "launcher": "hydra",
        "ranks": 2,
        "hosts": ["a:2"],
        "hosts-from": "-H",
        "words": ["mpiexec", "-n", "2", "-hosts", "a:2", *program[1:]],
    }
    text = launch("local", "allreduce", "-H", "a:2", program=program).stdout
    assert shlex.split(text) == [*check, *told["words"]]


def test_nothing_is_written(launch: Any, roots: Path) -> None:
    before = sorted(roots.rglob("*"))
    assert launch("local", "allreduce").exit_code == 0
    assert sorted(roots.rglob("*")) == before


def test_env_named_site_counts_where_it_is_the_environments(
    launch: Any, roots: Path, tmp_path: Path
) -> None:
    shown = CliRunner().invoke(app, ["sites", "show", "taurus-ml"]).stdout
    file = tmp_path / "taurus-ml.yaml"
    text = shown.replace("gpus-per-node: 6", "gpus-per-node: 2")
    file.write_text(re.sub(r"(?m)^snapshot: .*\n", "", text))
    answer = launch("taurus-ml", "horovod-nccl", "--json", **SLURM, ENVBUILD_SITE=str(file))
    assert problem_ids(answer.stdout) == ["launch.too-few-gpus"]
    assert launch("taurus-ml", "horovod-nccl", **SLURM, ENVBUILD_SITE="summit").exit_code == 0


def test_the_help_names_every_launcher() -> None:
    shown = " ".join(CliRunner().invoke(app, ["launch", "--help"]).stdout.split())
    named = re.search(r"--launcher KIND One of: (.*?) \(default", shown)
    assert named
    # Long names are wrapped at their hyphens.
    names = named[1].replace("- ", "-").replace(" or ", ", ")
    assert tuple(names.split(", ")) == tuple(LAUNCHERS)


def test_completion_knows_the_environments_of_a_root(roots: Path) -> None:
    def completed(words: str) -> list[str]:
        variables = {
            "_ENVBUILD_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
            "ENVBUILD_ROOT": str(roots / "local"),
        }
        answer = CliRunner().invoke(app, [], env=variables, prog_name="envbuild")
        assert answer.stderr == ""
        return answer.stdout.split()

    assert completed("envbuild launch al") == ["allreduce"]
    assert completed("envbuild info horovod-torch-cpu/") == ["horovod-torch-cpu/1"]
    assert completed(f"envbuild launch --root {roots}/taurus-ml h") == ["horovod-nccl"]
    assert completed("envbuild launch --root /nowhere/at/all h") == []
