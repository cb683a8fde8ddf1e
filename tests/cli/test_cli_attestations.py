"""``info --as``: what an environment is made of and how it was made, recorded when published."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from envbuilder.target_tools.bundle import read_folder
from envbuilder.target_tools.root.layout import Home
from tests.cli.bundles import write_bundle
from tests.cli.published import planned, publish_plan
from tests.verbs import problem_ids

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough

SITE = "lib/python3.11/site-packages"
NUMPY = "Metadata-Version: 2.4\nName: numpy\nVersion: {}\nLicense-Expression: BSD-3-Clause\n\nText"
MPI4PY = (
    "Metadata-Version: 2.1\nName: mpi4py\nVersion: {}\nLicense: UNKNOWN\n"
    "Classifier: Topic :: Software\nClassifier: License :: OSI Approved :: BSD License\n"
)


def info(root: Path, *words: str) -> Result:
    line = ["info", "allreduce", "--root", str(root), *words]
    return CliRunner().invoke(app, line, env={"COLUMNS": "80"})


@pytest.fixture(scope="module")
def plan() -> dict[str, Any]:
    return planned("allreduce")


@pytest.fixture
def home(plan: dict[str, Any], tmp_path: Path) -> Home:
    """An environment with a bill of materials, whose packages state licences."""
    versions = {each["component"]: each["version"] for each in plan["pins"]}
    files = {
        f"{SITE}/{name}-{versions[name]}.dist-info/METADATA": text.format(versions[name])
        for name, text in (("numpy", NUMPY), ("mpi4py", MPI4PY))
    }
    files["conda-meta/broken.json"] = "[1"
    publish_plan(tmp_path / "root", plan, files, attested=True)
    return Home(tmp_path / "root", "allreduce")


def evidence(home: Home) -> Path:
    [folder] = home.folder.glob("*.evidence")
    return folder


def test_licences_are_those_that_the_installed_packages_state(home: Home) -> None:
    done = info(home.root, "--as", "cyclonedx")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == (evidence(home) / "sbom.cdx.json").read_text(encoding="utf-8")
    components = json.loads(done.stdout)["components"]
    assert {each["name"]: each["licenses"] for each in components if "licenses" in each} == {
        "mpi4py": [{"license": {"name": "BSD License"}}],
        "numpy": [{"expression": "BSD-3-Clause"}],
    }
    told = json.loads(info(home.root, "--as", "cyclonedx", "--json").stdout)
    assert (told["recorded"], told["text"]) == (True, done.stdout)


def test_spdx_is_refused_and_cyclonedx_named(home: Home) -> None:
    done = info(home.root, "--as", "spdx")
    assert (done.exit_code, "cyclonedx" in done.stderr, done.stdout) == (2, True, "")


def test_provenance_is_about_the_manifest(home: Home) -> None:
    statement = json.loads(info(home.root, "--as", "provenance").stdout)
    manifest = evidence(home) / "manifest.json"
    [subject] = statement["subject"]
    assert subject["digest"]["sha256"] == hashlib.sha256(manifest.read_bytes()).hexdigest()
    assert subject["name"] == f"allreduce/{evidence(home).stem}/manifest.json"
    manifest.write_text(manifest.read_text() + " ")
    done = info(home.root, "--as", "provenance", "--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (8, ["environment.attestation-damaged"])
    assert "manifest.json" in done.stderr


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda text: text.replace('"content": "', '"content": "0', 1), "its files"),
        (lambda text: text[:-20], "damaged"),
        (lambda _: "[]", "damaged"),
        (lambda _: '{"components": [{"name": 1, "hashes": 3}]}', "damaged"),
    ],
)
def test_one_that_is_not_of_the_lock_is_drift(home: Home, edit: Any, says: str) -> None:
    bill = evidence(home) / "sbom.cdx.json"
    bill.write_text(edit(bill.read_text()))
    done = info(home.root, "--as", "cyclonedx", "--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (8, ["environment.attestation-damaged"])
    assert says in done.stderr
    assert info(home.root).exit_code == 0


def test_an_environment_of_before_has_a_bill_of_its_lock_alone(
    plan: dict[str, Any], tmp_path: Path
) -> None:
    publish_plan(tmp_path / "root", plan)
    done = info(tmp_path / "root", "--as", "cyclonedx")
    assert done.exit_code == 0
    assert "from its lock" in done.stderr
    assert json.loads(done.stdout)["bomFormat"] == "CycloneDX"
    done = info(tmp_path / "root", "--as", "provenance", "--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["environment.no-provenance"])
    assert "allreduce/1" in done.stderr
    assert info(tmp_path / "root", "--as", "cyclonedx", "--verify").exit_code == 2


def test_a_bundle_has_both_and_its_archive_has_provenance(tmp_path: Path) -> None:
    folder, archive = write_bundle(tmp_path)
    files = read_folder(folder).files
    assert {"build/sbom.cdx.json", "build/slsa-provenance.json"} <= files.keys()
    statement = json.loads((tmp_path / f"{folder.name}.provenance.intoto.json").read_text())
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert statement["subject"] == [{"name": archive.name, "digest": {"sha256": sha256}}]
    predicate = json.loads((folder / "build" / "slsa-provenance.json").read_text())
    assert statement["predicate"] == predicate
    # Nothing of this machine: two bundles of one lock say the same.
    assert str(tmp_path) not in (folder / "build" / "sbom.cdx.json").read_text()
