"""knowledge record: releases and drafts of rows out of checkouts, release notes and indexes."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.documents.source import Source
from envbuilder.formats import release_notes
from envbuilder.formats.spack_package import SpackStatement, read
from tests.serving import serving_by

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
    assert any(each.startswith("NCCL-028: ") for each in value["outdated"])
    assert any(each.startswith("NCCL-020: ") for each in value["outdated"]), "3 new ones are later"
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


TORCH = (
    ("torch-99.1.0-cp313-cp313-manylinux_2_28_x86_64.whl", True),
    ("torch-99.1.0-cp314-cp314-manylinux_2_28_aarch64.whl", True),
    ("torch-99.1.0-cp313-none-macosx_11_0_arm64.whl", True),
    ("torch-99.2.0rc1-cp313-cp313-manylinux_2_28_x86_64.whl", True),
    ("torch-2.5.1-cp313-cp313-manylinux1_x86_64.whl", True),
)
METADATA = """\
Metadata-Version: 2.1
Name: torch
Version: 99.1.0
Requires-Dist: nvidia-nccl-cu13==2.99.1; platform_system == "Linux"
Requires-Dist: setuptools; python_version >= "3.12"
Requires-Dist: numpy>=2; extra == "numpy"
Requires-Dist: filelock
Requires-Dist: cffi<3,>=2
"""


class Index(BaseHTTPRequestHandler):
    """An index with pages in JSON (PEP 691) and metadata (PEP 658)."""

    def do_GET(self) -> None:
        if self.path.endswith(".metadata"):
            body = METADATA.encode()
        elif self.path == "/simple/torch/":
            files = [
                {"filename": name, "url": f"/files/{name}", "hashes": {}, "core-metadata": said}
                for name, said in TORCH
            ]
            page = {"meta": {"api-version": "1.0"}, "name": "torch", "files": files}
            body = json.dumps(page).encode()
        else:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_releases_of_an_index_have_their_facts(tmp_path: Path) -> None:
    output = tmp_path / "ours" / "knowledge"
    with serving_by(Index) as url:
        value = record(f"{url}/simple", "--output", str(output))
        assert (value["releases"], value["new-releases"]) == (1, 1)
        assert record(f"{url}/simple", "--output", str(output))["written"] == []
    releases = yaml.safe_load((output / "versions.yaml").read_text())["releases"]["pytorch"]
    assert "2.5.1" in {each["version"] for each in releases}
    assert releases[-1] == {
        "version": "99.1.0",
        "arch": ["aarch64", "x86_64"],
        "pythons": ["3.13", "3.14"],
        "glibc": "2.28",
        "requires": {"nvidia-nccl-cu13": "==2.99.1", "cffi": "<3,>=2"},
    }
    words = ["advisories", "check", "torch==99.1.0", "python==3.12.1", "--json"]
    facts = ["--fact", "pytorch.origin=pip", "--recipes", str(tmp_path / "ours")]
    done = CliRunner().invoke(app, [*words, *facts])
    errors = {row["id"] for row in json.loads(done.stdout)["rows"] if row["severity"] == "error"}
    assert (done.exit_code, "WHEEL-PYTHON" in errors) == (4, True)
    assert CliRunner().invoke(app, ["knowledge", "record", url, "-o", str(output)]).exit_code == 5


def test_an_easyconfig_that_cannot_be_read_is_listed(tmp_path: Path) -> None:
    _, easybuild = checkouts(tmp_path)
    folder = Path(easybuild) / "easybuild/easyconfigs/n/NCCL"
    (folder / "NCCL-2.97.1-GCCcore-14.2.0-CUDA-12.8.0.eb").write_text("name = (\n")
    result = record(easybuild, "--output", str(tmp_path / "own"))
    assert result["unread"] == [
        "easybuild/easyconfigs/n/NCCL/NCCL-2.97.1-GCCcore-14.2.0-CUDA-12.8.0.eb"
    ]
    assert result["shipped"] == 1


NOTES = """\
Release notes
=============

v9.3.0 [YYYY-MM-DD]
===================

- Fix a crash.

v9.2.1, Mon June 22, 2099
=========================

## Core ##

- Fix a hang where many
  ranks start
- Fix the spelling of a word

Open MPI version v9.2.0
-----------------------

 * Python 3.10+ is required.
 * Drop support for UCX version < 1.7.0.
 * Optionally, ranks now can wait.
 * No longer supports Python 3.8.

## Known issues

- ranks of two nodes
- another one

## [9.1] - 2099-01-01

- Known issue: it is slow.
- Removed support for Unknown 1.2.
"""
# NCCL's repository: messages of commits.
NCCL_LOG = """\
    2.99.5-1

    Fix crash in one case.
    Resolved: a word.
    Requires CUDA 12.8 or later.
"""


@pytest.mark.parametrize(("text", "statements"), [
    (
        NOTES,
        [
            ("fixed", "9.2.1", 14, "", ""),
            ("requires", "9.2.0", 21, "Python", "3.10"),
            ("requires", "9.2.0", 22, "UCX", "1.7.0"),
            ("requires", "9.2.0", 24, "Python", "3.9"),
            ("known issue", "9.2.0", 28, "", ""),
            ("known issue", "9.2.0", 29, "", ""),
            ("known issue", "9.1", 33, "", ""),
            ("requires", "9.1", 34, "Unknown", "1.3"),
        ],
    ),
    (NCCL_LOG, [("fixed", "2.99.5", 3, "", ""), ("requires", "2.99.5", 5, "CUDA", "12.8")]),
    ("", []),
])  # fmt: skip
def test_statements_of_known_forms_are_read(
    text: str, statements: list[tuple[object, ...]]
) -> None:
    found = release_notes.read(text)
    assert [(s.kind, s.release, s.line, s.name, s.version) for s in found] == statements


def test_release_notes_become_drafts_once(tmp_path: Path) -> None:
    checkout = tmp_path / "ompi" / "docs/release-notes/changelog"
    checkout.mkdir(parents=True)
    (checkout / "v9.rst").write_text(NOTES)
    git = tmp_path / "ompi/.git"
    git.mkdir()
    (git / "HEAD").write_text("0123456789abcdef\n")
    (git / "config").write_text("url = https://github.com/open-mpi/ompi.git\n")
    (tmp_path / "nccl.txt").write_text(NCCL_LOG)
    output = tmp_path / "ours" / "knowledge"
    words = (str(tmp_path / "ompi"), str(tmp_path / "nccl.txt"), "--output", str(output))
    assert record(*words)["statements"]["new"] == 9
    advisories = yaml.safe_load((output / "advisories.drafts.yaml").read_text())["advisories"]
    couplings = yaml.safe_load((output / "couplings.drafts.yaml").read_text())["couplings"]
    assert [(row["component"], row["affected"]) for row in advisories] == [
        ("openmpi", ">=9.2.0,<9.2.1"),
        ("openmpi", "==9.2.0"),
        ("openmpi", "==9.2.0"),
        ("openmpi", "==9.1"),
        ("nccl", "<2.99.5"),
    ]
    address = "https://github.com/open-mpi/ompi/blob/01234567/docs/release-notes/changelog/v9.rst"
    assert advisories[0]["sources"] == [f"{address}#L14"]
    assert [row["needs"] for row in couplings] == [
        {"python": ">=3.10"},
        {"ucx": ">=1.7.0"},
        {"python": ">=3.9"},
        {"cuda": ">=12.8"},
    ]
    assert all(row["confirmed-to"] and row["sources"] for row in couplings)
    assert record(*words)["written"] == []
    for name in ("advisories", "couplings"):
        (output / f"{name}.drafts.yaml").rename(output / f"{name}.yaml")
    accepted = record(*words, "--recipes", str(output.parent))
    assert (accepted["statements"]["known"], accepted["statements"]["new"]) == (9, 0)
    other = tmp_path / "unknown.txt"
    other.write_text(NOTES)
    command = ["knowledge", "record", str(other), "--output", str(output)]
    assert CliRunner().invoke(app, command).exit_code == 2
