"""Forms: every file that a plan can be rendered to, by the name that ``render --as`` takes.

A form is rendered from a lock, or from a plan alone (see UnlockedPlan): then no index is asked, and
what only a lock knows, hashes and the environment's id, is not in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from ...model.places import Dialect
from ...model.plan import Plan
from ..container import render_definition, render_dockerfile
from ..job import render_job
from ..modulefile import render_modulefile
from ..quoting import line
from ..subject import RenderInput
from . import environment_yml, image, package_list, requirements, script


@dataclass(frozen=True)
class Form:
    """One file that a plan can be rendered to.

    ``file``: its name, ``{name}`` being the recipe's. ``render``: returns its text; it raises
    UsageError for a plan that cannot have it. ``comment``: what begins a line of comment.
    ``needs``: what has to be set of RenderInput.
    """

    file: str
    render: Callable[[RenderInput], str]
    comment: str = "#"
    needs: Literal["job", "example", "planned-image"] | None = None

    def headed(self, text: str, statement: str) -> str:
        """Return *text* with a statement for its reader in the first line.

        It is the second line if the first says in which language the text is: ``#!``, ``#%Module``.
        """
        head = f"{self.comment} {line(statement)}\n"
        first, rest = text.split("\n", 1)
        return f"{first}\n{head}{rest}" if first.startswith(("#!", "#%")) else head + text

    def file_of(self, plan: Plan) -> str:
        """Return the name of the file that the form of *plan* is written to."""
        return self.file.format(name=plan.recipe)


def _modulefile(dialect: Dialect, subject: RenderInput) -> str:
    """Return the modulefile, with what was proved of a published environment."""
    number, evidence = subject.number or 1, subject.evidence
    return render_modulefile(
        subject.source, subject.places, number, evidence, dialect, subject.example
    )


def _job(subject: RenderInput) -> str:
    job, number = subject.job, subject.number or 1
    assert job is not None  # noqa: S101 - Form.needs
    return render_job(subject.source, subject.places, str(subject.tree), job, number)


def job_form(scheduler: str) -> Form:
    """Return the form of a scheduler's job script."""
    return Form(f"{{name}}.{scheduler}", _job, needs="job")


def _image_form(file: str, text: image.ImageText) -> Form:
    return Form(file, partial(image.render, text), needs="planned-image")


FORMS: dict[str, Form] = {
    "script": Form("build.sh", script.render),
    "environment.yml": Form("environment.yml", environment_yml.render),
    "explicit": Form("conda-explicit.txt", package_list.render_explicit),
    "conda-lock": Form("conda-lock.yml", package_list.render_conda_lock),
    "pixi": Form("pixi.lock", package_list.render_pixi),
    "requirements": Form("requirements.txt", requirements.render),
    "lua": Form("{name}.lua", partial(_modulefile, "lua"), comment="--", needs="example"),
    "tcl": Form("{name}.tcl", partial(_modulefile, "tcl"), needs="example"),
    "def": _image_form("{name}.def", render_definition),
    "dockerfile": _image_form("Dockerfile", render_dockerfile),
}
"""Those that every plan may have; a job's script is a form of its scheduler, see job_form."""
