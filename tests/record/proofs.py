"""Evidence with the records of its ranks, as a smoke test leaves it."""

from __future__ import annotations

import calendar
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from envbuilder.record import EnvironmentRecords, _read, subject_of
from envbuilder.root.environment_lock import read_lock
from envbuilder.target_tools.proving.binding import BOUND, SCHEMA, EarlierEvidence, new_nonce
from envbuilder.target_tools.proving.findings import TIME_FORMAT
from envbuilder.target_tools.proving.judge import Expectations, LauncherNode, Outcome, judge
from envbuilder.target_tools.proving.records import read_ranks
from envbuilder.target_tools.proving.runner import observation_json
from envbuilder.target_tools.root.layout import Home, Version
from tests.smoke.smoke_ranks import CHECKS, LIBMPI, NONCE, Key, Rank

# As written before ranks recorded their environment.
RECORD = {
    "schema": 1,
    "environment": "demo",
    "id": "0" * 12,
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
BEGIN = float(calendar.timegm((2026, 1, 1, 0, 0, 0)))


def subject(home: Home, version: Version) -> dict[str, Any]:
    """Return what evidence of an environment has to name."""
    return subject_of(read_lock(home, version), version.id)


def proved(
    folder: Path,
    about: Mapping[str, Any] = MappingProxyType({}),
    *,
    checks: Sequence[Key] = CHECKS,
    name: str = "0001",
    schema: int = SCHEMA,
    hosts: Sequence[str] = ("node1", "node1"),
    begin: float = BEGIN,
    transport: str | None = None,
) -> Path:
    """Write what a smoke test of two ranks keeps; return the folder of its run.

    *about*: what its record names otherwise than RECORD. *schema*: 1: as the last release that did
    not bind it. *transport*: what must carry the data; None: anything.
    """
    claims = [("allreduce", transport, "its own answer")] if transport else []
    run = folder / name
    (run / "ranks").mkdir(parents=True)
    record = {**RECORD, **about, "schema": schema, "log": f"{name}/smoke.log"}
    nonce = NONCE if schema == 1 else new_nonce(record)
    for number, host in enumerate(hosts):
        fields = {"libraries": [LIBMPI], "claims": claims, "checks": checks}
        one = Rank(number, host=host, nonce=nonce, unix=begin, **fields)
        one.write(run / "ranks")
    if schema == 1:
        forget_answers(run)
    observed = LauncherNode("login", "boot-login", "pid:[1]", begin - 1, begin, ())
    outcome = Outcome(
        code=0, timed_out=False, seconds=1.0, observation=observed if schema > 1 else None
    )
    bound = nonce if schema > 1 else None
    expected = Expectations(2, ("mpiexec",), 60.0, "/prefix", transport=transport, nonce=bound)
    result = judge(read_ranks(run / "ranks", nonce), outcome, expected)
    tier = "several nodes" if len(set(hosts)) > 1 else "several ranks"
    assert (result["verdict"], result["tier"]) == ("passed", tier)
    if schema > 1:
        record["time"] = time.strftime(TIME_FORMAT, time.gmtime(begin))
        record["run"] = observation_json(observed)
    else:
        del result["processes"]
    (run / "evidence.json").write_text(json.dumps({**record, "result": result}))
    return run


def forget_answers(run: Path) -> None:
    """Leave out of the ranks' records what ranks of earlier releases did not record."""
    later = ("answer", "unix", "pid_namespace")
    for path in run.glob("ranks/*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        kept = [{k: v for k, v in line.items() if k not in later} for line in lines]
        path.write_text("".join(json.dumps(line) + "\n" for line in kept))


def read(folder: Path, about: Mapping[str, Any] = RECORD) -> EnvironmentRecords:
    """Return what counts in the folder of the environment that *about* names."""
    return _read(
        folder, {name: about.get(name) for name in BOUND}, None, EarlierEvidence(folder, None)
    )
