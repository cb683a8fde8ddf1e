"""knowledge record: releases and drafts of rows out of checkouts of EasyBuild and Spack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.documents.source import Source
from envbuilder.formats.spack_package import SpackStatement, read

NCCL = """\
import os

_versions = {"9.9.9-12": {}}


class Nccl(MakefilePackage):
    os.system("touch executed")
    version("2.99.1-1", sha256="0")
    version("master", branch="master")
    for each in []:
        version(each)
    conflicts("%gcc@14:", when="@:2.27.5-1")
    depends_on("cuda@12:13", when="@2.27:")
    depends_on("openmpi@5:", when="@2.27: +mpi")
    with when("@2.99:"):
        with default_args(type="build"):
            depends_on("cmake@4.1:")
    depends_on("cuda@" + os.sep)
"""
EASYCONFIG = """\
name = 'NCCL'
version = '2.98.1'
versionsuffix = '-CUDA-12.8.0'
toolchain = {'name': 'GCCcore', 'version': '14.2.0'}
dependencies = [('CUDA', '12.8.0', '', SYSTEM)]
"""


def checkouts(folder: Path) -> tuple[str, str]:
    spack, easybuild = folder / "spack-packages", folder / "easybuild-easyconfigs"
    package = spack / "repos/spack_repo/builtin/packages/nccl/package.py"
    config = easybuild / "easybuild/easyconfigs/n/NCCL"
    name = "NCCL-2.98.1-GCCcore-14.2.0-CUDA-12.8.0.eb"
    for path, text in ((package, NCCL), (config / name, EASYCONFIG)):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return str(spack), str(easybuild)


def record(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["knowledge", "record", *words, "--json"])
    assert done.exit_code == 0, done.output
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_package_is_read_and_not_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    package = read(Source("package.py", NCCL, ""))
    assert package is not None
    assert package.releases == ("9.9.9", "2.99.1")
    assert [each._replace(line=0) for each in package.statements] == [
        SpackStatement("<2.27.6", "gcc", ">=14", forbids=True, condition="", build=True, line=0),
        SpackStatement(
            ">=2.27", "cuda", ">=12,<14", forbids=False, condition="", build=False, line=0
        ),
        SpackStatement(
            ">=2.27", "openmpi", ">=5", forbids=False, condition="+mpi", build=False, line=0
        ),
        SpackStatement(">=2.99", "cmake", ">=4.1", forbids=False, condition="", build=True, line=0),
    ]
    assert not (tmp_path / "executed").exists()
    assert read(Source("package.py", "class", "")) is None


def test_releases_and_drafts_are_written_once(tmp_path: Path) -> None:
    spack, easybuild = checkouts(tmp_path)
    output = tmp_path / "ours" / "knowledge"
    value = record(spack, easybuild, "--output", str(output))
    assert (value["releases"], value["new-releases"], value["shipped"]) == (3, 3, 1)
    assert value["statements"] == {
        "new": 1,
        "known": 2,
        "contradicting": 0,
        "without effect": 0,
        "conditional": 1,
    }
    versions = yaml.safe_load((output / "versions.yaml").read_text())["existing"]["nccl"]
    assert {"2.98.1", "2.99.1", "9.9.9", "2.21.5"} <= set(versions["versions"])
    (draft,) = yaml.safe_load((output / "couplings.drafts.yaml").read_text())["couplings"]
    assert draft["given"] == {"nccl": {"range": ">=2.99", "origin": ["module", "system", "build"]}}
    assert (draft["needs"], draft["severity"]) == ({"cmake": ">=4.1"}, "info")
    assert draft["sources"][0].endswith("nccl/package.py#L17")
    before = texts(output)
    assert record(spack, easybuild, "--output", str(output))["written"] == []
    assert texts(output) == before


def test_an_accepted_draft_is_knowledge_and_is_not_drafted_again(tmp_path: Path) -> None:
    spack, _ = checkouts(tmp_path)
    output = tmp_path / "ours" / "knowledge"
    record(spack, "--output", str(output))
    (output / "couplings.drafts.yaml").rename(output / "couplings.yaml")
    value = record(spack, "--output", str(output), "--recipes", str(tmp_path / "ours"))
    assert (value["statements"]["known"], value["statements"]["new"]) == (3, 0)
    assert value["written"] == []


def test_a_row_that_refuses_what_easybuild_ships_is_a_contradiction(tmp_path: Path) -> None:
    _, easybuild = checkouts(tmp_path)
    folder = tmp_path / "ours" / "knowledge"
    folder.mkdir(parents=True)
    (folder / "advisories.yaml").write_text(
        "schema: 1\nadvisories:\n- {id: OUR-001, severity: error, component: gcc, "
        "affected: '>=14', "
        "beside: {nccl: '>=2.27'}, summary: wrong, evidence: run, sources: [a]}\n"
    )
    words = (easybuild, "--output", str(tmp_path / "out"), "--recipes", str(folder.parent))
    (found,) = record(*words)["contradictions"]
    assert found.endswith(": OUR-001")


def test_what_is_written_by_hand_is_not_replaced(tmp_path: Path) -> None:
    spack, _ = checkouts(tmp_path)
    (tmp_path / "versions.yaml").write_text("schema: 1\n")
    words = ["knowledge", "record", spack, "--output", str(tmp_path), "--json"]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, (tmp_path / "versions.yaml").read_text()) == (2, "schema: 1\n")
    words[2] = str(tmp_path / "repos")
    assert CliRunner().invoke(app, words).exit_code == 2
