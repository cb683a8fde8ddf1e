"""``envbuild launch RECIPE --site SITE``: the line before anything is built."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from tests.cli.conftest import SCHEDULERS
from tests.cli.published import LSF, SLURM
from tests.verbs import problem_ids

pytestmark = pytest.mark.thorough

# Document 001, the part on Open MPI, and what it cites of Horovod for RDMA.
DOCUMENT = """
mpirun -np 16
-bind-to none -map-by slot
-x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH
-mca pml ob1 -mca btl ^openib
python my_application.py
"""
DOCUMENT_RDMA = """
mpirun -np 16
-H server1:4,server2:4,server3:4,server4:4
-bind-to none -map-by slot
-x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x HOROVOD_MPI_THREADS_DISABLE=1 -x PATH
-mca pml ob1
python train.py
"""
# What the document spells in a way that Open MPI 5 does not take.
SPELT = {
    "-np": "-n",
    "-H": "--host",
    "-bind-to": "--bind-to",
    "-map-by": "--map-by",
    "-mca": "--mca",
}
HOSTS = "server1:4,server2:4,server3:4,server4:4"


@pytest.fixture
def launch(tmp_path: Path) -> Any:
    """Return what asks for a line where there is no root."""

    def run(words: str, program: str = "python train.py", **env: str) -> Result:
        none = dict.fromkeys((*SCHEDULERS, "ENVBUILD_SITE", "ENVBUILD_ROOT"))
        variables = {**none, "XDG_DATA_HOME": str(tmp_path / "data"), **env, "COLUMNS": "80"}
        line = ["launch", *shlex.split(words), "--", *shlex.split(program)]
        return CliRunner().invoke(app, line, env=variables)

    return run


def line(answer: Result) -> list[str]:
    assert answer.exit_code == 0, answer.stderr
    return shlex.split(answer.stdout)


def documented(text: str) -> list[str]:
    return [SPELT.get(word, word) for word in text.split()]


def test_document_001_s_line_in_a_job_of_four_nodes(launch: Any, tmp_path: Path) -> None:
    answer = launch(
        "horovod-mpi --site taurus-ml --launcher openmpi --nodes 4 --ranks 16 "
        "--export NCCL_DEBUG=INFO --export LD_LIBRARY_PATH --export PATH",
        "python my_application.py",
    )
    assert line(answer) == documented(DOCUMENT)
    assert "16 ranks" in answer.stderr
    assert "envbuild create horovod-mpi --site taurus-ml" in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_document_001_s_line_for_rdma(launch: Any) -> None:
    answer = launch(
        f"horovod-mpi --site taurus-ml --launcher openmpi --rdma -H {HOSTS} "
        "--export NCCL_DEBUG=INFO --export LD_LIBRARY_PATH --export PATH"
    )
    ours, theirs = line(answer), documented(DOCUMENT_RDMA)
    exports = {word for option, word in pairwise(ours) if option == "-x"}
    # Hosts that are reached by ssh must be handed what the environment sets, too.
    further = exports - set(theirs)
    assert further == {"PYTHONNOUSERSITE", "PYTHONPATH", "VIRTUAL_ENV"}
    assert set(theirs) - set(ours) == set()
    assert [word for word in ours if word not in further | exports | {"-x"}] == [
        word for word in theirs if word not in exports | {"-x"}
    ]


@pytest.mark.parametrize(
    ("words", "env", "expected"),
    [
        (
            "horovod-nccl --site taurus-ml",
            SLURM,
            "srun --mpi=pmix --nodes=2 --ntasks=8 --ntasks-per-node=4 --kill-on-bad-exit=1",
        ),
        (
            "horovod-nccl --site taurus-ml --nodes 2 --ranks 12",
            {},
            "srun --mpi=pmix --nodes=2 --ntasks=12 --ntasks-per-node=6 --kill-on-bad-exit=1",
        ),
        (
            "horovod-ddl-module --site summit --nodes 2 --ranks 12",
            {},
            "jsrun -n2 -r1 -g6 -a6 -c42 -bpacked:7",
        ),
        ("ddl --site summit", LSF, "ddlrun"),
        ("allreduce --site local", {}, "mpiexec -n 2"),
        ("allreduce --site local -H a:2,b:2", {}, "mpiexec -n 4 -hosts a:2,b:2"),
    ],
)
def test_other_sites(launch: Any, words: str, env: dict[str, str], expected: str) -> None:
    assert line(launch(words, **env)) == [*expected.split(), "python", "train.py"]


def test_json_has_no_number(launch: Any) -> None:
    answer = launch("allreduce --site local --json")
    assert json.loads(answer.stdout)["number"] is None


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("allreduse --site local", "document.not-found"),
        ("allreduce/1 --site local", "root.missing"),
        ("allreduce --site local --nodes 2", "site.no-scheduler"),
        ("horovod-nccl --site taurus-ml --nodes 2 -H a:1", "option.conflict"),
        ("horovod-nccl --site taurus-ml --nodes 0", "job.invalid-size"),
        ("horovod-nccl --site taurus-ml --nodes 2 --ranks 14", "launch.too-few-gpus"),
        (
            "horovod-nccl --site taurus-ml --nodes 2 --launcher horovodrun",
            "launch.hosts-required",
        ),
    ],
)
def test_what_is_refused(launch: Any, words: str, problem: str) -> None:
    answer = launch(f"{words} --json")
    assert (answer.exit_code, problem_ids(answer.stdout)) == (2, [problem])
