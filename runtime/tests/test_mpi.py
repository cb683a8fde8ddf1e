"""MPI jobs: the contract on 1, 2 and 4 ranks, and every way in which a rank may end."""

import functools
import os
import tempfile
from typing import List, Tuple

import pytest

import contract
from launcher import Outcome, mpi_job, why_not

REASON = why_not()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


@functools.lru_cache(maxsize=None)
def contract_run(ranks: int) -> Tuple[Outcome, List[List[str]]]:
    """Run the whole contract once; return also the cases that each rank has passed."""
    with tempfile.TemporaryDirectory() as directory:
        outcome = mpi_job(ranks, "contract.py", directory, limit=90)
        passed: List[List[str]] = []
        for rank in range(ranks):
            path = os.path.join(directory, str(rank))
            if os.path.exists(path):
                with open(path) as stream:
                    passed.append(stream.read().split())
            else:
                passed.append([])
    return outcome, passed


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("case", list(contract.CASES))
def test_contract(case: str, ranks: int) -> None:
    outcome, passed = contract_run(ranks)
    missing = [rank for rank in range(ranks) if case not in passed[rank]]
    assert not missing, f"ranks {missing} failed or never came here:\n{outcome.output}"


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_contract_ends_well(ranks: int) -> None:
    outcome, _ = contract_run(ranks)
    assert outcome.code == 0, outcome.output
    assert outcome.orphans == []
    assert "Warning" not in outcome.output, outcome.output


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(
    "way, text",
    [
        ("exception", "ValueError: deliberate"),
        ("unguarded_exception", "ValueError: deliberate"),
        ("keyboard_interrupt", "KeyboardInterrupt"),
        ("sys_exit_0", ": shutdown()"),
        ("sys_exit_3", ": shutdown()"),
        ("sys_exit_text", "deliberate"),
        ("os_exit_3", ""),
        ("sigkill", ""),
        ("sigsegv", ""),
    ],
)
def test_lost_rank_ends_the_job(way: str, text: str, ranks: int) -> None:
    outcome = mpi_job(ranks, "endings.py", way, limit=30)
    assert outcome.code not in (0, None), outcome
    assert outcome.orphans == []
    assert text in outcome.output
    assert "went on" not in outcome.output


@pytest.mark.parametrize("ranks", [2, 4])
def test_silent_exit_ends_the_job(ranks: int) -> None:
    """os._exit(0) tells nobody; MPICH's mpiexec may even return 0, but nothing hangs."""
    outcome = mpi_job(ranks, "endings.py", "os_exit_0", limit=30)
    assert outcome.code is not None
    assert outcome.orphans == []
    assert "went on" not in outcome.output


@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize(
    "way", ["no_shutdown", "finalized_by_program", "mpi_not_started_by_mpi4py"]
)
def test_good_end(way: str, ranks: int) -> None:
    outcome = mpi_job(ranks, "endings.py", way, limit=30)
    assert outcome.code == 0, outcome.output
    assert outcome.orphans == []


def test_harness_kills_what_hangs() -> None:
    outcome = mpi_job(2, "endings.py", "hang", limit=4)
    assert outcome.code is None
    assert outcome.seconds < 20
