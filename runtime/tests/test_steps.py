"""Many steps: bit by bit what MPI alone gives, and memory does not grow.

DDLT_TEST_STEPS=10000 makes them 10,000, which takes minutes; CI makes do with fewer.
"""

import os

import pytest

from launcher import mpi_job, why_not

STEPS = os.environ.get("DDLT_TEST_STEPS", "200")


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
@pytest.mark.parametrize("ranks", [2, 4])
def test_steps_in_random_orders(ranks: int) -> None:
    outcome = mpi_job(ranks, "steps.py", STEPS, limit=120 + int(STEPS))
    assert outcome.code == 0, outcome.output
    assert outcome.output.count("objects") == ranks
