"""What the tests of forms share: pins, the shipped knowledge, a plan full of hostile values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dockerfile_parse import DockerfileParser
from render_cases import (
    CASES,
    HOSTILE,
    make_plan,
    prefix_of,
    standard_edits,
)

from envbuilder.knowledge.rows import Knowledge
from envbuilder.model.plan import Edit, Lock, Pin, Plan
from envbuilder.render.forms import FORMS
from envbuilder.render.subject import RenderInput, UnlockedPlan
from envbuilder.runtimes import RUNTIMES
from envbuilder.workflow.texts import image_parts


def pin(component: str, version: str, origin: str, locator: str = "somewhere") -> Pin:
    return Pin.model_validate(
        {
            "component": component,
            "version": version,
            "origin": origin,
            "locator": locator,
            "why": "it was asked for",
        }
    )


PYTHON = pin("python", "3.10.4", "module", "Python/3.10.4-GCCcore-11.3.0")


def render(form: str, plan: Plan, knowledge: Knowledge, *, lock: Lock | None = None) -> str:
    source = lock or UnlockedPlan(plan)
    subject = RenderInput(source, CASES[0].places, knowledge, prefix_of(plan), RUNTIMES)
    if FORMS[form].needs == "planned-image":
        subject = replace(subject, image=image_parts(plan, knowledge))
    return FORMS[form].render(subject)


def parsed_dockerfile(text: str, tmp_path: Path) -> DockerfileParser:
    parser = DockerfileParser(path=str(tmp_path))
    parser.content = text
    return parser


VALUES = {
    "ONE": HOSTILE,
    "LINES": "a\n%post\n    touch CANARY\nBootstrap: docker\n{{ name }} {{{x}}}\n",
    "PERCENT": "%post",
    "TAB": "\ta\r",
}


def hostile_plan() -> Plan:
    return make_plan(
        recipe="hostile",
        summary="%post {{ name }} " + HOSTILE,
        environment=(
            *standard_edits(**VALUES),
            Edit(kind="prepend", name="BEFORE", value=VALUES["LINES"]),
            Edit(kind="append", name="BEHIND", value=VALUES["ONE"]),
        ),
    )
