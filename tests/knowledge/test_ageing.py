"""Ranges without an upper end: for which releases rows were confirmed, and what later ones get."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.knowledge.ageing import (
    confirmed_releases,
    is_confirmed,
    open_ends,
    outdated_ends,
)
from envbuilder.knowledge.ranges import matches
from envbuilder.knowledge.rows import Advisory, Coupling, FlagRule
from envbuilder.resolve.facts import Facts
from envbuilder.resolve.pool import Pool
from envbuilder.resolve.problem import Candidate
from envbuilder.resolve.rules import GroundRule, ground
from tests.shipped import read_shipped

from .stacks import AnyRow
from .test_bounds import affected, origin_of, ranges_of

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough

KNOWN = read_shipped().value
ROWS: tuple[AnyRow, ...] = tuple(
    row
    for row in (*KNOWN.advisories, *KNOWN.couplings, *KNOWN.flag_rules)
    if row.replaced_by is None
)
OPEN = [(row, name) for row in ROWS for name in open_ends(row, KNOWN)]
NAMES = [f"{row.id} {name}" for row, name in OPEN]

# Their sources speak of one release only: to read again.
TO_CONFIRM = {"GDR-002", "NCCL-021", "NCCL-028", "OFI-007", "PY-034", "TORCH-115"}


@pytest.mark.parametrize(("limit", "inside", "outside"), [
    ("13.3", "13.3.9", "13.4.0"),
    ("13.3.0", "13.3.0", "13.3.1"),
    ("1.7.0-3", "1.7.0-1", "1.7.1"),
])  # fmt: skip
def test_a_release_of_the_confirmed_series_is_confirmed(
    limit: str, inside: str, outside: str
) -> None:
    assert is_confirmed(inside, limit)
    assert not is_confirmed(outside, limit)


def test_every_open_range_was_confirmed_for_a_release_in_it() -> None:
    assert len(OPEN) > 200
    for row, name in OPEN:
        limit = confirmed_releases(row).get(name)
        assert limit is not None, (row.id, name)
        assert row.confirmed is not None, row.id
        assert any(matches(limit, each) for each in ranges_of(row)[name]), (row.id, name, limit)


def test_no_closed_range_was_confirmed() -> None:
    for row in ROWS:
        assert set(confirmed_releases(row)) <= set(open_ends(row, KNOWN)), row.id


def test_the_outdated_ends_are_these() -> None:
    assert {end.row.id for end in outdated_ends(KNOWN)} == TO_CONFIRM


@pytest.mark.parametrize(("row", "name"), OPEN, ids=NAMES)
def test_a_later_release_is_an_error_only_if_the_cause_holds(row: AnyRow, name: str) -> None:
    limit = confirmed_releases(row)[name]
    grounded = _ground(row, name, _after(limit))
    assert grounded, "no rule for a later release"
    for rule in grounded:
        assert rule.confirmed == (
            f"{name} {limit}" if row.severity == "error" and not row.holds else None
        )
        assert rule.row.severity == (
            "warning" if row.severity == "error" and not row.holds else row.severity
        )
    before = _ground(row, name, limit)
    assert {rule.row.severity for rule in before} == {row.severity}


def _after(limit: str) -> str:
    """Return a release after all of the series."""
    first = limit.partition("-")[0].split(".")
    return f"{int(first[0]) + 1}.0.0"


def _ground(row: AnyRow, name: str, release: str) -> tuple[GroundRule, ...]:
    """Return the rules of a row for the smallest stack with this release. Its condition is true."""
    versions = {each: part.version for each, part in affected(row).items()} | {name: release}
    candidates = tuple(
        Candidate(each, each, text, origin_of(row, each), each, 0)
        for each, text in versions.items()
    )
    knowledge = KNOWN.model_copy(update={"advisories": (), "couplings": (), "flag_rules": ()})
    certain = row.model_copy(update={"when": "true"})
    kind = {Advisory: "advisories", Coupling: "couplings", FlagRule: "flag_rules"}[type(row)]
    alone = knowledge.model_copy(update={kind: (certain,)})
    return ground(alone, Pool(candidates), Facts({}), {})


OWN = """\
schema: 1
advisories:
  - id: OUR-001
    severity: error
    component: numpy
    affected: ">=1.26"
    confirmed-to: "1.26"
    confirmed: "2026-11-28"
{holds}    summary: it is wrong here
    evidence: run
    sources: ["https://cluster.example/tickets/1"]
"""
RECIPE = """\
schema: 1
name: ours
summary: A recipe of the tests
arch: [x86_64, aarch64]
stack: {{python: "*", numpy: "{numpy}", mpich: "*"}}
"""


def run(folder: Path, *words: str, holds: str = "") -> tuple[int, dict[str, Any], str]:
    (folder / "knowledge").mkdir(exist_ok=True)
    (folder / "knowledge" / "advisories.yaml").write_text(OWN.format(holds=holds))
    done = CliRunner().invoke(app, [*words, "--json"], env={"ENVBUILD_PATH": str(folder)})
    return done.exit_code, json.loads(done.stdout), done.stderr


def plan(folder: Path, numpy: str, holds: str = "") -> tuple[int, dict[str, Any], str]:
    (folder / "ours.yaml").write_text(RECIPE.format(numpy=numpy))
    return run(folder, "plan", "ours", "--site", "local", holds=holds)


def test_a_release_that_was_not_confirmed_is_avoided_and_planned_if_pinned(tmp_path: Path) -> None:
    code, value, _ = plan(tmp_path, ">=1.25")
    chosen = {pin["component"]: pin["version"] for pin in value["pins"]}
    assert (code, chosen["numpy"]) == (0, "1.25.2")
    code, value, _ = plan(tmp_path, "==2.2.*")
    found = [each for each in value["findings"] if each["id"] == "OUR-001"]
    assert code == 0
    assert [each["status"] for each in found] == ["warning"]
    assert "numpy 1.26" in found[0]["summary"]
    assert plan(tmp_path, "==1.26.*")[0] == 4
    held = "    holds: until-fixed\n    reason: its ABI\n"
    assert plan(tmp_path, "==2.2.*", held)[0] == 4


def test_check_is_strict_only_if_asked(tmp_path: Path) -> None:
    check = ("advisories", "check", "numpy==2.2.0")
    code, value, _ = run(tmp_path, *check)
    assert (code, value["bad"]) == (0, False)
    assert [(each["severity"], each.get("confirmed-to")) for each in value["rows"][:1]] == [
        ("warning", "numpy 1.26")
    ]
    assert run(tmp_path, *check, "--strict")[0] == 4
    assert run(tmp_path, *check[:2], "numpy==1.26.4")[0] == 4


def test_a_plan_says_once_that_knowledge_is_old(tmp_path: Path) -> None:
    versions = 'schema: 1\nrecorded: "{}"\nsource: a test\n'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("envbuilder.workflow.load.MAX_DAYS", -100000)
        assert plan(tmp_path, "*")[2].count(str(KNOWN.recorded)) == 1
    (tmp_path / "knowledge" / "versions.yaml").write_text(versions.format("2999-01-01"))
    assert "2999" not in plan(tmp_path, "*")[2]


@pytest.mark.parametrize("words", [("cuda==13.5.0", "gcc==16.1.0"), ("cuda==11.8.0", "gpu=sm_90")])
def test_rows_whose_source_says_less_are_corrected(words: tuple[str, str]) -> None:
    """CUDA-015 ends at CUDA 13.3, and CUDA 11.8 compiles for Hopper (CUDA-033)."""
    facts = [each for word in words if "==" not in word for each in ("--fact", word)]
    versions = [word for word in words if "==" in word]
    assert CliRunner().invoke(app, ["advisories", "check", *versions, *facts]).exit_code == 0
