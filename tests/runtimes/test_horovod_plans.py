"""A plan that waives a rule about a flag: every stage reads the flag as the release does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from envbuilder import data
from envbuilder.cli import app

NCCL = "HOROVOD_GPU_ALLREDUCE: NCCL"


def horovod_plan(
    line: str, waived: tuple[str, ...], folder: Path
) -> tuple[dict[str, Any], list[str]]:
    """Return the flags of the Horovod that is built, and what it is proved over."""
    text = (data.RECIPES / "horovod-nccl.yaml").read_text(encoding="utf-8")
    mine = text.replace("name: horovod-nccl", "name: mine").replace(NCCL, line)
    (folder / "mine.yaml").write_text(mine, encoding="utf-8")
    words = ["plan", "mine", "--recipes", str(folder), "--site", "taurus-ml", "--arch", "ppc64le"]
    waivers = [f"--allow={each}=a test" for each in waived]
    done = CliRunner().invoke(app, [*words, *waivers, "--json"])
    assert done.exit_code == 0, done.output
    plan = json.loads(done.stdout)
    (build,) = (each for each in plan["builds"] if each["component"] == "horovod")
    proofs = [each["transport"] for each in plan["proofs"] if each["api"].startswith("horovod.")]
    return build["flags"], proofs


@pytest.mark.parametrize(
    ("line", "waived"),
    [
        # Every release refuses it.
        ("HOROVOD_GPU_ALLREDUCE: nccl", ("FLAG-VALUE-HOROVOD-GPU-ALLREDUCE",)),
        # The recipe's release does not read it.
        ("HOROVOD_GPU_OPERATIONS: NCCL", ("FLAG-EARLY-HOROVOD-GPU-OPERATIONS", "FLAG-011")),
    ],
)
def test_what_does_nothing_derives_and_proves_nothing(
    line: str, waived: tuple[str, ...], tmp_path: Path
) -> None:
    flags, proofs = horovod_plan(line, waived, tmp_path)
    assert "HOROVOD_NCCL_HOME" not in flags
    assert proofs == ["mpi"]


def test_nccl_is_derived_and_proved(tmp_path: Path) -> None:
    flags, proofs = horovod_plan(NCCL, (), tmp_path)
    assert flags["HOROVOD_NCCL_HOME"]
    assert proofs == ["nccl"]
