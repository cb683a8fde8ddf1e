"""A pipeline done on this machine for real: published, resumed, proved again, and as a bundle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from integration_tools import Envbuild

pytestmark = [pytest.mark.integration, pytest.mark.network, pytest.mark.long]

BROKEN = """\
schema: 1
name: broken
summary: A package that there is nowhere
arch: [x86_64, aarch64]
stack: {python: ">=3.8", numpy: "*", mpich: "*"}
packages: ["envbuild-has-no-such-package==1"]
"""


def test_a_broken_recipe_leaves_the_others_published(envbuild: Envbuild, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text(BROKEN, encoding="utf-8")
    words = ("allreduce", "broken.yaml", "--site", "local", "--base", "base")
    done = envbuild("ci", "run", *words, cwd=tmp_path)
    assert done.code == 5, done.text
    head, good, broken, *_ = done.out.splitlines()
    assert head.split() == ["plan", "lock", "build", "prove", "scan", "publish", "seconds"]
    assert good.split()[1:7] == ["ok"] * 6
    assert broken.split()[1:7] == ["ok", "FAILED", *["-"] * 4]
    assert "envbuild-has-no-such-package" in done.out
    assert done.out.splitlines()[-1] == "1 of 2 passed"
    matrix = good.split()[0]
    root = tmp_path / "base" / "local" / matrix.removeprefix("allreduce-")
    listed = json.loads(envbuild("list", "--root", root, "--json").out)["environments"]
    assert [(each["environment"], each["tier"]) for each in listed] == [
        ("allreduce", "several ranks")
    ]
    folder = tmp_path / "envbuild-ci" / matrix
    told = [json.loads((folder / name).read_text()) for name in ("evidence.json", "published.json")]
    assert told[0]["id"] == told[1]["id"] == listed[0]["id"]
    # The candidate was proved twice: as it was built, and by the job after it.
    assert [len(each["evidence"]) for each in told] == [2, 1]

    assert "<testsuite" in (folder / "findings.xml").read_text(encoding="utf-8")
    assert json.loads((folder / "sbom.cdx.json").read_text())["bomFormat"] == "CycloneDX"
    assert "predicate" in json.loads((folder / "provenance.json").read_text())

    again = envbuild("ci", "run", *words, "--resume", cwd=tmp_path)
    assert again.code == 5
    assert f"plan-{matrix}" not in again.err
    assert again.out.splitlines()[-1] == "1 of 2 passed"

    night = envbuild("ci", "run", *words[:1], *words[2:], "--nightly", cwd=tmp_path)
    assert (night.code, night.out.splitlines()[-1]) == (0, "1 of 1 passed"), night.text
    assert "no differences" in (folder / "drift.log").read_text(encoding="utf-8")


def test_a_bundle_is_installed_by_the_verb(envbuild: Envbuild, tmp_path: Path) -> None:
    """As the jobs of a site do it whose builder has no GPUs."""
    site = ("--site", "local")
    lock = envbuild("lock", "allreduce", *site, "--output", tmp_path / "lock.json")
    assert lock.code == 0, lock.text
    words = ("--locked", tmp_path / "lock.json", "--bundle", "--output", tmp_path / "bundle")
    made = envbuild("create", "allreduce", *site, *words)
    assert made.code == 0, made.text
    root = tmp_path / "root"
    done = envbuild("bundle", "install", tmp_path / "bundle", "--root", root)
    assert done.code == 0, done.text
    assert "allreduce/1" in done.out
    info = json.loads(envbuild("info", "allreduce", "--root", root, "--json").out)
    assert info["evidence"][0]["result"]["tier"] == "several ranks"
