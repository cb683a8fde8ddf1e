"""The recipes of document 000 on both architectures, planned from the record of WMLCE's channel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.model.diff import Difference, diff
from envbuilder.model.plan import Plan

WORKSTATION = """\
schema: 1
name: workstation
summary: A workstation with a GPU
arch: [x86_64]
origins: [pip, build]
facts: {glibc: "2.28", gpu: [sm_70], network: [], driver: "440.33"}
"""


@pytest.fixture(scope="module")
def workstation(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("sites") / "workstation.yaml"
    file.write_text(WORKSTATION, encoding="utf-8")
    return str(file)


@cache
def planned(recipe: str, site: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["plan", recipe, "--site", site, "--json"])
    assert done.exit_code == 0, done.output
    plan: dict[str, Any] = json.loads(done.stdout)
    return plan


def versions(plan: Mapping[str, Any]) -> dict[str, str]:
    return {pin["component"]: pin["version"] for pin in plan["pins"]}


def test_a_recipe_developed_on_x86_moves_to_summit(workstation: str) -> None:
    here, there = (planned("horovod-ddl-wmlce", site) for site in (workstation, "summit"))
    assert [each["gone-since"] for each in here["channels"]] == ["2023-11-18", None]
    found = diff(Plan.model_validate(here), Plan.model_validate(there), ("here", "Summit"))
    changed = {
        each.name: (each.before, each.after) for each in _of(found.differences, "components")
    }
    # What programs import is the same; the MPI is that of the machine.
    assert {"wmlce", "ddl", "pytorch", "tensorflow", "cuda", "horovod"}.isdisjoint(changed)
    assert changed["openmpi"] == ("3.1.3 <- conda:wmlce/openmpi", None)
    assert changed["spectrum-mpi"] == (None, "10.3 <- conda:wmlce/spectrum-mpi")
    assert changed["gcc"] == (
        "7.3.0 <- conda:defaults/gxx_linux-64",
        "7.3.0 <- conda:defaults/gxx_linux-ppc64le",
    )
    assert not found.same


def _of(differences: tuple[Difference, ...], section: str) -> list[Difference]:
    return [each for each in differences if each.section == section and each.name != "(order)"]


def test_open_mpi_of_the_channel_is_waived_on_x86_alone(workstation: str) -> None:
    here, there = (planned("horovod-ddl-wmlce", site) for site in (workstation, "summit"))
    waived = [
        [f["id"] for f in each["findings"] if f["status"] == "waived"] for each in (here, there)
    ]
    assert waived == [["OMPI-001"], []]


def test_plan_begins_with_the_channel_that_is_gone() -> None:
    done = CliRunner().invoke(app, ["plan", "horovod-nccl-wmlce", "--arch", "ppc64le"])
    assert done.exit_code == 0, done.output
    first = done.stdout.splitlines()[0]
    assert first.startswith("channel wmlce gone since 2023-11-18; a copy is needed")
