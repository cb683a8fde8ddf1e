"""The commands over what a root holds: list, info, diff, smoke, rollback, remove, launch."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..model.places import AttestationForm
from ..workflow.options import LaunchOptions, LiveOptions, RootOptions, SignatureOptions
from .command import Group, command
from .session import Session, open_session

if TYPE_CHECKING:
    from ..root import Root


verbs = Group()


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
        help=f"{about} Else the one that is active in this shell.",
        show_default=False,
        autocompletion=environment_names,
    )


def _named(about: str) -> Any:
    """Return an argument that names an environment of a root."""
    return typer.Argument(metavar="NAME[/N]", help=about, autocompletion=environment_names)


Environment = Annotated[str, _named("An environment; without /N its default.")]


@command(verbs, "list", example="list --root /scratch/me/env", recipes=False)
def list_(session: Session, where: RootOptions) -> None:
    """Show the environments of a root and what was proved of each."""
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
            metavar="PATH|IMAGE", help="What others built: a folder or image.", show_default=False
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="What list calls it. Else the folder's name.")
    ] = None,
    forget: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Take one off the list; its files stay as they are."),
    ] = None,
    *,
    where: RootOptions,
) -> None:
    """List an environment that others built, with what validate finds of it.

    It is never changed or removed. Again: what is found now takes the place of before.
    """
    from ..commands.environments import forget_external
    from ..errors import UsageError
    from ..validate.registration import import_environment
    from ..views import environments as views

    if (path is None) == (forget is None):
        raise UsageError(
            "cli.name-import-forget",
            "name what to import, or with --forget what to take off the list",
        )
    if forget is not None:
        gone = forget_external(_root(session, where), forget)
        session.report.show(gone, f"{gone.name} is off the list; {gone.path} stays as it is")
    else:
        value = import_environment(where, str(path), name, session.context)
        session.report.show(value, "\n".join(views.external(value)))


@command(verbs, example="catalogue --root /scratch/me/env -o index.html", recipes=False, json=False)
def catalogue(
    session: Session,
    where: RootOptions,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. Else standard output.")
    ] = None,
) -> None:
    """Write one page of HTML of what a root holds: stacks, proofs, known problems, speed."""
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
            help="An environment; without /N its default. Or an image: NAME.sif, a sandbox.",
            autocompletion=environment_names,
        ),
    ],
    where: RootOptions,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare every file with what was published.")
    ] = False,
    form: Annotated[
        AttestationForm | None,
        typer.Option(
            "--as",
            help="Print instead what it is made of (CycloneDX) or how it was made (in-toto).",
            show_default=False,
        ),
    ] = None,
    *,
    signed: SignatureOptions,
) -> int:
    """Show one environment: components, places, every smoke test.

    With --verify, exit code 8 if a file is not as it was published; with --as, if that is not of
    its lock and manifest. Of an image with --site: whether it fits that site; exit code 4 if not.
    """
    from ..commands.environments import attestation
    from ..commands.environments import info as run
    from ..errors import ExitCode, UsageError
    from ..views import environments as views
    from ..workflow.image_contents import opened

    if form and verify:
        raise UsageError(
            "cli.prints-document-verify",
            "--as prints one document, --verify compares files: take one of them",
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
            help="A lock's file, an environment NAME[/N] or its recipe's file, or an image.",
        ),
    ],
    after: Annotated[
        str,
        typer.Argument(
            metavar="LOCK|live", help="Another one; live: what a plan made now would be."
        ),
    ],
    *,
    choice: LiveOptions,
) -> int:
    """Show what two locks decide differently; exit code 8 if they do. No network.

    Inputs that changed without changing a decision are shown, and do not count.
    """
    from ..commands.diff import compare
    from ..errors import ExitCode
    from ..views import diff as views

    value = compare(before, after, choice, session.context)
    session.report.show(value, views.diff(value))
    return ExitCode.OK if value.same else ExitCode.DRIFT


@command(verbs, example="smoke allreduce --ranks 4", recipes=False)
def smoke(
    session: Session,
    environment: Environment,
    ranks: Annotated[
        int | None, typer.Option(min=1, max=4096, help="Ranks to start. Else the recipe's.")
    ] = None,
    emulate: Annotated[
        bool,
        typer.Option("--emulate", help="Prove one of another architecture here, by qemu-user."),
    ] = False,
    host_mpi: Annotated[
        bool, typer.Option("--host-mpi", help="Of an image: with this machine's MPI, bound in.")
    ] = False,
    *,
    where: RootOptions,
) -> None:
    """Prove a published environment again; the evidence is kept beside it.

    Of an image (NAME.sif, a sandbox), the ranks are containers that this machine's MPI starts.
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
                "cli.emulate-environment-root",
                "--emulate is for an environment in a root: an image runs as it is",
            )
        value = smoke_image(environment, where, ranks, session.context, host_mpi=host_mpi)
    elif host_mpi:
        raise UsageError("cli.host-mpi-image", "--host-mpi is for an image: NAME.sif, or a sandbox")
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
        int | None, typer.Option("--to", min=1, help="The number. Else the one before.")
    ] = None,
    *,
    where: RootOptions,
) -> None:
    """Make an earlier number the default again; running jobs keep what they loaded."""
    from ..commands.environments import rollback as run
    from ..views import environments as views

    value = run(_root(session, where), name, to, session.context)
    session.report.show(value, views.changed(value))


@command(verbs, example="remove allreduce/1", recipes=False)
def remove(
    session: Session,
    environment: Annotated[
        str,
        _named("A number, which is not the default; NAME alone with --unfinished, --all, --keep."),
    ],
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Remove builds that were never published.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Remove all numbers, the default too, and all builds.")
    ] = False,
    keep: Annotated[
        int | None, typer.Option("--keep", min=0, help="Remove all but the newest so many numbers.")
    ] = None,
    older_than: Annotated[
        int | None,
        typer.Option(
            "--older-than", min=0, metavar="DAYS", help="Remove what was published before that."
        ),
    ] = None,
    *,
    where: RootOptions,
) -> None:
    """Remove one number; never the default, never what a process here still uses.

    With --keep and --older-than, for cron: every number of a NAME to which both apply.
    """
    from ..commands.environments import What
    from ..commands.environments import remove as run
    from ..errors import UsageError
    from ..views import environments as views

    old = keep is not None or older_than is not None
    if unfinished + everything + old > 1:
        raise UsageError(
            "cli.unfinished-all-keep",
            "--unfinished, --all, and --keep or --older-than are different removals",
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
    """Print the line that starts a program on all ranks. Starts nothing.

    Where nothing of that name is published it is the recipe's, as it would be at the site. Of an
    image (NAME.sif, a sandbox), each rank is a container that the host's MPI starts.
    The hosts are those of -H or --hostfile, else of the Slurm or LSF job that the shell is in, else
    this machine alone.
    """
    from ..commands.launch import launch as run

    value = run(environment, options, session.context)
    session.report.show(value, shlex.join(value.words))
