"""A candidate: what a machine without GPUs proves of ranks over NCCL, and what becomes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from smoke_ranks import IMPORT, INIT, Rank
from test_install_bundle import RANKS, Bundle, bundle, folder, ranks, records

from envbuilder.target_tools.modulefile import proved_lines
from envbuilder.target_tools.proving.evidence import GPU_DEVICES, refuted
from envbuilder.target_tools.root.layout import Home
from envbuilder.target_tools.root.registry import default_number

pytestmark = pytest.mark.thorough

folder = folder  # a fixture of the tests of the installer

LACKS = ("RuntimeError", "NCCL needs a GPU on every rank, but torch finds none")
NO_GPU = not any(each for name in GPU_DEVICES for each in Path("/dev").glob(name))
without_gpu = pytest.mark.skipif(not NO_GPU, reason="this machine has a GPU")


def over_nccl(one: Bundle, **changes: Any) -> Bundle:
    """Let a bundle prove PyTorch over NCCL too; its two ranks are these."""
    beside = one.folder.parent / "ranks-2"
    beside.mkdir()
    (beside / "ranks.py").write_text(RANKS)
    for number in (0, 1):
        rank = Rank(number, api="torch.distributed", **{"error": LACKS, **changes})
        (beside / rank.source.removesuffix("l")).write_text(json.dumps(rank.lines()))
    script = (one.folder / "build" / "smoke-1.sh").read_text()
    (one.folder / "build" / "smoke-2.sh").write_text(script.replace("/ranks/", "/ranks-2/"))
    facts = json.loads((one.folder / "bundle.json").read_text())
    [proof] = facts["proving"]["proofs"]
    more = {"api": "torch.distributed", "transport": "nccl", "smoke": "smoke-2.sh"}
    facts["proving"]["proofs"] = [proof, {**proof, **more}]
    (one.folder / "bundle.json").write_text(json.dumps(facts))
    one.seal()
    return one


@without_gpu
def test_a_candidate_is_published_says_so_and_is_not_the_default(folder: Path) -> None:
    root = folder / "root"
    one = over_nccl(bundle(folder).write(*ranks(root)), stop_in=INIT)
    refused = one.install(root)
    assert refused.returncode == 6, refused.stderr
    assert LACKS[1] in refused.stderr
    assert list((root / "modulefiles").iterdir()) == []

    done = one.install(root, "--candidate")
    assert done.returncode == 0, done.stderr
    assert "demo/1 is a candidate" in done.stderr
    home = Home(root, "demo")
    proofs = [each.result for each in records(root).evidence]
    told = [(each.api, each.verdict, each.tier) for each in proofs]
    nccl = ("torch.distributed", "failed", "imported")
    assert told == [("numpy", "passed", "several ranks"), nccl] * 2
    assert default_number(home) is None
    text = (root / "modulefiles" / "demo" / "1.lua").read_text()
    assert '"A candidate, not proved: imported, native, ' in text
    assert 'whatis("Proved: imported, ' in text
    # No more so when it is installed as what it is not.
    again = one.install(root)
    assert (again.returncode, default_number(home)) == (0, None), again.stderr


@without_gpu
@pytest.mark.parametrize(
    "changes",
    [{"stop_in": IMPORT}, {"problems": {("allreduce", "int32", 4): "3 numbers differ"}}],
    ids=["not imported", "wrong numbers"],
)
def test_a_candidate_is_refused_for_anything_else(folder: Path, changes: dict[str, Any]) -> None:
    root = folder / "root"
    done = over_nccl(bundle(folder).write(*ranks(root)), **changes).install(root, "--candidate")
    assert done.returncode == 6, done.stderr
    assert list((root / "modulefiles").iterdir()) == []


@pytest.mark.parametrize("device", ["nvidia0", "kfd"])
def test_where_there_is_a_gpu_nothing_is_a_candidate(tmp_path: Path, device: str) -> None:
    result = {"verdict": "failed", "tier": "imported", "transport": "nccl", "checks": []}
    assert not refuted(result, candidate=True, devices=tmp_path)
    assert refuted({**result, "transport": "mpi"}, candidate=True, devices=tmp_path)
    assert refuted(result, candidate=False, devices=tmp_path)
    # Which is there wherever the driver's module was loaded, and is none.
    (tmp_path / "nvidiactl").touch()
    assert not refuted(result, candidate=True, devices=tmp_path)
    (tmp_path / device).touch()
    assert refuted(result, candidate=True, devices=tmp_path)


def test_a_modulefile_says_proved_of_what_passed_alone() -> None:
    result = {"tier": "imported", "nodes": [], "checks": [], "ranks": 2, "seconds": 1.0}
    result |= {"mpi": None, "libraries": []}
    evidence = {"execution": "native", "time": "then", "site": "here", "arch": "x86_64"}
    for verdict, begins in (("passed", "Proved: "), ("failed", "A candidate, not proved: ")):
        first = proved_lines({**evidence, "result": {**result, "verdict": verdict}})[0]
        assert first == f"{begins}imported, native, then"
