"""``envbuild job`` and ``shell``: a program, or a terminal, in a job with an environment loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..documents.site_choice import ChosenSite
from ..errors import Place, UsageError
from ..knowledge.entries import check_choice
from ..launching.schedulers import SCHEDULERS, current_scheduler
from ..model.job import Job
from ..model.outcome import ShellLine
from ..render.job import shell_program
from ..workflow.context import Context
from ..workflow.options import AllocationOptions, RenderOptions
from ..workflow.output import output_path
from ..workflow.render_source import RenderSource, render_source
from ..workflow.texts import job_words
from .render import RenderResult, written_to


def job(
    options: AllocationOptions, program: Sequence[str], output: Path | None, context: Context
) -> RenderResult:
    """Return the script of a job that starts *program* on every rank. Submits nothing.

    Raises UsageError if no scheduler is known, if the site requires an option that is missing, and
    for a request that no job of it could fulfil.
    """
    if not program:
        raise UsageError(
            "launch.no-program", "there is no program to start", "give one: -- python train.py"
        )
    file = output_path(output, context)
    source, scheduler = _source(options, context)
    _check_required(source.source.job(scheduler), scheduler, source.source.chosen)
    about = replace(source.source, program=tuple(program))
    text = replace(source, source=about).text(scheduler)
    return written_to(file, text, RenderResult(form=scheduler, environment=source.environment))


def shell(options: AllocationOptions, context: Context) -> ShellLine:
    """Return the command that opens a shell with the environment in a job of its own.

    Raises UsageError as ``job`` does, and inside a job, whose resources the shell would wait for.
    """
    source, scheduler = _source(options, context)
    about = source.source
    request = about.job(scheduler)
    _check_required(request, scheduler, about.chosen)
    # Raises UsageError for ranks that the nodes have no room for.
    job_words(about.facts, request, scheduler)
    subject = about.subject
    module = f"{subject.plan.recipe}/{subject.number or 1}"
    program = shell_program(subject.plan, subject.places, str(subject.tree), module)
    # A name that nobody asked for is left to the scheduler.
    request = replace(request, name=options.size.job_name)
    words = SCHEDULERS[scheduler].shell_line(request, program)
    return ShellLine(environment=source.environment, scheduler=scheduler, words=words)


def check_startable(line: ShellLine, options: AllocationOptions, context: Context) -> None:
    """Raise UsageError if the shell would have no environment, or is to start inside a job."""
    if line.environment is None:
        recipe = options.choice.recipe
        raise UsageError(
            "environment.not-published",
            f"{recipe} is not published in this root, so no shell can load it",
            f"envbuild create {recipe}",
            "or add --print to see the command",
        )
    inside = current_scheduler(context.environ)
    if inside is not None:
        number = context.environ[SCHEDULERS[inside].JOB_ID]
        raise UsageError(
            "shell.in-job",
            f"this shell is in job {number} of {SCHEDULERS[inside].TITLE} already",
            f"load the module here: module load {line.environment}",
        )


def _source(options: AllocationOptions, context: Context) -> tuple[RenderSource, str]:
    """Return the environment or plan, and the scheduler: the one of ``--on``, else the site's."""
    check_choice("scheduler", options.scheduler, SCHEDULERS)
    rendered = RenderOptions(choice=options.choice, root=options.root, size=options.size)
    source = render_source(rendered, context)
    site = source.source.chosen.site
    scheduler = options.scheduler or site.scheduler
    if scheduler not in SCHEDULERS:
        raise UsageError(
            "site.no-scheduler",
            f"site {site.name} does not state a scheduler",
            f"name it: --on {' or --on '.join(SCHEDULERS)}",
            "or write scheduler: into the site file",
        )
    return source, scheduler


def _check_required(request: Job, scheduler: str, chosen: ChosenSite) -> None:
    """Raise UsageError that names every option that the site requires and the request lacks."""
    site, path = chosen.site, chosen.path
    values = {
        "account": ("--account NAME", request.account),
        "queue": ("--queue NAME", request.partition),
        "memory": ("--mem SIZE", request.memory),
    }
    required = site.job.required if scheduler == site.scheduler else ()
    missing = [option for option, value in (values[name] for name in required) if value is None]
    if missing:
        options = " ".join(missing)
        raise UsageError(
            "job.option-missing",
            f"jobs at site {site.name} require {options}",
            f"add {options}; the site file may state defaults of account and queue under job:",
            place=Place(str(path)) if path else None,
        )
