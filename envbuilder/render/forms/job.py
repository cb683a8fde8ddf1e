"""The job script of a scheduler: a form of each scheduler that there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...errors import UsageError
from ..job import PublishedModule, render_job
from ..subject import Subject


@dataclass(frozen=True)
class JobForm:
    """A form that is made for a scheduler instead of written as a module."""

    FILE: str
    SUMMARY: str
    render: Callable[[Subject], str]


def job_form(scheduler: str, title: str) -> JobForm:
    """Return the form of a scheduler's job script; *title*: its name for people."""

    def render(subject: Subject) -> str:
        if subject.job is None:
            raise UsageError(f"nothing says which job to render for {scheduler}")
        parts = subject.job(scheduler)
        return render_job(
            subject.source,
            subject.places,
            PublishedModule(str(subject.tree), subject.number),
            parts.job,
            parts.script,
            parts.words,
        )

    return JobForm(f"{{name}}.{scheduler}", f"the {title} job", render)
