"""The commands over what a root holds: list, info, diff, smoke, remove, launch, ..."""

from __future__ import annotations

import contextlib
import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..model.places import DocumentForm
from ..workflow.options import (
    AllocationOptions,
    LaunchOptions,
    LiveOptions,
    RootOptions,
    SignatureOptions,
)
from ..workflow.plan_options import OutputOption
from .command import Group, command
from .session import Session, open_session

if TYPE_CHECKING:
    from ..root import Root


verbs = Group()
GROUPS = (verbs,)


def _root(session: Session, where: RootOptions) -> Root:
    from ..workflow.places import existing_root

    return existing_root(where, session.context)


def environment_names(context: typer.Context, incomplete: str) -> list[str]:
    """Return the environments of the root that begin so, and after a / their numbers.

    For the shell's completion; never fails.
    """
    from ..root.environments import names

    with contextlib.suppress(Exception):
        session = open_session(as_json=False)
        session.report.quiet = True
        where = RootOptions(*(context.params.get(name) for name in ("root", "site", "arch")))
        complete = names(_root(session, where), numbers="/" in incomplete)
        return [name for name in complete if name.startswith(incomplete)]
    return []


def environment_or_active(metavar: str, about: str) -> Any:
    """Return an argument that names an environment, or none: the one active in this shell."""
    return typer.Argument(
        metavar=metavar,
        help=f"{about} Default: the environment that is active in this shell.",
        show_default=False,
        autocompletion=environment_names,
    )


def _named(about: str) -> Any:
    """Return an argument that names an environment of a root."""
    return typer.Argument(metavar="NAME[/N]", help=about, autocompletion=environment_names)


Environment = Annotated[str, _named("An environment. Without /N: its default number.")]


@command(verbs, "list", example="list --root /scratch/me/env", recipes=False)
def list_(session: Session, where: RootOptions) -> None:
    """List the environments of a root and what the smoke test proved of each."""
    from ..commands.environments import list_all
    from ..views import environments as views

    value = list_all(_root(session, where), session.context)
    session.report.show(value, views.listing(value))


@command(verbs, "import", example="import /scratch/me/venv --root /scratch/me/env")
def import_(
    session: Session,
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH|IMAGE",
            help="The folder or image of an environment that envbuild did not build.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Its name in the list (default: the folder's name)."),
    ] = None,
    forget: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Remove an entry from the list. Its files remain."),
    ] = None,
    *,
    where: RootOptions,
) -> None:
    """Add an environment that envbuild did not build to the list, with the findings of validate.

    envbuild never changes or removes it. Running import again replaces the stored findings.
    """
    from ..commands.environments import forget_external
    from ..errors import UsageError
    from ..validate.registration import import_environment
    from ..views import environments as views

    if (path is None) == (forget is None):
        raise UsageError(
            "import.path-or-forget",
            "import needs exactly one of PATH and --forget NAME",
        )
    if forget is not None:
        gone = forget_external(_root(session, where), forget)
        session.report.show(gone, f"removed {gone.name} from the list; {gone.path} is unchanged")
    else:
        value = import_environment(where, str(path), name, session.context)
        session.report.show(value, "\n".join(views.external(value)))


@command(verbs, example="catalogue --root /scratch/me/env -o index.html", recipes=False, json=False)
def catalogue(
    session: Session,
    where: RootOptions,
    output: OutputOption = None,
) -> None:
    """Write an HTML page about a root: stacks, smoke tests, known problems, speed."""
    from ..catalogue.command import catalogue as run
    from ..files import write_atomically
    from ..workflow.output import output_path

    path = output_path(output, session.context)
    text = run(_root(session, where), session.context)
    if path is None:
        session.report.raw(text)
    else:
        write_atomically(path, text)


@command(verbs, example="info allreduce/1", recipes=False)
def info(
    session: Session,
    environment: Annotated[
        str,
        typer.Argument(
            metavar="NAME[/N]|IMAGE",
            help="An environment (without /N: its default number), or an image: NAME.sif or a "
            "sandbox.",
            autocompletion=environment_names,
        ),
    ],
    where: RootOptions,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare every file with the published manifest.")
    ] = False,
    form: Annotated[
        DocumentForm | None,
        typer.Option(
            "--as",
            help="Print a document: bill of materials, provenance, recipe or site of the build.",
            show_default=False,
        ),
    ] = None,
    *,
    signed: SignatureOptions,
) -> int:
    """Show one environment: components, paths and all smoke tests.

    Exit code 8 if --verify finds a changed file, or if the document of --as does not match the
    lock and the manifest. For an image, --site checks whether it fits that site; exit code 4 if
    it does not.
    """
    from ..commands.environments import attestation, workspace
    from ..commands.environments import info as run
    from ..errors import ExitCode, UsageError
    from ..views import environments as views
    from ..workflow.image_contents import opened

    if form and verify:
        raise UsageError(
            "option.conflict",
            "--as and --verify cannot be combined",
            "run envbuild info twice, once with each option",
        )
    with opened(environment, lambda: _root(session, where), session.context, signed) as found:
        if form:
            document = attestation(found, form, session.context)
            if session.report.as_json:
                session.report.show(document, "")
            else:
                session.report.raw(document.text)
            return int(ExitCode.OK)
        value = run(found, verify=verify)
        if value.image is None:
            update = {"workspace": workspace(found.root, session.context)}
            value = value.model_copy(update=update)
    if value.image and where.site:
        # lazy import: only of an image, and where it is to run
        from ..workflow.image_contract import fits_at

        value = fits_at(value, where.site, session.context)
    session.report.show(value, views.info(value))
    broken = any(each.fit == "broken" for each in value.contract)
    return int(ExitCode.DRIFT if value.changed else ExitCode.KNOWN_BAD if broken else ExitCode.OK)


@command(verbs, example="diff allreduce/1 live --root /scratch/me/env")
def diff(
    session: Session,
    before: Annotated[
        str,
        typer.Argument(
            metavar="LOCK",
            help="A lock file, an environment NAME[/N], its recipe file, or an image.",
        ),
    ],
    after: Annotated[
        str,
        typer.Argument(
            metavar="LOCK|live", help="Another one. live: a plan of the same recipe made now."
        ),
    ],
    *,
    choice: LiveOptions,
) -> int:
    """Show how the decisions of two locks differ. Exit code 8 if they differ. No network.

    Inputs that changed without changing a decision are shown, but do not affect the exit code.
    """
    from ..commands.diff import compare
    from ..errors import ExitCode
    from ..views import environments as views

    value = compare(before, after, choice, session.context)
    session.report.show(value, views.diff(value))
    return ExitCode.OK if value.same else ExitCode.DRIFT


@command(verbs, example="smoke allreduce --ranks 4", recipes=False)
def smoke(
    session: Session,
    environment: Environment,
    ranks: Annotated[
        int | None,
        typer.Option(min=1, max=4096, help="Number of ranks (default: the recipe's)."),
    ] = None,
    emulate: Annotated[
        bool,
        typer.Option("--emulate", help="Run an environment of another architecture in qemu-user."),
    ] = False,
    host_mpi: Annotated[
        bool,
        typer.Option("--host-mpi", help="For an image: bind this machine's MPI into it."),
    ] = False,
    *,
    where: RootOptions,
) -> None:
    """Run the smoke test of a published environment again and store its evidence.

    For an image (NAME.sif or a sandbox), this machine's MPI starts one container for each rank.
    """
    from ..commands.environments import smoke as run
    from ..errors import UsageError
    from ..views import environments as views
    from ..workflow.image_contents import is_image

    if is_image(environment, session.context.path(environment)):
        # lazy import: only of an image
        from ..workflow.image_proof import smoke_image

        if emulate:
            raise UsageError(
                "option.not-for-image",
                "--emulate does not apply to an image",
                "leave --emulate out",
            )
        value = smoke_image(environment, where, ranks, session.context, host_mpi=host_mpi)
    elif host_mpi:
        raise UsageError(
            "option.only-for-image",
            f"--host-mpi applies only to an image (NAME.sif or a sandbox), not to {environment}",
            "leave --host-mpi out",
        )
    else:
        root = _root(session, where)
        value = run(root, environment, ranks, session.context, where.site, emulate=emulate)
    session.report.show(value, views.smoke(value))


@command(verbs, example="rollback allreduce --to 1", recipes=False)
def rollback(
    session: Session,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="An environment.", autocompletion=environment_names),
    ],
    to: Annotated[
        int | None,
        typer.Option("--to", min=1, metavar="N", help="The number (default: the previous one)."),
    ] = None,
    *,
    where: RootOptions,
) -> None:
    """Make an earlier number the default again. Running jobs are not affected."""
    from ..commands.environments import rollback as run
    from ..views import environments as views

    value = run(_root(session, where), name, to, session.context)
    session.report.show(value, views.changed(value))


@command(verbs, example="remove allreduce/1", recipes=False)
def remove(
    session: Session,
    environment: Annotated[
        str,
        _named("A number that is not the default. NAME alone for --unfinished, --all, --keep."),
    ],
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Remove unpublished builds.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Remove all numbers (also the default) and all builds.")
    ] = False,
    keep: Annotated[
        int | None,
        typer.Option("--keep", min=0, metavar="N", help="Remove all but the N newest numbers."),
    ] = None,
    older_than: Annotated[
        int | None,
        typer.Option(
            "--older-than",
            min=0,
            metavar="DAYS",
            help="Remove the numbers that were published more than DAYS days ago.",
        ),
    ] = None,
    *,
    where: RootOptions,
) -> None:
    """Remove one number of an environment.

    The default and numbers in use by a process on this machine are never removed. --keep and
    --older-than together remove the numbers to which both apply (for use in cron).
    """
    from ..commands.environments import What
    from ..commands.environments import remove as run
    from ..errors import UsageError
    from ..views import environments as views

    old = keep is not None or older_than is not None
    if unfinished + everything + old > 1:
        raise UsageError(
            "option.conflict",
            "--unfinished, --all and --keep/--older-than cannot be combined",
            "run envbuild remove once for each of them",
        )
    what: What = "all" if everything else "unfinished" if unfinished else "old" if old else "number"
    value = run(
        _root(session, where),
        environment,
        session.context,
        what=what,
        keep=keep or 0,
        older_than=older_than or 0,
    )
    session.report.show(value, views.removed(value))


@command(verbs, example="launch allreduce -H server1:4,server2:4 -- python train.py")
def launch(session: Session, environment: Environment, options: LaunchOptions) -> None:
    """Print the command line that starts a program on all ranks. Starts nothing.

    If no environment of that name is published, the line is for the plan of the recipe. For an
    image (NAME.sif or a sandbox), the host's MPI starts one container for each rank.
    Hosts: -H or --hostfile (default: the hosts of the current job, otherwise this machine).
    """
    from ..commands.launch import launch as run

    value = run(environment, options, session.context)
    session.report.show(value, shlex.join(value.words))


@command(verbs, example="job allreduce --nodes 2 --minutes 60 -- python train.py")
def job(
    session: Session,
    options: AllocationOptions,
    program: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- PROGRAM...", help="The program of every rank, with arguments."),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Print the job script that starts a program on all ranks. Submits nothing.

    envbuild job NAME -- PROGRAM | sbatch (or bsub, qsub) submits it. Defaults of the options are
    those of the site's file; --on names the scheduler if the site does not.
    """
    from ..commands.allocation import job as run

    done = run(options, program or (), output, session.context)
    if done.text is not None and not session.report.as_json:
        session.report.raw(done.text)
    else:
        session.report.show(done, "\n".join(done.written))


@command(verbs, example="shell allreduce --on slurm --minutes 60")
def shell(
    session: Session,
    options: AllocationOptions,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the command and start nothing; so does --json.")
    ] = False,
) -> None:
    """Open bash in a job of its own, with the environment loaded: srun --pty, bsub -Is.

    The shell reads ~/.bashrc first. It ends with an error if the environment cannot be loaded.
    """
    from ..commands.allocation import check_startable
    from ..commands.allocation import shell as run
    from ..process import replace

    value = run(options, session.context)
    if only_print or session.report.as_json:
        session.report.show(value, shlex.join(value.words))
        return
    check_startable(value, options, session.context)
    replace(value.words, session.context.environ)
