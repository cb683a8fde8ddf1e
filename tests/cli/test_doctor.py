"""``envbuild doctor`` and what is known to be bad: the shipped rows, one's own, broken ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app

pytestmark = pytest.mark.integration

OWN = """
schema: 1
advisories:
  - id: SITE-1
    severity: error
    component: openmpi
    affected: "==4.1.4"
    summary: hangs on this cluster
    evidence: run
    sources: ["https://cluster.example/tickets/1"]
"""


def doctor(folder: Path, version: str, own: str | None = None) -> Result:
    """Run doctor where mpirun is an Open MPI of this version; *own*: rows of the user."""
    (folder / "bin").mkdir()
    mpirun = folder / "bin" / "mpirun"
    mpirun.write_text(f"#!/bin/sh\necho 'mpirun (Open MPI) {version}'\n")
    mpirun.chmod(0o755)
    if own is not None:
        (folder / "own" / "knowledge").mkdir(parents=True)
        (folder / "own" / "knowledge" / "advisories.yaml").write_text(own)
    env = {
        "PATH": f"{folder}/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "ENVBUILD_PATH": str(folder / "own") if own is not None else "",
    }
    return CliRunner().invoke(app, ["doctor", "--json"], env=env)


def mpirun(shown: Result) -> dict[str, Any]:
    assert shown.exit_code == 0, shown.output
    sections = json.loads(shown.stdout)["sections"]
    items = (item for section in sections for item in section["items"])
    return next(item for item in items if item["id"] == "mpi.mpirun")


def test_the_shipped_rows_tell(tmp_path: Path) -> None:
    item = mpirun(doctor(tmp_path, "3.1.3"))
    assert item["status"] == "problem"
    assert item["facts"]["known-bad"] is True
    assert any(line.startswith("OMPI-001: ") for line in item["details"])


def test_rows_of_one_s_own_tell(tmp_path: Path) -> None:
    item = mpirun(doctor(tmp_path, "4.1.4", OWN))
    assert "SITE-1: hangs on this cluster" in item["details"]


def test_broken_rows_do_not_stop_it(tmp_path: Path) -> None:
    shown = doctor(tmp_path, "3.1.3", OWN.replace("severity: error", "severity: terrible"))
    assert mpirun(shown)["status"] == "problem"
    assert "warning: " in shown.stderr
    assert "'terrible'" in shown.stderr
