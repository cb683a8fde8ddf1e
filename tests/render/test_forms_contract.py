"""The contract of FORMS, for every entry and for the job of every scheduler; and a made-up one."""

from __future__ import annotations

from pathlib import Path

import pytest
from render_cases import CASES, Case, prefix_of, shipped_knowledge
from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.commands.render import forms
from envbuilder.errors import UsageError
from envbuilder.launching.schedulers import SCHEDULERS
from envbuilder.model.job import Job
from envbuilder.render.forms import FORMS, Form
from envbuilder.render.subject import Renderable, RenderInput, UnlockedPlan
from envbuilder.runtimes import RUNTIMES
from envbuilder.workflow.texts import image_parts, job_parts

pytestmark = pytest.mark.thorough

DOCS = Path(__file__).parents[2] / "docs" / "rendering.md"


def subject(name: str, case: Case, source: Renderable) -> RenderInput:
    image = None
    if forms()[name].needs == "planned-image":
        image = image_parts(source.plan, shipped_knowledge())
    job = Job(case.lock.plan.recipe, nodes=1, ranks_per_node=2, minutes=30)
    return RenderInput(
        source=source,
        places=case.places,
        knowledge=shipped_knowledge(),
        prefix=prefix_of(source.plan),
        runtimes=RUNTIMES,
        job=job_parts(name, job, ("srun", "python")) if name in SCHEDULERS else None,
        image=image,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("name", forms())
@pytest.mark.sample(13)
def test_a_form_is_one_text_or_a_reason(name: str, case: Case) -> None:
    form = forms()[name]
    assert form.file_of(case.lock.plan) == Path(form.file_of(case.lock.plan)).name
    for source in (case.lock, UnlockedPlan(case.lock.plan)):
        try:
            one = subject(name, case, source)
            text = form.render(one)
        except UsageError as error:
            [problem] = error.problems
            assert problem.hints, "a refusal says what can be done instead"
            continue
        assert text.endswith("\n")
        assert text == form.render(one), "the same plan gives the same bytes"
        # Only a lock has hashes and an id.
        assert isinstance(source, UnlockedPlan) or "not-locked" not in text


def test_every_form_has_a_file_of_its_own_and_is_documented() -> None:
    plan = CASES[0].lock.plan
    files = [form.file_of(plan) for form in forms().values()]
    assert len(set(files)) == len(files)
    for name in forms():
        assert f"`{name}`" in DOCS.read_text(encoding="utf-8"), name


def test_a_further_form_is_a_module_and_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pins = Form("{name}.pins", lambda subject: "".join(f"{pin}\n" for pin in subject.plan.pins))
    monkeypatch.setitem(FORMS, "pins", pins)

    def render(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["render", "allreduce", "--site", "local", *words])
        return done.exit_code, done.output

    code, text = render("--as", "pins")
    assert code == 0
    assert "\nnumpy@" in text
    code, text = render("--as", "all", "--output", str(tmp_path / "all"))
    assert code == 0
    assert "numpy@" in (tmp_path / "all" / "allreduce.pins").read_text(encoding="utf-8")
    code, text = render("--as", "pin")
    assert code == 2
    assert "did you mean 'pins'?" in text
