"""Launchers that start no rank and hand in the records of an earlier run, or make them up."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from smoke_ranks import FRESH

from envbuilder import data, process
from envbuilder.build import sources
from envbuilder.model.evidence import SmokeResult
from envbuilder.target_tools import proc
from envbuilder.target_tools.proving.runner import SmokeRequest, run_smoke
from envbuilder.target_tools.root.layout import Home
from tests.cli.published import planned, publish_plan
from tests.record.proofs import subject
from tests.smoke.replays import REPLAY, env, replay_by, run, write_records
from tests.smoke.smoke_runs import Mpi

LAUNCHERS = ("mpiexec", "srun", "horovodrun", "torchrun", "apptainer")

# Computes the answers as well; without PIDS the ranks state processes that never ran.
MADE_UP = f"""{FRESH}
import json, os, pathlib
options = dict(zip(sys.argv, sys.argv[1:]))
for path in pathlib.Path(os.environ["RECORDS"]).glob("rank-*.jsonl"):
    lines = fresh([json.loads(line) for line in path.read_text().splitlines()], options["--nonce"])
    text = "".join(json.dumps(line) + "\\n" for line in lines)
    (pathlib.Path(options["--out"]) / path.name).write_text(text)
"""


@pytest.fixture
def records(tmp_path: Path) -> Callable[..., Path]:
    """Return what writes the records of an earlier run of two ranks."""
    return partial(write_records, tmp_path / "records")


def here() -> dict[str, str]:
    return {"clock": proc.boot_id(), "pid_namespace": proc.pid_namespace()}


@pytest.mark.parametrize("hosts", [("node1", "node1"), ("node1", "node2")], ids=["one", "two"])
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_records_of_an_earlier_run_prove_nothing(
    tmp_path: Path, records: Callable[..., Path], launcher: str, hosts: tuple[str, str]
) -> None:
    result = run(tmp_path, launcher, REPLAY, records(hosts))
    assert (result.verdict, result.tier) == ("failed", "one rank")
    assert "states another sum of allreduce" in result.reasons[0]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_processes_that_never_ran_on_this_node_prove_nothing(
    tmp_path: Path, records: Callable[..., Path], launcher: str
) -> None:
    """Although the launcher computes the answers of this run."""
    result = run(tmp_path, launcher, MADE_UP, records(("node1", "node1"), **here()))
    assert (result.verdict, result.tier) == ("failed", "one rank")
    assert "which did not run on this node" in result.reasons[0]


@pytest.mark.parametrize("later", [-1000, 1000])
def test_records_from_another_time_prove_nothing(
    tmp_path: Path, records: Callable[..., Path], later: int
) -> None:
    program = MADE_UP.replace('"unix"] = time.time()', f'"unix"] = time.time() + {later}')
    result = run(tmp_path, "mpiexec", program, records(("node1", "node1")))
    assert result.verdict == "failed"
    assert "states a time " in result.reasons[0]


def test_a_launcher_that_computes_everything_cannot_be_told_from_ranks(
    tmp_path: Path, records: Callable[..., Path]
) -> None:
    """docs/trust.md says so. What was not observed is said to be."""
    result = run(tmp_path, "mpiexec", MADE_UP, records(("node1", "node2")))
    assert (result.verdict, result.tier) == ("passed", "several nodes")
    assert [each.observed for each in result.processes] == [False, False]


# How each real launcher starts two processes of this machine; srun has a test with a Slurm.
REAL = {
    "mpiexec": ("-n", "2"),
    "horovodrun": ("--gloo", "-np", "2", "-H", "localhost:2"),
    "torchrun": ("--standalone", "--nproc_per_node", "2", "--no_python"),
}


@pytest.mark.long
@pytest.mark.parametrize("launcher", REAL)
def test_replay_by_what_a_real_launcher_starts(
    tmp_path: Path, records: Callable[..., Path], launcher: str
) -> None:
    program = shutil.which(launcher, path=real_path())
    if program is None:
        pytest.skip(f"needs {launcher} on PATH")
    trial = subprocess.run([program, *REAL[launcher], "true"], env=env(), check=False, timeout=60)
    if trial.returncode != 0:
        pytest.skip(f"{launcher} starts nothing on this machine")
    result = replay_by(tmp_path, (program, *REAL[launcher]), records(("node1", "node2")))
    assert result.verdict == "failed"
    assert "states another sum of allreduce" in result.reasons[0]


def real_path() -> str:
    """Return PATH, and the programs of the PyTorch that tests have."""
    torch = os.environ.get("TORCH_PYTHON")
    folders = [str(Path(torch).parent)] if torch else []
    return os.pathsep.join([os.environ["PATH"], *folders])


@pytest.mark.long
@pytest.mark.network
def test_real_ranks_are_observed_and_their_records_fit_no_later_run(
    mpi: Mpi, tmp_path: Path
) -> None:
    test = tmp_path / "first"
    test.mkdir()
    sources.copy(data.TARGET_TOOLS, test / "target_tools")
    variables = {**env(), "HOME": str(tmp_path), "PYTHONPATH": str(data.RUNTIME)}
    command = (mpi.mpiexec, "-n", "2", mpi.python, "target_tools", "smoke")
    request = SmokeRequest(command, test, 2, 60.0, 4096, mpi.prefix, variables, mpi_from="prefix")
    told = run_smoke(request, process.start)
    result = SmokeResult.model_validate(told["result"])
    assert (result.verdict, result.tier) == ("passed", "several ranks"), result.reasons
    assert [each.observed for each in result.processes] == [True, True]
    assert all(each.cpu for each in result.processes)
    nonce = json.loads(next((test / "ranks").glob("*.jsonl")).read_text().split("\n")[0])["nonce"]
    again = run(
        tmp_path, "mpiexec", REPLAY.replace('os.environ["NONCE"]', repr(nonce)), test / "ranks"
    )
    assert again.verdict == "failed"
    assert "states another sum of allreduce" in again.reasons[0]


PROVE = """
import json, os, pathlib, sys
from envbuilder.target_tools.proving.evidence import prove
from envbuilder.target_tools.root.layout import Home
root, name, identity, proving = sys.argv[1:]
home = Home(pathlib.Path(root), name)
[one] = prove(json.loads(pathlib.Path(proving).read_text()), home, identity, dict(os.environ))
print(one["result"]["verdict"], *one["result"]["reasons"])
"""


def on_node(name: str, *words: str | Path, **variables: str) -> str:
    """Run a command as on another node: with a host name and a network of its own."""
    script = f'hostname {name}; ip link set lo up; exec "$@"'
    command = ["unshare", "--net", "--uts", "bash", "-ec", script, "node", *map(str, words)]
    done = subprocess.run(
        command,
        env={**env(), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.network
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for namespaces")
def test_a_login_node_counts_what_a_compute_node_proved(mpi: Mpi, tmp_path: Path) -> None:
    root = tmp_path / "root"
    version = publish_plan(root, planned("allreduce", "--site", "local"))
    home = Home(root, "allreduce")
    script = f'exec {mpi.mpiexec} -n 2 {mpi.python} target_tools smoke "$@"\n'
    request = {"launcher": "hydra", "ranks": 2, "nodes": 1}
    proof = {"api": "numpy", "transport": "mpi", "launch": ["mpiexec"], "request": request}
    proving = {
        "about": {**subject(home, version), "partition": None},
        "components": [],
        "timeout": 60,
        "max-bytes": 4096,
        "mpi-from": None,
        "proofs": [{**proof, "files": {"smoke.sh": script}}],
    }
    (tmp_path / "proving.json").write_text(json.dumps(proving))
    (tmp_path / "prove.py").write_text(PROVE)
    words = [sys.executable, tmp_path / "prove.py", root, "allreduce", version.id]
    checkout = str(Path(data.__file__).parents[1])
    path = os.pathsep.join([checkout, str(data.RUNTIME)])
    said = on_node("compute7", *words, tmp_path / "proving.json", PYTHONPATH=path)
    assert said.split() == ["passed"]
    listed = on_node(
        "login1",
        *(sys.executable, "-m", "envbuilder", "list", "--root", root, "--json"),
        PYTHONPATH=checkout,
    )
    [row] = json.loads(listed)["environments"]
    assert (row["tier"], row["claimed"]) == ("several ranks", [])
    [one] = home.evidence(version.id).glob("*/evidence.json")
    processes = json.loads(one.read_text())["result"]["processes"]
    assert [(each["host"], each["observed"]) for each in processes] == [("compute7", True)] * 2
