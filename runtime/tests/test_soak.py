"""Very many small collectives in any order, with joins and process sets: right to the last bit.

DDLT_TEST_COLLECTIVES=1000000 makes them a million on each rank; without it they are fewer.
"""

import os

import pytest

from launcher import job, why_not

COUNT = os.environ.get("DDLT_TEST_COLLECTIVES", "1000")
# Of three, two overlapping sets can be made; four ranks have another one.
RANKS = [2, 3, 4] if "DDLT_TEST_COLLECTIVES" in os.environ else [3]


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("engine", ["mpi", "gloo"])
def test_many_collectives(engine: str, ranks: int) -> None:
    reason = why_not(engine)
    if reason is not None:
        pytest.skip(reason)
    outcome = job(engine, ranks, "soak.py", COUNT, limit=120 + int(COUNT) / 50)
    assert outcome.code == 0, outcome.output
    assert outcome.output.count(" collectives in ") == ranks, outcome.output
    assert outcome.orphans == []
