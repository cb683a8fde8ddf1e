"""What a lock or plan is rendered of: its build folder's texts, and the subject of its forms."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..documents.patches import patch_files
from ..model.launch import StartCommand
from ..model.places import Dialect, Places
from ..model.plan import Lock
from ..render.build import render_build
from ..render.forms import FORMS, Form, job_form
from ..render.subject import Renderable, Subject
from ..schedulers import SCHEDULERS
from .job import job_of, job_parts
from .launch_requests import example, facts_of, image_start, plan_in_image
from .load import PlanInputs
from .options import JobSize


def forms() -> Mapping[str, Form]:
    """Return every form of one file; a scheduler's job script is one."""
    return {**FORMS, **{name: job_form(name) for name in SCHEDULERS}}


def dialect_of(plan_inputs: PlanInputs) -> Dialect:
    """Return the language of the site's modulefiles."""
    return "tcl" if plan_inputs.site.module_system == "tcl" else "lua"


def build_texts(
    lock: Lock, places: Places, plan_inputs: PlanInputs, start: StartCommand | None = None
) -> dict[str, str]:
    """Return the texts of the build folder; *start*: what starts its smoke test, if it has one."""
    rendered = render_build(lock, places, plan_inputs.prefix_of(lock.plan), start)
    patches = patch_files(lock.plan, plan_inputs.folders)
    return {**rendered, **patches, "lock.json": lock.text()}


def subject_of(
    source: Renderable,
    places: Places,
    tree: Path,
    plan_inputs: PlanInputs,
    size: JobSize | None = None,
) -> Subject:
    """Return what a form is rendered of; *tree*: the folder for ``module use``.

    Raises UsageError for a job that no scheduler takes.
    """
    planned = source.plan
    job = job_of(planned, plan_inputs, size or JobSize())
    return Subject(
        source=source,
        places=places,
        knowledge=plan_inputs.knowledge.value,
        prefix_of=plan_inputs.prefix_of,
        tree=tree,
        job=lambda scheduler: job_parts(planned, job, scheduler, plan_inputs),
        example=lambda: example(facts_of(planned, plan_inputs)),
        in_image=plan_in_image,
        start=lambda inside: image_start(inside, plan_inputs.knowledge.value.components),
    )
