"""The commands for what goes wrong: validate, diagnose, hang, report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..validate.options import RemovedOptions, ReportOptions, ValidateOptions
from ..workflow.plan_options import RootOption
from .command import Group, command
from .environments import environment_or_active
from .session import Interrupted, Session

if TYPE_CHECKING:
    from ..diagnosis.values import Diagnosis

verbs = Group()
GROUPS = (verbs,)


@command(verbs, example="validate /scratch/me/venv")
def validate(
    session: Session,
    name: Annotated[
        str | None,
        environment_or_active(
            "PATH|IMAGE|NAME[/N]",
            "The folder of an environment, a SIF file, a sandbox, or an environment of a root.",
        ),
    ] = None,
    root: RootOption = None,
    list_: Annotated[
        bool, typer.Option("--list", help="List all checks without running them.")
    ] = False,
    *,
    options: ValidateOptions,
    told: ReportOptions,
    removed: RemovedOptions,
) -> int:
    """Check a virtualenv, conda prefix or Python, whoever built it. Writes nothing.

    It is checked as a program started in this shell would see it. Only --run starts its programs.
    Exit code 4 if an error is found that --baseline does not accept, 0 for warnings.
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
                "option.conflict",
                "--as and --list cannot be combined: --list has no findings",
                "leave one of them out",
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
        list[str] | None,
        typer.Argument(
            metavar="LOG...",
            help="Log files, one for each rank, or folders of log files. -: standard input.",
            show_default=False,
        ),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option(
            "--environment",
            metavar="PATH|NAME[/N]",
            help="Also validate this environment and compare its findings with the logs.",
        ),
    ] = None,
    root: RootOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show all findings with the lines around them.")
    ] = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Read logs that grow: show findings as lines come, until the program ends.",
        ),
    ] = False,
    add_symptom: Annotated[
        str | None,
        typer.Option(
            "--add-symptom",
            metavar="LOG:LINE",
            help="Write a symptom for this line, and a case, into the first folder of --recipes "
            "or ENVBUILD_PATH. Cause, fix and source are three lines of standard input.",
        ),
    ] = None,
) -> int:
    """Explain logs: the cause, how certain it is, what to do, and which rank failed first.

    Logs are only read. Exit code 4 for a known error, 1 for an error that no symptom explains, 0
    otherwise.
    """
    from ..diagnosis import view as views
    from ..diagnosis.command import diagnose as run
    from ..errors import ExitCode, UsageError
    from ..validate.command import validate
    from .streams import pipe

    if add_symptom:
        _add_symptom(session, add_symptom)
        return int(ExitCode.OK)
    if not logs:
        raise UsageError("log.none", "no log is named", "envbuild diagnose LOG...")
    if follow:
        value = _follow(session, logs, options={"--environment": environment, "--all": everything})
    else:
        found = validate(environment, root, session.context) if environment else None
        value = run(logs, pipe(), found, session.context)
        session.report.show(value, views.diagnosis(value, everything=everything))
    codes = {"known": ExitCode.KNOWN_BAD, "unexplained": ExitCode.UNEXPLAINED}
    return int(codes.get(value.outcome, ExitCode.OK))


def _add_symptom(session: Session, place: str) -> None:
    from ..diagnosis.site_symptoms import add_symptom
    from ..errors import UsageError
    from .streams import pipe

    answers = []
    for title in ("cause", "fix", "source (a page or ticket; may be empty)"):
        session.report.say(f"{title}:")
        answers.append(pipe().readline().decode("utf-8", "replace").strip())
    cause, fix, source = answers
    if not (cause and fix):
        raise UsageError("symptom.no-answer", "standard input has no cause or no fix")
    value = add_symptom(place, cause, fix, source, session.context)
    session.report.show(value, "\n".join(f"{name}: {text}" for name, text in value.items() if text))


def _follow(session: Session, logs: list[str], options: dict[str, object]) -> Diagnosis:
    """Show findings as they come, and all of them at the end; Ctrl-C is an end, too."""
    from ..diagnosis import view as views
    from ..diagnosis.following import follow
    from ..errors import UsageError
    from .streams import pipe

    if name := next((name for name, value in options.items() if value), None):
        raise UsageError("option.conflict", f"--follow and {name} cannot be combined")
    shown: set[str] = set()
    values = follow(logs, pipe(), session.context)
    value = next(values)
    try:
        while True:
            text = views.new_findings(value, shown)
            if text and not session.report.as_json:
                session.report.show(value, text)
                session.report.out.flush()
            value = next(values)
    except (StopIteration, Interrupted):
        pass
    session.report.show(value, "\n" + views.diagnosis(value))
    return value


@command(verbs, example="hang 4711", recipes=False)
def hang(
    session: Session,
    pids: Annotated[
        list[int] | None,
        typer.Argument(
            metavar="PID...", help="The process of the launcher, or of ranks.", show_default=False
        ),
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(
            "--job", metavar="ID", help="A job of the scheduler: its ranks on this machine."
        ),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(
            min=0.1,
            max=3600,
            help="Seconds between the two samples (default: 1).",
            show_default=False,
        ),
    ] = 1.0,
    everything: Annotated[bool, typer.Option("--all", help="Show all ranks and frames.")] = False,
) -> None:
    """Show where the ranks of a running job are, and which rank the others wait for.

    py-spy samples the stacks of the ranks on this machine; the ranks continue undisturbed. Run it
    on each node of the job.
    """
    from ..errors import UsageError
    from ..hang import view as views
    from ..hang.command import hang as run

    if bool(pids) == bool(job):
        raise UsageError(
            "hang.pid-or-job", "hang needs either PIDs or --job ID", "envbuild hang 4711"
        )
    value = run(pids or (), job, seconds, session.context)
    session.report.show(value, views.hang(value, everything=everything))


@command(verbs, example="report /scratch/me/venv --log job-17.out")
def report(
    session: Session,
    environment: Annotated[
        str | None,
        environment_or_active("PATH|NAME[/N]", "An environment to validate."),
    ] = None,
    logs: Annotated[
        list[str] | None, typer.Option("--log", metavar="LOG", help="A log file. May be repeated.")
    ] = None,
    root: RootOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write (default: a file in this folder, named after the time).",
        ),
    ] = None,
) -> None:
    """Write one file for the support desk: machine, environment and logs, without secrets.

    It contains the output of doctor, validate and diagnose, relevant variables, and the ends of
    the logs. Passwords, tokens and the user's name are removed.
    """
    from ..report import command as run
    from ..report import view as views

    path = run.place(output, session.context)
    with session.context.reporter.working("examine the machine and the environment"):
        facts = run.gather(environment, root, logs or (), session.context)
    text = views.report(
        *(facts.head, facts.machine, facts.validation, facts.diagnosis),
        *(facts.variables, facts.tails),
    )
    value = run.write(text, path, facts, session.context)
    session.report.show(value, views.written(value))
