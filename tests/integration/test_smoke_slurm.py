"""Smoke tests through the srun of a real Slurm with MpiDefault=none, outside and inside jobs."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration_tools import COMMAND, Envbuild, run
from slurm_tools import Slurm, need_slurm, slurm

from tests.smoke.replays import env, replay_by, write_records

SITE = """\
schema: 1
name: cluster
summary: Two nodes with Slurm
arch: [x86_64]
scheduler: slurm
launcher: {kind: srun, command: [srun]}
"""
SIZE = "from mpi4py import MPI; c = MPI.COMM_WORLD; print(c.rank, 'of', c.size, flush=True)"
ALONE = "--nodes=1 --ntasks=2 --ntasks-per-node=2 --kill-on-bad-exit=1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    need_slurm()
    with slurm(tmp_path_factory.mktemp("slurm")) as running:
        yield running


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("site") / "cluster.yaml"
    file.write_text(SITE, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def root(
    cluster: Slurm, site: Path, envbuild: Envbuild, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a root with an environment that srun proved: it asked for a job by itself."""
    folder = tmp_path_factory.mktemp("cluster") / "root"
    words = [*COMMAND, "create", "allreduce", "--site", site, "--root", folder, "--json"]
    done = run(words, env={"SLURM_CONF": str(cluster.folder / "slurm.conf")})
    assert done.code == 0, done.text
    return folder


def newest(root: Path) -> dict[str, Any]:
    """Return the newest record of a smoke test."""
    done = run([*COMMAND, "info", "allreduce", "--root", root, "--json"])
    assert done.code == 0, done.text
    evidence: dict[str, Any] = json.loads(done.out)["evidence"][-1]
    return evidence


def command(root: Path, site: Path, verb: str, *words: str) -> str:
    return shlex.join([*COMMAND, verb, "allreduce", "--root", str(root), "--site", str(site)]) + (
        f" {' '.join(words)}"
    )


@pytest.mark.long
def test_a_bare_srun_starts_every_rank_alone(cluster: Slurm, root: Path) -> None:
    """Why the line names the protocol: as it was, a good build failed its smoke test."""
    python = next(root.glob("allreduce/*/bin/python"))
    bare = cluster("srun", "--ntasks=2", python, "-c", SIZE)
    assert sorted(bare.out.split("\n"))[1:] == ["0 of 1", "0 of 1"]


def test_the_smoke_test_passes_where_mpi_default_is_none(root: Path) -> None:
    evidence = newest(root)
    assert evidence["result"]["verdict"] == "passed"
    assert evidence["result"]["tier"] == "several ranks"
    assert evidence["result"]["launch"].startswith(f"srun --mpi=pmi2 {ALONE} python ")
    request = evidence["request"]
    assert (request["launcher"], request["ranks"], request["nodes"]) == ("srun", 2, 1)
    assert request["oversubscribe"] is True
    assert "scheduler" not in request or request["scheduler"] is None


def test_the_module_shows_the_line_that_was_proved(root: Path) -> None:
    text = (root / "modulefiles" / "allreduce" / "1.lua").read_text(encoding="utf-8")
    assert f"srun --mpi=pmi2 {ALONE} python PROGRAM.py" in text


@pytest.mark.parametrize(("nodes", "ranks"), [(1, 2), pytest.param(2, 4, marks=pytest.mark.long)])
def test_it_passes_inside_a_step_that_holds_the_cpus(
    cluster: Slurm, root: Path, site: Path, nodes: int, ranks: int
) -> None:
    script = command(root, site, "smoke", f"--ranks {ranks}")
    done = cluster.in_step(script, f"--nodes={nodes}", "--ntasks-per-node=2")
    assert done.code == 0, done.text
    evidence = newest(root)
    assert evidence["result"]["verdict"] == "passed"
    assert evidence["result"]["nodes"] == [f"node{each}" for each in range(1, nodes + 1)]
    assert evidence["result"]["launch"].startswith(f"srun --mpi=pmi2 --overlap --nodes={nodes} ")
    request = evidence["request"]
    assert (request["scheduler"], request["in-job-step"]) == ("slurm", True)


def test_the_line_starts_ranks_inside_a_step(cluster: Slurm, root: Path, site: Path) -> None:
    python = next(root.glob("allreduce/*/bin/python"))
    program = shlex.join(["--", str(python), "-c", SIZE])
    load = f"source {shlex.quote(str(python.parent / 'activate'))}"
    script = f'line=$({command(root, site, "launch", program)})\n{load}\necho "$line"\neval "$line"'
    done = cluster.in_step(script, "--nodes=2", "--ntasks-per-node=2")
    assert done.code == 0, done.text
    lines = done.out.split("\n")
    assert any(" srun --mpi=pmi2 --overlap --nodes=2 --ntasks=4" in line for line in lines)
    assert sorted(line for line in lines if " of " in line and line[0].isdigit()) == [
        f"{rank} of 4" for rank in range(4)
    ]


@pytest.mark.long
def test_a_job_with_fewer_slots_is_overcommitted(cluster: Slurm, root: Path, site: Path) -> None:
    script = cluster.folder / "small.sh"
    script.write_text(f"#!/bin/bash\n{command(root, site, 'smoke')}\n", encoding="utf-8")
    out = cluster.folder / "small.out"
    done = cluster("sbatch", "--parsable", "--ntasks=1", f"--output={out}", script)
    assert done.code == 0, done.text
    assert cluster.ended(done.out.strip()) == 0, out.read_text()
    result = newest(root)["result"]
    assert result["verdict"] == "passed"
    assert "--overcommit" in result["launch"].split()


def test_srun_that_starts_a_replay_proves_nothing(cluster: Slurm, tmp_path: Path) -> None:
    srun = shutil.which("srun")
    assert srun is not None
    earlier = write_records(tmp_path / "records", ("node1", "node2"))
    variables = {**env(), "SLURM_CONF": str(cluster.folder / "slurm.conf")}
    result = replay_by(tmp_path, (srun, "--nodes=2", "--ntasks=2"), earlier, variables)
    assert (result.verdict, result.tier) == ("failed", "one rank")
    assert "states another sum of allreduce" in result.reasons[0]
