"""``envbuild hang`` on real ranks of MPI that wait for one another without end.

TORCH_PYTHON names a Python with mpi4py and its mpiexec beside it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from integration_tools import COMMAND, run

from envbuilder.hang.processes import below, living

RANKS = 3
PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD

def train(gradient):
    world.Allreduce(MPI.IN_PLACE, gradient)
    Path(sys.argv[1], str(world.rank)).touch()
    if world.rank == 1:
        save()
    world.Allreduce(MPI.IN_PLACE, gradient)

def save():
    world.Barrier()

train(np.ones(4))
"""
HERE = {text: number for number, text in enumerate(PROGRAM.splitlines(), 1)}


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start ranks of which one is in another collective, and end them."""
    python = os.environ.get("TORCH_PYTHON", "")
    mpiexec = Path(python).parent / "mpiexec"
    if not python or not mpiexec.exists():
        pytest.skip("needs mpi4py: TORCH_PYTHON names no Python that has it, with its mpiexec")
    if not (Path(sys.executable).with_name("py-spy")).exists():
        pytest.skip("needs py-spy beside this Python")
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    there = tmp_path / "there"
    there.mkdir()
    job = subprocess.Popen(
        [mpiexec, "-n", str(RANKS), python, str(program), str(there)],
        env={**os.environ, "SLURM_JOB_ID": str(os.getpid())},
    )
    try:
        until = time.monotonic() + 60
        while len(list(there.iterdir())) < RANKS:
            assert job.poll() is None, "the job ended"
            assert time.monotonic() < until, "the ranks did not begin"
            time.sleep(0.05)
        yield job
    finally:
        # Ranks that hang hear nothing of a launcher that is told to end.
        for each in below([job.pid], living()):
            os.kill(each.pid, signal.SIGKILL)
        job.wait(30)


def ask(*words: str, until: Callable[[Any], bool]) -> Any:
    """Return what hang says once the ranks are where they go: a look may come before that."""
    for _ in range(20):
        done = run([*COMMAND, "hang", "--seconds", "0.2", "--json", *words])
        assert done.code == 0, done.err
        found = json.loads(done.out)
        if until(found):
            return found
    raise AssertionError(done.out)


@pytest.mark.long
def test_it_names_the_rank_and_the_line(hanging: subprocess.Popen[bytes]) -> None:
    found = ask(str(hanging.pid), until=lambda it: it["verdict"] == "apart")
    assert (found["size"], found["culprits"]) == (RANKS, [1])
    where = {each["rank"]: (each["call"], each["at"]["line"]) for each in found["ranks"]}
    last = max(number for text, number in HERE.items() if "Allreduce" in text)
    assert where == {
        0: ("MPI_Allreduce", last),
        1: ("MPI_Barrier", HERE["    world.Barrier()"]),
        2: ("MPI_Allreduce", last),
    }
    # One that is stopped counts before all else, found as a rank of the job; it is not woken.
    stopped = found["ranks"][2]["pid"]
    os.kill(stopped, signal.SIGSTOP)
    try:
        shown = run([*COMMAND, "hang", "--seconds", "0.2", "--job", str(os.getpid())])
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert f"process {stopped}, stopped, " in shown.out
    assert "SIGCONT" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80
