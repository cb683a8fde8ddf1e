"""Options of launch lines that sites and recipes state, from the document to the line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.model.decisions import plan_decisions
from envbuilder.model.plan import Plan

SITE = {
    "schema": 1,
    "name": "bound",
    "summary": "A site whose nodes bind GPUs",
    "arch": ["x86_64"],
    "facts": {"glibc": "2.34", "network": ["infiniband"]},
    "scheduler": "slurm",
    "launcher": {"kind": "srun", "command": ["srun"]},
    "launch-options": {"srun": ["--gpu-bind=closest"], "openmpi": ["--report-bindings"]},
}
RECIPE = {
    "schema": 1,
    "name": "bound",
    "summary": "MPI with options",
    "arch": ["x86_64"],
    "stack": {"python": "*", "numpy": "*", "mpich": "*"},
    "launch-options": {"srun": ["--gpus-per-task=1", "-c 7"]},
}


def run(folder: Path, *words: str, **changes: Any) -> Result:
    """Run a command over both documents. *changes*: launch-options of ``site`` or ``recipe``."""
    for name, document in (("site", SITE), ("recipe", RECIPE)):
        options = changes.get(name, document["launch-options"])
        place = folder / name / "bound.yaml"
        place.parent.mkdir(exist_ok=True)
        place.write_text(yaml.safe_dump({**document, "launch-options": options}, sort_keys=False))
    names = {"SITE": str(folder / "site/bound.yaml"), "RECIPE": str(folder / "recipe/bound.yaml")}
    return CliRunner().invoke(app, [names.get(word, word) for word in words])


def planned(folder: Path, **changes: Any) -> Plan:
    done = run(folder, "plan", "RECIPE", "--site", "SITE", "--arch", "x86_64", "--json", **changes)
    assert done.exit_code == 0, done.output
    return Plan.model_validate(json.loads(done.stdout), strict=False)


def test_the_line_has_the_options_of_site_and_recipe(tmp_path: Path) -> None:
    words = ("launch", "RECIPE", "--site", "SITE", "--arch", "x86_64", "--nodes", "2")
    done = run(tmp_path, *words, "--ranks", "4", "--json", "--", "python", "x.py")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["words"] == [
        *("srun", "--gpu-bind=closest", "--gpus-per-task=1", "-c", "7", "--mpi=pmi2"),
        *("--nodes=2", "--ntasks=4", "--ntasks-per-node=2", "--kill-on-bad-exit=1"),
        *("python", "x.py"),
    ]


def test_the_options_are_a_decision_and_their_absence_is_none(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert plan_decisions(plan)["launch_options"] == {
        "srun": ["--gpu-bind=closest", "--gpus-per-task=1", "-c 7"],
        "openmpi": ["--report-bindings"],
    }
    # The id of a stored lock, which has none, stays.
    assert "launch_options" not in plan_decisions(planned(tmp_path, site={}, recipe={}))


@pytest.mark.parametrize("document", ["site", "recipe"])
@pytest.mark.parametrize(
    ("kind", "option"),
    [
        ("srun", "--gpu-bind=nearest"),
        ("srun", "--ntasks=3"),
        ("srun", "--mca pml ucx"),
        ("openmpi", "--mca pml"),
        ("openmpi", "-n 4"),
        ("custom", "--gpu"),
        ("torchrun", "train.py"),
    ],
)
def test_an_option_that_the_launcher_does_not_list_is_an_error_with_its_line(
    document: str, kind: str, option: str, tmp_path: Path
) -> None:
    verb = f"{document}s"
    done = run(tmp_path, verb, "check", document.upper(), **{document: {kind: [option]}})
    assert done.exit_code == 2
    text = (tmp_path / document / "bound.yaml").read_text()
    line = text.splitlines().index("launch-options:") + 2
    assert f"bound.yaml:{line}:" in done.output
    assert re.split("[= ]", option)[0] in done.output
