"""What holds for every provider: nothing is lost, nothing is added, the same comes out twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from envbuilder.ci.providers import PROVIDERS
from envbuilder.ci.values import Command, Pipeline, PipelineJob, shell_lines
from envbuilder.model.site import Runner
from tests import goldens

DOCS = Path(__file__).parents[2] / "docs" / "ci.md"
GOLDENS = Path(__file__).parent / "goldens"

_LOCK = PipelineJob(
    stage="lock",
    recipe="a.b",
    arch="x86_64",
    commands=(Command(("lock", "a.b", "--output", "x y's.json")),),
    runner=Runner(tags=("first-tag",)),
    makes=("x y's.json",),
)
_PROVE = PipelineJob(
    stage="prove",
    recipe="a.b",
    arch="x86_64",
    commands=(Command(("smoke", "a.b"), ranks=True), Command(("info", "a.b"), "out.json")),
    runner=Runner(tags=("second-tag",), in_job=("srun", "-N1")),
    needs=(_LOCK.id,),
    takes=(_LOCK.id,),
)
JOBS = (
    _LOCK,
    _PROVE,
    replace(_PROVE, stage="publish", when="default-branch"),
    replace(_PROVE, stage="prove-again", needs=(), takes=(), when="nightly"),
)
PIPELINE = Pipeline("here", ("module load envbuild",), JOBS)


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_command_of_every_job_is_in_it(name: str) -> None:
    text = PROVIDERS[name].render(PIPELINE)
    # Its strings are quoted in a language of its own.
    plain = text.replace("\\", "").replace("''", "'")
    for job in JOBS:
        assert job.id in text
        for line in shell_lines(job, in_job=False):
            assert line.replace("\\", "") in plain
    assert "module load envbuild" in text
    assert text == PROVIDERS[name].render(PIPELINE)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_small_pipeline_as_a_whole(name: str) -> None:
    file = GOLDENS / Path(PROVIDERS[name].FILE).name.lstrip(".")
    goldens.compare(file, PROVIDERS[name].render(PIPELINE))


@pytest.mark.parametrize("name", PROVIDERS)
def test_it_is_documented_with_its_file(name: str) -> None:
    assert f"| `{name}` | `{PROVIDERS[name].FILE}` |" in DOCS.read_text(encoding="utf-8")
