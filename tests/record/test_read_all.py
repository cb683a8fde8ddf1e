"""Records come in the order in which they were made."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envbuilder.files import write_atomically
from envbuilder.target_tools.proving import evidence
from envbuilder.target_tools.proving.evidence import next_run
from envbuilder.target_tools.proving.recheck import nonce_of
from envbuilder.target_tools.root.layout import Home
from tests.record.proofs import proved, read
from tests.smoke.smoke_ranks import LARGE, LIBMPI, Rank


def test_run_10000_is_newer_than_9999(tmp_path: Path) -> None:
    names = ["0002", "9999", "10000"]
    for name in names:
        proved(tmp_path, name=name)
    assert [each.log for each in read(tmp_path).evidence] == [f"{n}/smoke.log" for n in names]
    assert next_run(tmp_path).name == "10001"


@pytest.mark.parametrize("schema", [1, 2])
def test_what_its_ranks_recorded_counts_and_needs_their_records(
    tmp_path: Path, schema: int
) -> None:
    run = proved(tmp_path, schema=schema)
    found = read(tmp_path)
    assert ([each.schema_ for each in found.evidence], found.damaged) == ([schema], ())
    for path in run.glob("ranks/*"):
        path.unlink()
    found = read(tmp_path)
    assert (len(found.evidence), len(found.claimed)) == (0, 1)


Edit = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            lambda r: r.update(ranks=4),
            "launcher ended with exit code 0, but only 2 of 4 ranks reported",
        ),
        (
            lambda r: r.update(tier="several nodes", nodes=["node1", "node2"]),
            "another tier",
        ),
        (lambda r: r.update(nodes=["node7"]), "another nodes"),
        (lambda r: r.update(tier="one rank"), "another tier"),
        (lambda r: r.update(mpi="Open MPI 5"), "another mpi"),
        (lambda r: r["checks"].pop(), "other checks"),
        (lambda r: r["timings"][0].update({"latency-us": 0.1}), "another timings"),
        (lambda r: r["libraries"][0].update(path="/prefix/lib/other.so"), "other libraries"),
    ],
)
def test_what_its_ranks_did_not_record_counts_for_nothing(
    tmp_path: Path, edit: Edit, said: str
) -> None:
    run = proved(tmp_path)
    record = json.loads((run / "evidence.json").read_text())
    good = copy.deepcopy(record)
    edit(record["result"])
    assert record != good
    (run / "evidence.json").write_text(json.dumps(record))
    found = read(tmp_path)
    assert found.evidence == ()
    assert said in found.claimed[0]
    assert str(tmp_path) in found.claimed[0]


def test_how_its_ranks_ran_is_theirs_to_say(tmp_path: Path) -> None:
    run = proved(tmp_path)
    for path in run.glob("ranks/*"):
        first, *rest = path.read_text().splitlines()
        changed = json.dumps({**json.loads(first), "execution": "emulated"})
        path.write_text("\n".join([changed, *rest, ""]))
    found = read(tmp_path)
    assert found.evidence == ()
    assert found.claimed[0].endswith(" were emulated")
    # Said as it was, what is left to doubt is their speed: of emulated ranks there is none.
    record = json.loads((run / "evidence.json").read_text())
    record["execution"] = "emulated"
    (run / "evidence.json").write_text(json.dumps(record))
    assert "another timings" in read(tmp_path).claimed[0]
    record["result"]["timings"] = []
    (run / "evidence.json").write_text(json.dumps(record))
    [one] = read(tmp_path).evidence
    assert one.execution == "emulated"


def test_a_failure_that_is_called_passed_counts_for_nothing(tmp_path: Path) -> None:
    run = proved(tmp_path)
    nonce = str(nonce_of(run / "ranks"))
    problems = {LARGE: "3 numbers differ"}
    Rank(1, libraries=[LIBMPI], problems=problems, nonce=nonce).write(run / "ranks")
    found = read(tmp_path)
    assert found.evidence == ()
    assert "rank 1: allreduce float32" in found.claimed[0]


@pytest.mark.parametrize("text", ["", "x", "[]", "{}", "[" * 100_000, '{"nonce": 3}'])
def test_records_that_cannot_be_read_prove_nothing(tmp_path: Path, text: str) -> None:
    run = proved(tmp_path)
    for path in run.glob("ranks/*"):
        write_atomically(path, text)
    found = read(tmp_path)
    assert (found.evidence, len(found.claimed)) == ((), 1)


def test_a_record_that_cannot_be_written_whole_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"execution": "native", "result": {"verdict": "passed"}}
    proof = {"files": {}, "request": {"ranks": 2}, "launch": [], "api": "numpy", "transport": None}
    facts = {"timeout": 60, "max-bytes": 4096, "mpi-from": None, "components": [], "about": {}}

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(evidence, "run_smoke", lambda request, start: told)
    monkeypatch.setattr(os, "fsync", full)
    home = Home(tmp_path, "demo")
    with pytest.raises(OSError, match="No space left"):
        evidence.prove({**facts, "proofs": [proof]}, home, "a" * 12, {})
    [run] = home.evidence("a" * 12).iterdir()
    assert [each.name for each in run.iterdir()] == ["target_tools"]
    assert read(home.evidence("a" * 12)) == ((), (), ())
