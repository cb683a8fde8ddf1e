"""The programs of documents 003 and 004 on the bundled runtime, and their ports.

TENSORFLOW_1_PYTHON and TENSORFLOW_PYTHON name Pythons with TensorFlow 1.15 and 2, and mpi4py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import goldens
from tests.layers import CHECKOUT

from .programs import HERE, diffs, texts
from .seed_lines import NAMED, seeds

RUNTIME = CHECKOUT / "runtime"
ENVIRON = {
    "PYTHONPATH": f"{RUNTIME}:{RUNTIME}/distributed_dl_training/_alias_ddl",
    "PYTHONNOUSERSITE": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # More ranks than cores, as root, and ranks that sleep while they wait.
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
PYTHONS = {
    "hooks": "TENSORFLOW_1_PYTHON",
    "mnist_cnn": "TENSORFLOW_1_PYTHON",
    "hooks_compat_v1": "TENSORFLOW_PYTHON",
    "hooks_keras3": "TENSORFLOW_PYTHON",
    "mnist_cnn_tf_keras": "TENSORFLOW_PYTHON",
    "mnist_cnn_keras3": "TENSORFLOW_PYTHON",
}


@pytest.fixture
def documents() -> Path:
    folder = seeds()
    if folder is None:
        pytest.skip(f"needs the seed documents beside the checkout, or {NAMED}")
    return folder


def run_ranks(variable: str, ranks: int, program: Path) -> str:
    """Return what the ranks print; the program runs in its own folder."""
    python = os.environ.get(variable)
    if not python:
        pytest.skip(f"{variable} names no Python")
    beside = Path(python).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    assert mpiexec, "no mpiexec"
    done = subprocess.run(
        [mpiexec, "-n", str(ranks), python, "-W", "ignore", program.name],
        cwd=program.parent,
        env={**os.environ, **ENVIRON},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_diffs_of_the_programs(documents: Path) -> None:
    made = diffs(documents)
    assert made.keys() == {f"{name}.diff" for name in PYTHONS} - {"mnist_cnn.diff"}
    changed = [line for line in made["hooks.diff"].splitlines() if line.startswith("+")]
    assert 0 < len(changed) <= 10
    goldens.compare_folder(HERE / "diffs", made)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("name", PYTHONS)
def test_program(documents: Path, tmp_path: Path, name: str, ranks: int) -> None:
    (tmp_path / "train.py").write_text(texts(documents)[name], encoding="utf-8")
    shutil.copy(HERE / "digits.py", tmp_path)
    output = run_ranks(PYTHONS[name], ranks, tmp_path / "train.py")
    reports = re.findall(r"rank (\d) of (\d): weights (.+?\])", output)
    assert sorted(rank for rank, _, _ in reports) == [str(rank) for rank in range(ranks)], output
    # Each rank has other data and, in 003, other random numbers; there they also print losses.
    assert {(size, weights) for _, size, weights in reports} == {(str(ranks), reports[0][2])}
    if name.startswith("hooks"):
        assert list((tmp_path / "train_logs").glob("checkpoint*")), output
        return
    [accuracy] = re.findall(r"test accuracy (\S+)", output)
    assert float(accuracy) > 0.9


@pytest.mark.long
@pytest.mark.parametrize("variable", ["TENSORFLOW_1_PYTHON", "TENSORFLOW_PYTHON"])
def test_mpi4py_in_one_program(documents: Path, tmp_path: Path, variable: str) -> None:
    for name in ("world", "split"):
        (tmp_path / f"{name}.py").write_text(texts(documents)[name], encoding="utf-8")
    run_ranks(variable, 4, tmp_path / "world.py")
    output = run_ranks(variable, 4, tmp_path / "split.py")
    pairs = re.findall(r"COMM_WORLD rank: (\d), Distributed-DL-training rank: (\d)", output)
    assert sorted(pairs) == [("0", "0"), ("1", "0"), ("2", "1"), ("3", "1")], output
