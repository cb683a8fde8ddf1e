"""One damaged record is a marked row, and takes nothing else of the root along."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from envbuilder.model.plan import Lock
from envbuilder.target_tools.root.layout import Home
from tests.cli.published import planned, publish_plan
from tests.record.proofs import proved, subject

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two environments, each with a proof."""
    plan = planned("allreduce")
    for name in ("allreduce", "other"):
        version = publish_plan(tmp_path / "root", {**plan, "recipe": name})
        home = Home(tmp_path / "root", name)
        proved(home.evidence(version.id), subject(home, version))
    return tmp_path / "root"


def run(root: Path, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--root", str(root)], env={"COLUMNS": "300"})


def rows(root: Path) -> dict[str, dict[str, Any]]:
    told = run(root, "list", "--json")
    assert told.exit_code == 0, told.stderr
    listed = json.loads(told.stdout)["environments"]
    return {each["environment"]: each for each in listed}


def the_file(root: Path, pattern: str) -> Path:
    (path,) = (root / "other").glob(pattern)
    return path


@pytest.mark.parametrize("text", ["", '{"schema": 1, "env', "[]", "\x00"])
@pytest.mark.parametrize(
    ("pattern", "said"),
    [("*.evidence/0001/evidence.json", "evidence.json is damaged"), ("*.build/lock.json", "lock")],
)
def test_a_damaged_record_is_a_marked_row(root: Path, pattern: str, said: str, text: str) -> None:
    the_file(root, pattern).write_text(text, encoding="utf-8")
    found = rows(root)
    assert found["allreduce"]["damaged"] == []
    assert found["allreduce"]["tier"] == "several ranks"
    assert said in found["other"]["damaged"][0]
    assert said in " ".join(run(root, "list").stdout.split())
    assert run(root, "info", "allreduce").exit_code == 0
    if "evidence" in pattern:
        info = run(root, "info", "other")
        assert (info.exit_code, said in info.stdout) == (0, True)


def test_a_damaged_registry_is_said_and_takes_nothing_away(root: Path) -> None:
    (root / "other" / ".envbuild.json").write_text("{", encoding="utf-8")
    assert list(rows(root)) == ["allreduce", "other"]
    text = " ".join(run(root, "list").stdout.split())
    assert "! other: " in text
    assert "envbuild create or remove" in text
    assert run(root, "info", "other").exit_code == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"tier": "several nodes", "nodes": ["one"]},
        {"tier": "several nodes", "nodes": ["one", "one"]},
        {"tier": "several ranks", "ranks": 1},
        {"tier": "several nodes", "nodes": ["one", "two", "three"], "ranks": 2},
    ],
)
def test_a_tier_that_the_record_itself_refutes_is_not_repeated(
    root: Path, changes: dict[str, Any]
) -> None:
    path = the_file(root, "*.evidence/0001/evidence.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    record["result"].update(changes)
    path.write_text(json.dumps(record), encoding="utf-8")
    row = rows(root)["other"]
    assert row["tier"] is None
    assert "does not count" in row["claimed"][0]


def test_every_lock_that_decides_otherwise_is_refused_where_it_lies(root: Path) -> None:
    """Over 300 of them: what is read is what the folder was built from, or it is not read."""
    from envbuilder.errors import BuildError
    from envbuilder.model.decisions import decisions
    from envbuilder.root.environment_lock import read_lock
    from envbuilder.target_tools.root.publish import find_version
    from tests.model.locks_otherwise import changed, leaves

    home = Home(root, "other")
    version = find_version(home, 1)
    path = the_file(root, "*.build/lock.json")
    lock = Lock.model_validate_json(path.read_text(encoding="utf-8"))
    steps = [each.id for each in lock.plan.steps]
    drawn = refused = 0
    for leaf in leaves(lock.plain()):
        for other in changed(lock, leaf):
            path.write_text(other.text(), encoding="utf-8")
            drawn += 1
            try:
                read = read_lock(home, version)
            except BuildError:
                refused += 1
                continue
            assert decisions(read) == decisions(lock), leaf
            assert [each.id for each in read.plan.steps][1:] == steps[1:], "but for the backend's"
            assert read.plan.python == lock.plan.python
    assert drawn > 300
    assert refused > 150
