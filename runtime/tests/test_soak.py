"""Very many small collectives in any order, with joins and process sets: right to the last bit.

DDLT_TEST_COLLECTIVES=1000000 makes them a million on each rank; without it they are fewer.
"""

import os

import pytest

from launcher import job, why_not

COUNT = os.environ.get("DDLT_TEST_COLLECTIVES", "1000")


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("engine", ["mpi", "gloo"])
def test_many_collectives(engine: str, ranks: int) -> None:
    reason = why_not(engine)
    if reason is not None:
        pytest.skip(reason)
    outcome = job(engine, ranks, "soak.py", COUNT, limit=120 + int(COUNT) / 50)
    assert outcome.code == 0, outcome.output
    assert outcome.output.count(" collectives in ") == ranks, outcome.output
    assert outcome.orphans == []
