"""``create --require-tier`` of an environment that is published already."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from envbuilder.target_tools.root.layout import Home, Version
from envbuilder.target_tools.root.registry import default_number
from tests.cli.published import planned, publish_plan
from tests.record.proofs import proved, subject
from tests.verbs import problem_ids

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough


@pytest.fixture
def published(tmp_path: Path) -> tuple[Home, Version]:
    """Two numbers; the first one is not the default."""
    plan = planned("allreduce", "--site", "local")
    one = publish_plan(tmp_path / "root", plan)
    more = {**plan, "smoke": {**plan["smoke"], "ranks": 3}}
    publish_plan(tmp_path / "root", more)
    return Home(tmp_path / "root", "allreduce"), one


def create(home: Home, version: Version, *words: str) -> Result:
    lock = home.build(version.id) / "lock.json"
    line = ["create", "allreduce", "--site", "local", "--locked", str(lock), "--json"]
    return CliRunner().invoke(app, [*line, "--root", str(home.root), *words])


@pytest.mark.parametrize(
    ("transport", "tier", "code", "ids", "default"),
    [
        ("mpi", "ranks", 0, [], 1),
        ("mpi", "nodes", 5, ["tier.too-low"], 2),
        # Of another kind of proof.
        (None, "rank", 5, ["tier.too-low"], 2),
    ],
)
def test_proofs_of_a_published_number_have_the_required_tier(
    published: tuple[Home, Version],
    transport: str | None,
    tier: str,
    code: int,
    ids: list[str],
    default: int,
) -> None:
    home, version = published
    proved(home.evidence(version.id), subject(home, version), transport=transport)
    done = create(home, version, "--require-tier", tier)
    assert (done.exit_code, problem_ids(done.stdout) if ids else []) == (code, ids), done.stderr
    assert default_number(home) == default


def test_a_number_without_proof_is_not_made_the_default(published: tuple[Home, Version]) -> None:
    home, version = published
    done = create(home, version)
    assert (done.exit_code, problem_ids(done.stdout)) == (5, ["environment.evidence-missing"])
    assert default_number(home) == 2
