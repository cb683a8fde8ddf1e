"""The commands of continuous integration: a site's pipeline rendered, or done on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..workflow.options import CiOptions
from .command import Group, command
from .session import Session

verbs = Group(
    "ci", "Pipelines that plan, lock, build, test, scan and publish the recipes of a site."
)
GROUPS = (verbs,)


@command(verbs, example="ci render --site summit --base /ccs/proj/envbuild", json=False)
def render(
    session: Session,
    options: CiOptions,
    provider: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="One of: {providers} (default: the first of these)."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write (default: standard output)."),
    ] = None,
) -> None:
    """Write a pipeline for a matrix of recipes and architectures. No network, builds nothing."""
    from ..ci.command import render as run
    from ..files import write_atomically
    from ..workflow.output import output_path

    path = output_path(output, session.context)
    text = run(options, provider, session.context)
    if path is None:
        session.report.raw(text)
    else:
        write_atomically(path, text)


@command(verbs, example="ci run allreduce --base /scratch/me/env")
def run(
    session: Session,
    options: CiOptions,
    resume: Annotated[
        bool, typer.Option("--resume", help="Run only the jobs that did not pass in the last run.")
    ] = False,
    nightly: Annotated[
        bool, typer.Option("--nightly", help="Run the nightly jobs instead.")
    ] = False,
) -> int:
    """Run the jobs of the pipeline on this machine, one after another.

    Files and logs are written to envbuild-ci. If a job fails, the jobs that need it are skipped;
    other recipes continue. The exit code is that of the first failed job.
    """
    from ..ci import view as views
    from ..ci.command import run as do

    value = do(options, session.context, resume=resume, nightly=nightly)
    session.report.show(value, views.finished(value))
    return value.exit_code()
