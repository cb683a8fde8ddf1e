"""`recipes check` and `plan` refuse the same flags, by the same rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app

_RECIPE = """\
schema: 1
name: mine
summary: Horovod with flags
arch: [x86_64]
stack: {{python: "*", openmpi: "*", pytorch: "*"}}
runtime:
  package: horovod
  version: "{version}"
  flags:
{flags}
{more}"""

SEMICOLON = {"HOROVOD_GPU_ALLREDUCE": "NCCL; touch pwned"}
BOTH = {"HOROVOD_WITH_MPI": "1", "HOROVOD_WITHOUT_MPI": "1"}


def check(tmp_path: Path, flags: dict[str, str], version: str = "*", more: str = "") -> str:
    """Return what `recipes check` reports; empty: good."""
    lines = "\n".join(f'    {name}: "{value}"' for name, value in flags.items())
    path = tmp_path / "mine.yaml"
    path.write_text(_RECIPE.format(version=version, flags=lines, more=more))
    answer = CliRunner().invoke(app, ["recipes", "check", str(path)])
    assert answer.exit_code == (2 if answer.stderr else 0)
    assert bool(answer.stderr) != ("good" in answer.stdout)
    return answer.stderr


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (SEMICOLON, "HOROVOD_GPU_ALLREDUCE=NCCL; touch pwned"),
        (BOTH, "with and without MPI at once"),
    ],
    ids=["value", "both"],
)
def test_flags_that_every_plan_refuses_are_found(
    flags: dict[str, str], expected: str, tmp_path: Path
) -> None:
    line = 9 + len(flags)
    found = check(tmp_path, flags)
    assert expected in found
    assert f"mine.yaml:{line}:5: error: FLAG-" in found, "the place of the last flag of the rule"
    plan = CliRunner().invoke(app, ["plan", str(tmp_path / "mine.yaml"), "--site", "taurus-alpha"])
    assert plan.exit_code == 4
    assert expected in " ".join(plan.stderr.split())


def test_a_waiver_and_a_release_that_takes_the_flags_are_good(tmp_path: Path) -> None:
    waived = "allow: {FLAG-015-MPI: we want to see it}"
    assert check(tmp_path, BOTH, more=waived) == ""
    # 0.28 no longer reads it, which is a warning; 0.16 does not read it yet, which is an error.
    assert check(tmp_path, {"HOROVOD_WITH_MPI": "1"}, "==0.28.*") == ""
    assert "FLAG-EARLY" in check(tmp_path, {"HOROVOD_WITH_MPI": "1"}, "==0.16.*")
    assert check(tmp_path, {"HOROVOD_WITH_MPI": "1"}, ">=0.16") == ""
