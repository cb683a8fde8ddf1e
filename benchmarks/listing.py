"""CPU time of ``envbuild list`` over a root of many environments; median and least of the runs.

The first run reads every lock and judges every record of a smoke test; its rows are cached for
those that follow.

    python benchmarks/listing.py [RUNS [ENVIRONMENTS]]

Run it in a checkout. The environments are made up: a tenth as many recipes, ten numbers each, with
locks, modulefiles and the records of two ranks with 38 checks as ``create`` writes them. The bound
that the project holds itself to is 0.5 s for 500, once they were read.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from envbuilder.model.plan import Lock, Plan
from envbuilder.target_tools.root import publish, store
from tests.made_up_files import locked
from tests.record.proofs import proved
from tests.smoke.smoke_ranks import CHECKS, SHUTDOWN

ENVBUILD = str(Path(sys.executable).parent / "envbuild")
# As pip leaves it: see benchmarks/plan.py.
AS_INSTALLED = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
NUMBERS = 10
# As many as the smoke test of allreduce makes.
MORE = tuple(("allreduce", "float64", 8 << each) for each in range(38 - len(CHECKS)))
CHECKED = (*CHECKS[:-1], *MORE, SHUTDOWN)


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
        sha256 = {"lock-sha256": each.sha256()}
        proved(home.evidence(identity), CHECKED, environment=home.name, id=identity, **sha256)
        version = publish.reserve(home, identity, "lua")
        publish.publish(home, version, f'prepend_path("PATH", "{home.prefix(identity)}/bin")\n')
        publish.set_default(home, version)


def cpu_seconds(words: list[str], environ: dict[str, str]) -> float:
    """Return user and system time of one run."""
    with subprocess.Popen(words, env=environ, stdout=subprocess.PIPE) as running:
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
        environ = {**AS_INSTALLED, "XDG_CACHE_HOME": str(Path(folder, "cache"))}
        words = [ENVBUILD, "list", "--root", str(Path(folder, "root"))]
        # What was written a moment ago is judged again each time.
        time.sleep(3)
        first = cpu_seconds(words, environ)
        values = [cpu_seconds(words, environ) for _ in range(runs)]
        done = subprocess.run(words, check=True, capture_output=True, text=True, env=environ)
    assert "! " not in done.stdout, done.stdout
    assert done.stdout.count("several ranks") == environments, done.stdout
    middle, least = statistics.median(values), min(values)
    print(
        f"{environments} environments: {middle:.3f} s CPU (median of {runs}), least {least:.3f} s; "
        f"{first:.3f} s the first time"
    )


if __name__ == "__main__":
    main()
