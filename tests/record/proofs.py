"""Evidence with the records of its ranks, as a smoke test leaves it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from envbuilder.target_tools.proving.judge import Expectations, Outcome, judge
from envbuilder.target_tools.proving.records import read_ranks
from tests.smoke.smoke_ranks import CHECKS, LIBMPI, NONCE, Key, Rank

# As written before ranks recorded their environment.
RECORD = {
    "schema": 1,
    "environment": "demo",
    "id": "x",
    "lock-sha256": "0" * 64,
    "site": "local",
    "arch": "x86_64",
    "execution": "native",
    "time": "2026-01-01T00:00:00Z",
    "result": {
        "tier": "several ranks",
        "verdict": "passed",
        "seconds": 1.0,
        "ranks": 2,
        "launch": "mpiexec",
    },
}


def proved(folder: Path, checks: Sequence[Key] = CHECKS, **about: str) -> Path:
    """Write what a smoke test of two ranks keeps; return the folder of its run.

    *about*: what its record says otherwise than RECORD.
    """
    run = folder / "0001"
    (run / "ranks").mkdir(parents=True)
    for number in range(2):
        Rank(number, libraries=[LIBMPI], checks=checks).write(run / "ranks")
    expected = Expectations(2, ("mpiexec",), 60.0, "/prefix")
    result = judge(
        read_ranks(run / "ranks", NONCE), Outcome(code=0, timed_out=False, seconds=1.0), expected
    )
    assert (result["verdict"], result["tier"]) == ("passed", "several ranks")
    record = {**RECORD, **about, "log": "0001/smoke.log", "result": result}
    (run / "evidence.json").write_text(json.dumps(record))
    return run
