"""Forms: every file that a plan can be rendered to, by the name that ``render --as`` takes.

A form is rendered from a lock, or from a plan alone (see UnlockedPlan): then no index is asked, and
what only a lock knows, hashes and the environment's id, is not in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ...errors import UsageError
from ...model.places import Dialect
from ...model.plan import Plan
from ..container import render_definition, render_dockerfile
from ..job import render_job
from ..modulefile import render_modulefile
from ..subject import Subject
from . import environment_yml, image, package_list, requirements, script


@dataclass(frozen=True)
class Form:
    """One file that a plan can be rendered to.

    ``file``: its name, ``{name}`` being the recipe's. ``render``: returns its text; it raises
    UsageError for a plan that cannot have it.
    """

    file: str
    render: Callable[[Subject], str]

    def file_of(self, plan: Plan) -> str:
        """Return the name of the file that the form of *plan* is written to."""
        return self.file.format(name=plan.recipe)


def _modulefile(dialect: Dialect, subject: Subject) -> str:
    """Return the modulefile; nothing is proved of it yet."""
    example = subject.example() if subject.example else None
    return render_modulefile(subject.source, subject.places, 1, None, dialect, example)


def _job(scheduler: str, subject: Subject) -> str:
    if subject.job is None:
        raise UsageError(f"nothing says which job to render for {scheduler}")
    return render_job(subject.source, subject.places, str(subject.tree), subject.job(scheduler))


def job_form(scheduler: str) -> Form:
    """Return the form of a scheduler's job script."""
    return Form(f"{{name}}.{scheduler}", partial(_job, scheduler))


FORMS: dict[str, Form] = {
    "script": Form("build.sh", script.render),
    "environment.yml": Form("environment.yml", environment_yml.render),
    "explicit": Form("conda-explicit.txt", package_list.render_explicit),
    "conda-lock": Form("conda-lock.yml", package_list.render_conda_lock),
    "pixi": Form("pixi.lock", package_list.render_pixi),
    "requirements": Form("requirements.txt", requirements.render),
    "lua": Form("{name}.lua", partial(_modulefile, "lua")),
    "tcl": Form("{name}.tcl", partial(_modulefile, "tcl")),
    "def": Form("{name}.def", partial(image.render, render_definition)),
    "dockerfile": Form("Dockerfile", partial(image.render, render_dockerfile)),
}
"""Those that every plan may have; a job's script is a form of its scheduler, see job_form."""
