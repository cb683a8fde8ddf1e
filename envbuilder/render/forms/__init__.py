"""Forms: every file that a plan can be rendered to, by the name that ``render --as`` takes.

A form is rendered from a lock, or from a plan alone (see UnlockedPlan): then no index is asked, and
what only a lock knows, hashes and the environment's id, is not in it.
"""

from __future__ import annotations

from ...model.plan import Plan
from . import definition, dockerfile, environment_yml, lua, requirements, script, tcl
from .job import job_form
from .protocol import Form

FORMS: dict[str, Form] = {
    "script": script,
    "environment.yml": environment_yml,
    "requirements": requirements,
    "lua": lua,
    "tcl": tcl,
    "def": definition,
    "dockerfile": dockerfile,
}
"""Those that every plan may have; a job's script is a form of its scheduler, see job_form."""


def file_of(form: Form, plan: Plan) -> str:
    """Return the name of the file that a form of *plan* is written to."""
    return form.FILE.format(name=plan.recipe)


__all__ = ["FORMS", "Form", "file_of", "job_form"]
