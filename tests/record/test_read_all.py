"""Records come in the order in which they were made."""

from __future__ import annotations

import json
from pathlib import Path

from envbuilder.record import read_all
from envbuilder.target_tools.proving.evidence import next_run

# As written before ranks recorded their environment.
_RECORD = {
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


def test_run_10000_is_newer_than_9999(tmp_path: Path) -> None:
    for name in ("0002", "9999", "10000"):
        (tmp_path / name).mkdir()
        record = {**_RECORD, "log": f"{name}/smoke.log"}
        (tmp_path / name / "evidence.json").write_text(json.dumps(record))
    assert [each.log for each in read_all(tmp_path).evidence] == [
        "0002/smoke.log",
        "9999/smoke.log",
        "10000/smoke.log",
    ]
    assert read_all(tmp_path).evidence[0].result.environment == {}
    assert next_run(tmp_path).name == "10001"
