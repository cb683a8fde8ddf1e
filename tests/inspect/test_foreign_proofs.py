"""--run: whether ranks can be started of what others built, and what comes of one that fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zoo
from test_validate import run
from ways import mpis
from zoo import Made

from envbuilder.target_tools.manifest import look
from envbuilder.target_tools.proving.runner import SmokeRequest
from envbuilder.validate import rank_proofs as foreign_proofs
from tests.verbs import problem_ids

FAILED: dict[str, Any] = {
    "execution": "native",
    "time": "2026-01-01T00:00:00Z",
    "result": {
        "tier": "one rank",
        "verdict": "failed",
        "reasons": ["each rank is rank 0 of 1"],
        "seconds": 1.0,
        "ranks": 3,
        "launch": "mpiexec -n 3 python target_tools smoke",
        "api": "mpi4py",
        "transport": "mpi",
    },
}


@pytest.fixture(autouse=True)
def nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the metadata of these tests names is not there to be imported."""
    monkeypatch.setattr("envbuilder.validate.imports.modules_of", lambda *_: ())


@pytest.fixture
def parallel(made: Made, need: Callable[[str], str]) -> Made:
    """Return an environment whose mpi4py loads an Open MPI from outside."""
    need("gcc")
    made.install("numpy", "2.2.1")
    made.install("mpi4py", "4.1.0")
    library = mpis(made)[0]
    zoo.module_with(made, "mpi4py/MPI", library)
    made.write(library.parent / "pkgconfig" / "ompi.pc", "Name: Open MPI\nVersion: 4.1.4\n")
    return made


def validated(made: Made, *words: str) -> dict[str, Any]:
    done = run(str(made.prefix), "--run", *words, "--json")
    assert done.exit_code in (0, 4), done.stderr
    return dict(json.loads(done.stdout))


def test_why_none_are_started(made: Made) -> None:
    value = validated(made)
    assert "numpy" in value["not-proved"]
    made.install("numpy", "2.2.1")
    assert "MPI" in validated(made)["not-proved"]
    assert "no ranks were started: " in run(str(made.prefix), "--run").stdout


def test_a_failed_one_is_a_finding_with_what_was_asked(
    parallel: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[SmokeRequest] = []

    def started(request: SmokeRequest, _start: object) -> dict[str, Any]:
        asked.append(request)
        return FAILED

    monkeypatch.setattr(foreign_proofs, "run_smoke", started)
    before = look(parallel.prefix)
    value = validated(parallel, "--ranks", "3", "--evidence", str(tmp_path / "kept"))
    assert look(parallel.prefix) == before
    (request,) = asked
    assert (request.api, request.transport, request.ranks) == ("mpi4py", "mpi", 3)
    assert request.launch[:1] == ("mpiexec",)
    # What the MPI outside is, its compiler wrapper is asked where the ranks start.
    assert request.mpi_from == "wrapper"
    script = (request.folder / "smoke.sh").read_text()
    assert f"prefix={parallel.prefix}\n" in script
    assert "mpicxx" in script
    (found,) = (each for each in value["findings"] if each["id"] == "run.ranks-failed")
    assert found["summary"].startswith("3 ranks of mpi4py over mpi: ")
    record = json.loads((tmp_path / "kept" / "0001" / "evidence.json").read_text())
    assert record == value["proofs"][0]
    assert (record["request"]["launcher"], record["request"]["mpi"]) == ("openmpi", "openmpi@4.1.4")


@pytest.fixture
def torch(made: Made, need: Callable[[str], str]) -> Made:
    """Return an environment whose PyTorch loads an NCCL."""
    need("gcc")
    made.install("numpy", "2.2.1")
    made.install("torch", "2.5.0")
    nccl = made.prefix.parent / "nccl" / "libnccl.so.2"
    zoo.module_with(made, "torch/_C", zoo.compile_c(nccl, soname="libnccl.so.2"))
    return made


@pytest.mark.parametrize(
    ("smi", "visible", "over", "said"),
    [
        (None, None, ["gloo"], "has 0"),
        ("echo H100", None, ["gloo"], "has 1"),
        ("echo H100; echo H100", "1", ["gloo"], "has 1"),
        ("echo no devices were found; exit 6", None, ["gloo"], "has 0"),
        ("echo H100; echo H100", None, ["nccl", "gloo"], None),
    ],
)
def test_nccl_is_tried_where_each_rank_has_a_gpu(
    torch: Made,
    monkeypatch: pytest.MonkeyPatch,
    smi: str | None,
    visible: str | None,
    over: list[str],
    said: str | None,
) -> None:
    asked: list[tuple[str, str | None]] = []

    def started(request: SmokeRequest, _start: object) -> dict[str, Any]:
        asked.append((request.api, request.transport))
        return {**FAILED, "result": {**FAILED["result"], "verdict": "passed", "reasons": []}}

    monkeypatch.setattr(foreign_proofs, "run_smoke", started)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    tools = torch.prefix.parent / "tools"
    if smi:
        torch.write(tools / "nvidia-smi", f"#!/bin/sh\n{smi}\n").chmod(0o755)
    shell = {"PATH": str(tools), **({"CUDA_VISIBLE_DEVICES": visible} if visible else {})}
    done = run(str(torch.prefix), "--run", **shell)
    assert asked == [("torch.distributed", each) for each in over]
    words = " ".join(done.stdout.split())
    assert ("torch.distributed over nccl: " in words.partition("not proved: ")[2]) == bool(said)
    assert (said or "") in words


def test_a_launcher_that_nobody_can_ask(parallel: Made) -> None:
    """Its options differ from release to release."""
    (parallel.prefix.parent / "ompi" / "pkgconfig" / "ompi.pc").unlink()
    assert "Open MPI" in validated(parallel)["not-proved"]


def test_evidence_in_the_environment_is_refused(parallel: Made) -> None:
    inside = parallel.prefix / "proofs"
    done = run(str(parallel.prefix), "--run", "--evidence", str(inside), "--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["output.inside-environment"])
    assert not inside.exists()
