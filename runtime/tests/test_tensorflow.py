"""Jobs that test TensorFlow's API: its contract and training; skipped without TensorFlow."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

from launcher import HERE, mpi_job, why_not

NO_MPI = why_not()
pytestmark = [
    pytest.mark.skipif(NO_MPI is not None, reason=str(NO_MPI)),
    pytest.mark.skipif(
        importlib.util.find_spec("tensorflow") is None, reason="tensorflow is not installed"
    ),
]


def run_cases(program: str, ranks: int) -> None:
    outcome = mpi_job(ranks, program, limit=240)
    assert outcome.code == 0, outcome.output
    assert outcome.orphans == []
    counts = re.findall(r"passed (\d+)", outcome.output)
    assert len(counts) == ranks and len(set(counts)) == 1 and int(counts[0]) > 2, outcome.output


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_contract(ranks: int) -> None:
    run_cases("tensorflow_contract.py", ranks)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_training_equals_training_on_one_rank(ranks: int) -> None:
    run_cases("tensorflow_training.py", ranks)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_monitored_session_of_the_document(ranks: int, tmp_path: "os.PathLike[str]") -> None:
    outcome = mpi_job(ranks, "tensorflow_document.py", str(tmp_path), limit=120)
    assert outcome.code == 0, outcome.output
    weights = re.findall(r"weights (\S+)", outcome.output)
    assert len(weights) == ranks and len(set(weights)) == 1, outcome.output
    assert any(name.startswith("model.ckpt-20") for name in os.listdir(tmp_path))


def test_horovod_alias_uses_the_rules_of_horovod() -> None:
    home = os.path.join(os.path.dirname(HERE), "distributed_dl_training", "_alias")
    environ = {"PYTHONPATH": os.pathsep.join([home, os.environ.get("PYTHONPATH", "")])}
    outcome = mpi_job(2, "tensorflow_alias.py", environ=environ, limit=120)
    assert outcome.code == 0, outcome.output
    assert outcome.output.count("averages of integers: 1") == 2, outcome.output


def test_different_order_of_nodes_raises_stall_error() -> None:
    """A rank runs one node at a time: if ranks wait for different nodes, the job must end."""
    environ = {"DDLT_STALL_CHECK_TIME_SECONDS": "2", "DDLT_STALL_SHUTDOWN_TIME_SECONDS": "6"}
    outcome = mpi_job(2, "tensorflow_order.py", environ=environ, limit=90)
    assert outcome.code not in (0, None), outcome.output
    assert "StallError" in outcome.output and "is missing on rank" in outcome.output


def test_import_without_tensorflow_names_it() -> None:
    code = "import sys; sys.modules['tensorflow'] = None; import distributed_dl_training.tensorflow"
    process = subprocess.run(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, universal_newlines=True
    )
    assert process.returncode == 1 and "tensorflow" in process.stderr.splitlines()[-1]
