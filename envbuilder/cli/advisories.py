"""The commands over what is known: advisories list, show and check."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import command
from .options import ArchOption
from .session import Session

app = typer.Typer(help="Look at what is known of versions, and check some.", no_args_is_help=True)


@command(app, "list", example="advisories list --component openmpi", recipes=True)
def list_(
    session: Session,
    component: Annotated[
        str | None, typer.Option("--component", help="Only what speaks of it, or of its kind.")
    ] = None,
    severity: Annotated[
        str | None, typer.Option("--severity", help="Only these: error, warning or info.")
    ] = None,
) -> None:
    """List advisories, couplings and rules of flags, a line each."""
    from ..commands.advisories import list_rows, plain
    from ..views import advisories as views

    value = list_rows(component, severity, session.context)
    session.report.show({"rows": [plain(row) for row in value]}, views.listing(value))


@command(app, example="advisories show OMPI-001", recipes=True)
def show(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="ID", help="The id of a row.")],
) -> None:
    """Show all of one row: condition, remedies, sources, notes."""
    from ..commands.advisories import plain
    from ..commands.advisories import show as run
    from ..views import advisories as views

    value = run(name, session.context)
    session.report.show(plain(value), views.row(value))


@command(
    app, example="advisories check openmpi==3.1.3 horovod==0.18.2 --arch ppc64le", recipes=True
)
def check(
    session: Session,
    versions: Annotated[
        list[str], typer.Argument(metavar="COMPONENT==VERSION...", help="What is there together.")
    ],
    arch: ArchOption = None,
    fact: Annotated[
        list[str] | None,
        typer.Option(
            "--fact",
            metavar="NAME=VALUE",
            help="network=infiniband, mpi.cuda_aware=true, horovod.origin=pip, "
            "flags.HOROVOD_WITH_MPI=1 (then flags not stated count as not set)...; may be "
            "repeated.",
        ),
    ] = None,
) -> int:
    """Say what is known of versions together; exit code 4 if that is an error."""
    from ..commands.advisories import check as run
    from ..errors import ExitCode
    from ..views import advisories as views

    value = run(versions, arch, fact or (), session.context)
    session.report.show(value, views.checked(value))
    return int(ExitCode.KNOWN_BAD if value.bad else ExitCode.OK)
