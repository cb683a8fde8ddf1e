"""The commands over what is known: advisories list, show and check."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import ArchOption, Json, Recipes
from .session import open_session, run_verb

app = typer.Typer(help="Look at what is known of versions, and check some.", no_args_is_help=True)


@app.command("list", epilog="Example: envbuild advisories list --component openmpi")
def list_(
    component: Annotated[
        str | None, typer.Option("--component", help="Only what speaks of it, or of its kind.")
    ] = None,
    severity: Annotated[
        str | None, typer.Option("--severity", help="Only these: error, warning or info.")
    ] = None,
    recipes: Recipes = None,
    as_json: Json = False,
) -> None:
    """List advisories, couplings and rules of flags, a line each."""
    session = open_session(as_json, recipes)

    def verb() -> None:
        from .. import views_advisories
        from ..commands.advisories import list_rows, plain

        value = list_rows(component, severity, session.context)
        session.report.show(
            {"rows": [plain(row) for row in value]}, views_advisories.listing(value)
        )

    run_verb(session, verb)


@app.command(epilog="Example: envbuild advisories show OMPI-001")
def show(
    name: Annotated[str, typer.Argument(metavar="ID", help="The id of a row.")],
    recipes: Recipes = None,
    as_json: Json = False,
) -> None:
    """Show all of one row: condition, remedies, sources, notes."""
    session = open_session(as_json, recipes)

    def verb() -> None:
        from .. import views_advisories
        from ..commands.advisories import plain
        from ..commands.advisories import show as run

        value = run(name, session.context)
        session.report.show(plain(value), views_advisories.row(value))

    run_verb(session, verb)


@app.command(
    epilog="Example: envbuild advisories check openmpi==3.1.3 horovod==0.18.2 --arch ppc64le"
)
def check(
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
    recipes: Recipes = None,
    as_json: Json = False,
) -> None:
    """Say what is known of versions together; exit code 4 if that is an error."""
    session = open_session(as_json, recipes)

    def verb() -> int:
        from .. import views_advisories
        from ..commands.advisories import check as run
        from ..errors import ExitCode

        value = run(versions, arch, fact or (), session.context)
        session.report.show(value, views_advisories.checked(value))
        return int(ExitCode.KNOWN_BAD if value.bad else ExitCode.OK)

    run_verb(session, verb)
