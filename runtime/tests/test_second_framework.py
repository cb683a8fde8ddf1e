"""The seam for further frameworks, used by a throwaway one: see ``second_framework.py``."""

import pytest

from launcher import job, why_not


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("engine", ["mpi", "gloo"])
def test_a_second_framework_trains(engine: str, ranks: int) -> None:
    reason = why_not(engine)
    if reason is not None:
        pytest.skip(reason)
    outcome = job(engine, ranks, "second_framework.py", limit=120)
    assert outcome.code == 0, outcome.output
    assert outcome.output.count("the second framework trains") == ranks
