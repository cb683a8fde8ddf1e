"""Hostile conda packages through ``create`` and ``create --bundle``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from hashlib import md5, sha256
from pathlib import Path

import pytest
from integration_tools import Envbuild, run

from envbuilder import data
from tests.hostile_packages import (
    CASES,
    ENDINGS,
    Case,
    Outside,
    Package,
    actual_tree,
    expected_tree,
    file,
    python,
    write_package,
)

pytest.importorskip("rattler")
pytest.importorskip("conda_package_streaming")
pytestmark = pytest.mark.long

RECIPE = """\
schema: 1
name: hostile
summary: A package that nobody should link
arch: [x86_64]
backend: conda
channels: [tests]
conda-packages: [NAMES]
stack: {python: "*", numpy: "*", mpi4py: ">=4", mpich: ">=4.2"}
smoke: {ranks: 2, max-bytes: 65536}
"""
KNOWLEDGE = """\
schema: 1
recorded: "2026-11-01"
source: made by the tests
channels:
  tests: {url: "URL", recorded: "2026-11-01", sources: [made by the tests], packages: {}}
"""
# What a recipe needs beside them; none of it is ever run.
HARMLESS = tuple(
    Package((file(f"share/{name}"),), name=name, version=version)
    for name, version in (
        ("numpy", "2.1.0"),
        ("mpi4py", "4.0.0"),
        ("mpich", "4.2.3"),
        ("pip", "24.0"),
    )
)


def write_channel(channel: Path, packages: Sequence[Package], ending: str, outside: Path) -> None:
    """Write a channel whose index says of each package what an honest one would say."""
    rows = {}
    (channel / "linux-64").mkdir(parents=True)
    for package in packages:
        path = write_package(channel / "linux-64", package, ending, outside)
        content = path.read_bytes()
        rows[path.name] = {
            "name": package.name,
            "version": package.version,
            "build": "0",
            "build_number": 0,
            "depends": [],
            "subdir": "linux-64",
            "size": len(content),
            "md5": md5(content).hexdigest(),
            "sha256": sha256(content).hexdigest(),
        }
    (channel / "noarch").mkdir()
    for subdir, its in (("linux-64", rows), ("noarch", {})):
        key = "packages.conda" if ending == ".conda" else "packages"
        index = {"packages": {}, "packages.conda": {}, key: its, "repodata_version": 1}
        text = json.dumps({"info": {"subdir": subdir}, **index})
        (channel / subdir / "repodata.json").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_nothing_outside_is_read_or_changed_and_nothing_else_is_published(
    name: str, envbuild: Envbuild, tmp_path: Path
) -> None:
    """The engine's own test has each with both kinds of files, linked and in a bundle."""
    case, number = CASES[name], [*CASES].index(name)
    verb = "create" if case.refused and number % 2 else "bundle"
    ending = case.only or ENDINGS[number // 2 % 2]
    packages = complete(case)
    (tmp_path / "outside").mkdir()
    write_channel(tmp_path / "channel", packages, ending, tmp_path / "outside")
    (tmp_path / "recipes" / "knowledge").mkdir(parents=True)
    names = ", ".join(each.name for each in case.packages if each.name != "python")
    recipe = RECIPE.replace("NAMES", names)
    (tmp_path / "recipes" / "hostile.yaml").write_text(recipe, encoding="utf-8")
    known = KNOWLEDGE.replace("URL", (tmp_path / "channel").as_uri())
    (tmp_path / "recipes" / "knowledge" / "versions.yaml").write_text(known, encoding="utf-8")
    outside, root, bundles = Outside(tmp_path / "outside"), tmp_path / "root", tmp_path / "bundles"
    bundles.mkdir()
    words = ("create", "hostile", "--recipes", tmp_path / "recipes", "--site", "local", "--json")
    more = ("--root", root) if verb == "create" else ("--bundle", "--output", bundles)
    done = envbuild(*words, *more)
    assert outside.changes() == []
    assert "Traceback" not in done.text
    if case.refused:
        assert done.code == 5, done.text
        assert [*bundles.iterdir()] == []
        assert not [*root.glob("modulefiles/*/*")]
        return
    assert done.code == 0, done.text
    build = Path(json.loads(done.out)["folder"]) / "build"
    prefix = tmp_path / "prefix"
    files = (build / "conda-prefix.tar.gz", build / "conda-prefix.json", prefix)
    made = run([sys.executable, "-I", data.TARGET_TOOLS, "relocate", "unpack", *files])
    assert made.code == 0, made.text
    assert actual_tree(prefix) == expected_tree(packages, str(prefix), tmp_path / "outside")


def complete(case: Case) -> tuple[Package, ...]:
    """Return the packages of a case and what an environment needs beside them."""
    has_python = any(package.name == "python" for package in case.packages)
    return (*HARMLESS, *(() if has_python else (python(),)), *case.packages)
