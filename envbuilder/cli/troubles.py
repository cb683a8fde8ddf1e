"""The commands for what goes wrong: validate, diagnose, hang, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..validate.options import RemovedOptions, ReportOptions, ValidateOptions
from ..workflow.options import RootOption
from .command import Group, command
from .environments import environment_or_active
from .session import Session

verbs = Group()


@command(verbs, example="validate /scratch/me/venv")
def validate(
    session: Session,
    name: Annotated[
        str | None,
        environment_or_active(
            "PATH|IMAGE|NAME[/N]",
            "The folder of an environment, a SIF file or sandbox, or one of a root.",
        ),
    ] = None,
    root: RootOption = None,
    list_: Annotated[
        bool, typer.Option("--list", help="List what is looked for, and look at nothing.")
    ] = False,
    *,
    options: ValidateOptions,
    told: ReportOptions,
    removed: RemovedOptions,
) -> int:
    """Find what is wrong with an environment that anybody built; without --run nothing of it runs.

    A virtualenv, conda prefix or Python, as a program started in this shell would use it. Writes
    nothing. Exit code 4 if a finding is an error that no --baseline accepts; with warnings alone 0.
    """
    from ..errors import ExitCode, UsageError
    from ..validate import command as run
    from ..validate import reports
    from ..validate import view as views

    run.check_removed(removed)
    run.check_proving(options.proving)
    if list_:
        if told.form:
            raise UsageError(
                "cli.tells-found-list", "--as tells what is found, and --list looks at nothing"
            )
        table = run.list_checks()
        session.report.show(table, views.checks(table))
        return int(ExitCode.OK)
    reports.check_form(told.form, as_json=session.report.as_json)
    value = run.validate(name, root, session.context, options)
    if told.form:
        session.report.raw(reports.REPORTS[told.form](value, run.looked_for(options)))
    else:
        session.report.show(value, views.validation(value, everything=told.everything))
    return int(ExitCode.KNOWN_BAD if value.bad else ExitCode.OK)


@command(verbs, example="diagnose rank0.log rank1.log --environment /scratch/me/venv")
def diagnose(
    session: Session,
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG...", help="Files, one of each rank, or folders of them; - reads a pipe."
        ),
    ],
    environment: Annotated[
        str | None,
        typer.Option(
            "--environment",
            metavar="PATH|NAME[/N]",
            help="Validate it too, and say what agrees with the logs.",
        ),
    ] = None,
    root: RootOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show all findings, with the lines around them.")
    ] = False,
) -> int:
    """Say what logs mean: the cause, how sure it is, what to do, which rank failed first.

    Only reads. Exit code 4 if an error is known in them, 0 if none is or there are warnings alone.
    """
    from ..diagnosis import view as views
    from ..diagnosis.command import diagnose as run
    from ..errors import ExitCode
    from ..validate.command import validate
    from .streams import pipe

    found = validate(environment, root, session.context) if environment else None
    value = run(logs, pipe(), found, session.context)
    session.report.show(value, views.diagnosis(value, everything=everything))
    return int(ExitCode.KNOWN_BAD if value.bad else ExitCode.OK)


@command(verbs, example="hang 4711", recipes=False)
def hang(
    session: Session,
    pids: Annotated[
        list[int] | None,
        typer.Argument(
            metavar="PID...", help="The launcher's process, or ranks.", show_default=False
        ),
    ] = None,
    job: Annotated[
        str | None, typer.Option("--job", metavar="ID", help="A scheduler's job: its ranks here.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, max=3600, help="Between the two looks.")] = 1.0,
    everything: Annotated[bool, typer.Option("--all", help="Show all ranks and frames.")] = False,
) -> None:
    """Say where the ranks of a running job are, and which of them the others wait for.

    py-spy reads their stacks; nothing is sent to them, and they go on. The ranks of this machine:
    on each node of a job it is asked anew.
    """
    from ..errors import UsageError
    from ..hang import view as views
    from ..hang.command import hang as run

    if bool(pids) == bool(job):
        raise UsageError(
            "cli.name-either-processes", "name either processes or --job ID", "envbuild hang 4711"
        )
    value = run(pids or (), job, seconds, session.context)
    session.report.show(value, views.hang(value, everything=everything))


@command(verbs, example="report /scratch/me/venv --log job-17.out")
def report(
    session: Session,
    environment: Annotated[
        str | None,
        environment_or_active("PATH|NAME[/N]", "An environment, to be validated."),
    ] = None,
    logs: Annotated[
        list[str] | None, typer.Option("--log", metavar="LOG", help="A log; may be repeated.")
    ] = None,
    root: RootOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Else one here, named by the time."),
    ] = None,
) -> None:
    """Write one file for the support desk: machine, environment, logs; without secrets.

    What doctor, validate and diagnose say, variables that matter, and the ends of the logs.
    Passwords, tokens and the like, and the user's name, are left out.
    """
    from ..report import command as run
    from ..report import view as views

    path = run.place(output, session.context)
    with session.context.reporter.working("looking at the machine and the environment"):
        facts = run.gather(environment, root, logs or (), session.context)
    text = views.report(
        *(facts.head, facts.machine, facts.validation, facts.diagnosis),
        *(facts.variables, facts.tails),
    )
    value = run.write(text, path, facts, session.context)
    session.report.show(value, views.written(value))
