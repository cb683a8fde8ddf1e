"""CPU time of ``envbuild list`` over a root of many environments; median and least of the runs.

    python benchmarks/listing.py [RUNS [ENVIRONMENTS]]

Run it in a checkout. The environments are made up: a tenth as many recipes, ten numbers each, with
locks, modulefiles and a record of 38 checks as ``create`` writes them. The bound that the project
holds itself to is 0.5 s for 500.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from envbuilder.model.plan import Lock, Plan
from envbuilder.target_tools.root import publish, store
from tests.made_up_files import locked

ENVBUILD = str(Path(sys.executable).parent / "envbuild")
# As pip leaves it: see benchmarks/plan.py.
AS_INSTALLED = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
NUMBERS = 10


def shipped() -> Lock:
    """Return a lock of the recipe allreduce for this machine, its files made up."""
    words = [ENVBUILD, "plan", "allreduce", "--json"]
    text = subprocess.run(words, check=True, capture_output=True).stdout
    return locked(Plan.model_validate_json(text))


def lock_of(lock: Lock, name: str, number: int) -> Lock:
    """Return a lock that decides something else."""
    smoke = lock.plan.smoke.model_copy(update={"max_bytes": 1024 * number})
    plan = lock.plan.model_copy(update={"recipe": name, "smoke": smoke})
    return lock.model_copy(update={"plan": plan})


def record(lock: Lock) -> str:
    """Return a record of a smoke test that passed on two ranks."""
    checks = [
        {
            "name": "allreduce",
            "dtype": "float32",
            "bytes": 4 << each % 15,
            "passed": True,
            "ranks": 2,
        }
        for each in range(38)
    ]
    timings = [
        {"bytes": 4 << 2 * each, "latency-us": 42.0, "bus-bandwidth": 1.0, "repetitions": 20}
        for each in range(8)
    ]
    result = {
        "verdict": "passed",
        "tier": "several ranks",
        "ranks": 2,
        "nodes": ["node1"],
        "seconds": 1.4,
        "reasons": [],
        "checks": checks,
        "timings": timings,
        "libraries": [{"kind": "mpi", "path": "/prefix/lib/libmpi.so.12", "owner": "prefix"}],
        "launch": "mpiexec -n 2 python target_tools smoke",
    }
    about = {"schema": 1, "environment": lock.plan.recipe, "id": lock.id()}
    about |= {"lock-sha256": lock.sha256(), "site": lock.plan.site, "arch": lock.plan.arch}
    about |= {"execution": "native", "time": "2026-01-01T00:00:00Z", "log": "0001/log.txt"}
    return json.dumps({**about, "result": result})


def make(path: Path, environments: int) -> None:
    """Make a root with so many environments."""
    lock = shipped()
    root = store.open_root(path, lock.plan.site, lock.plan.arch)
    for index in range(environments):
        each = lock_of(lock, f"demo-{index // NUMBERS:03}", index % NUMBERS + 1)
        home, identity = store.open_home(root, each.plan.recipe), each.id()
        publish.mark(home, identity)
        home.prefix(identity).mkdir()
        (home.build(identity) / "lock.json").write_text(each.text(), encoding="utf-8")
        run = home.evidence(identity) / "0001"
        run.mkdir(parents=True)
        (run / "evidence.json").write_text(record(each), encoding="utf-8")
        version = publish.reserve(home, identity, "lua")
        publish.publish(home, version, f'prepend_path("PATH", "{home.prefix(identity)}/bin")\n')
        publish.set_default(home, version)


def cpu_seconds(words: list[str]) -> float:
    """Return user and system time of one run."""
    with subprocess.Popen(words, env=AS_INSTALLED, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.read()
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    assert running.returncode == 0
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    runs, environments = (
        int(word) for word in [*sys.argv[1:3], *("9", "500")[len(sys.argv) - 1 :]]
    )
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder, "root"), environments)
        words = [ENVBUILD, "list", "--root", str(Path(folder, "root"))]
        shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        assert "damaged" not in shown, shown
        assert shown.count("several ranks") == environments, shown
        values = [cpu_seconds(words) for _ in range(runs)]
    middle, least = statistics.median(values), min(values)
    print(
        f"{environments} environments: {middle:.3f} s CPU (median of {runs}), least {least:.3f} s"
    )


if __name__ == "__main__":
    main()
