"""``sites snapshot``, ``sites detect`` and ``sites check`` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from envbuilder.documents.snapshots import load_snapshot

from .site_tools import base_tree, lmod_init, modulefiles

pytestmark = pytest.mark.integration


def run(*words: str | Path, **env: str) -> Result:
    return CliRunner().invoke(
        app, [str(word) for word in words], env={"COLUMNS": "80", "PATH": "/usr/bin:/bin", **env}
    )


SITE = """\
schema: 1
name: mine
summary: A site of the tests
arch: [x86_64]
module-system: lmod
module-init: {init}
module-trees: [{tree}]
{more}"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    tree = modulefiles(tmp_path / "tree", {"A/1.lua": 'load("B/1")\n', "B/1.lua": ""})
    path = tmp_path / "mine.yaml"
    path.write_text(SITE.format(init=lmod_init(), tree=tree, more=""))
    return path


def test_a_snapshot_on_the_screen(site: Path) -> None:
    done = run("sites", "snapshot", site)
    assert done.exit_code == 0, done.stderr
    plain = json.loads(done.stdout)
    assert [module["name"] for module in plain["modules"]] == ["A/1", "B/1"]
    assert plain["schema"] == 1
    assert plain["source"] == "envbuild sites snapshot"


def test_a_snapshot_in_a_file(site: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine.snapshot.json"
    target.write_text("what was there before")
    done = run("sites", "snapshot", site, "--output", target)
    assert done.exit_code == 0, done.stderr
    assert "2 modules in 1 tree\n" in done.stdout
    assert done.stdout.endswith(f"wrote {target}\n")
    assert [module.loads for module in load_snapshot(target).modules] == [("B/1",), ()]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "mine.snapshot.json",
        "mine.yaml",
        "tree",
    ]


def test_two_snapshots_of_one_state_are_the_same(site: Path, tmp_path: Path) -> None:
    one, other = (run("sites", "snapshot", site).stdout for _ in range(2))
    assert one == other


def test_other_trees(site: Path, tmp_path: Path) -> None:
    other = modulefiles(tmp_path / "other", {"C/1.lua": ""})
    done = run("sites", "snapshot", site, "--tree", other)
    assert [module["name"] for module in json.loads(done.stdout)["modules"]] == ["C/1"]


def test_what_is_broken_is_told_and_written_all_the_same(site: Path, tmp_path: Path) -> None:
    (tmp_path / "tree" / "B" / "2.lua").write_text("this is no Lua\n")
    done = run("sites", "snapshot", site, "--output", tmp_path / "x.json", "--json")
    assert done.exit_code == 0
    assert "warning: module B/2" in done.stderr
    plain = json.loads(done.stdout)
    assert len(plain["notes"]) == 1
    assert plain["file"] == str(tmp_path / "x.json")


def test_a_failure_leaves_the_old_file(site: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.json"
    target.write_text("old")
    done = run("sites", "snapshot", site, "--tree", tmp_path / "gone", "--output", target)
    assert done.exit_code == 2
    assert "module tree" in done.stderr
    assert target.read_text() == "old"
    done = run("sites", "snapshot", site, "--output", tmp_path / "no" / "x.json")
    assert done.exit_code == 2
    assert "no such folder" in done.stderr


def test_a_site_that_is_elsewhere() -> None:
    done = run("sites", "snapshot", "summit")
    assert done.exit_code in (2, 9)
    assert "site summit" in done.stderr
    assert "a login node" in done.stderr


def test_a_module_system_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("schema: 1\nname: mine\nsummary: x\narch: [x86_64]\n")
    done = run("sites", "snapshot", path)
    assert done.exit_code == 2
    assert "site mine" in done.stderr


def test_checking_a_site_compares_its_snapshot(site: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine.snapshot.json"
    assert run("sites", "snapshot", site, "-o", target).exit_code == 0
    site.write_text(f"{site.read_text()}modules:\n  - {{name: A/1, loads: [C/1], home: /sw/A}}\n")
    done = run("sites", "check", site)
    assert done.exit_code == 0, done.stderr
    assert done.stderr.splitlines() == [
        "warning: mine.yaml: module A/1: site mine states loads [C/1], its snapshot has [B/1]: "
        "using the statement",
        "warning: mine.yaml: modules that provide no known component: a, b",
    ]
    (tmp_path / "tree" / "B" / "1.lua").write_text("-- another text\n")
    done = run("sites", "check", site)
    assert f"tree {tmp_path}/tree" in done.stderr
    old = target.read_text()
    target.write_text(old.replace('"taken": "', '"taken": "2001-01-01", "source": "'))
    assert "days old (taken 2001-01-01)" in run("sites", "check", site).stderr
    target.write_text(old[:200])
    done = run("sites", "check", site)
    assert done.exit_code == 2
    assert f"{target}:" in done.stderr
    assert "the snapshot is truncated" in done.stderr
    target.unlink()
    done = run("sites", "check", site)
    assert done.exit_code == 2
    assert "no such file" in done.stderr
    assert f"sites snapshot {site} --output {target}" in done.stderr


def test_a_draft_on_the_screen_and_in_a_file(tmp_path: Path) -> None:
    variables = {"MODULEPATH": str(base_tree("taurus-ml"))}
    done = run("sites", "detect", **variables)
    assert done.exit_code == 0, done.stderr
    assert "name: this-site\n" in done.stdout
    target = tmp_path / "our-cluster.yaml"
    done = run("sites", "detect", "--output", target, **variables)
    assert done.exit_code == 0, done.stderr
    assert done.stdout == ""
    # Its modules are not recorded yet.
    assert run("sites", "check", target).exit_code == 2
    assert "name: our-cluster\n" in target.read_text()


def test_a_draft_as_json() -> None:
    plain = json.loads(run("sites", "detect", "--json").stdout)
    assert set(plain) == {"site", "snapshot", "draft"}
    assert plain["site"]["name"] == "local"
    assert plain["draft"].startswith("schema: 1\n")


@pytest.mark.parametrize("name", ["Our_Cluster.yaml", "our-cluster.json", "our--cluster.yaml"])
def test_a_draft_under_a_name_that_no_site_can_have(tmp_path: Path, name: str) -> None:
    done = run("sites", "detect", "--output", tmp_path / name)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert list(tmp_path.iterdir()) == []


def test_a_draft_leads_to_a_snapshot(tmp_path: Path) -> None:
    lmod_init()
    variables = {"MODULEPATH": str(base_tree("taurus-ml").parents[1] / "ml" / "all")}
    site = tmp_path / "our-cluster.yaml"
    assert run("sites", "detect", "-o", site, **variables).exit_code == 0
    done = run("sites", "snapshot", site, "-o", tmp_path / "our-cluster.snapshot.json")
    assert done.exit_code == 0, done.stderr
    assert "53 modules in 1 tree\n" in done.stdout
