"""The commands over what a root holds: list, info, diff, smoke, rollback, remove."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .command import command
from .options import (
    Allow,
    ArchOption,
    Environment,
    Partition,
    RootOption,
    SiteOption,
    environment_names,
)
from .session import Session

if TYPE_CHECKING:
    from ..root import Root


app = typer.Typer()


def _root(session: Session, root: str | None, site: str | None, arch: str | None) -> Root:
    from ..commands.places import existing_root

    return existing_root(root, site, arch, session.context)


@command(app, "list", example="list --root /scratch/me/env")
def list_(
    session: Session,
    root: RootOption = None,
    site: SiteOption = None,
    arch: ArchOption = None,
) -> None:
    """Show the environments of a root and what was proved of each."""
    from ..commands.environments import list_all
    from ..views import environments as views

    value = list_all(_root(session, root, site, arch))
    session.report.show(value, views.listing(value))


@command(app, example="info allreduce/1")
def info(
    session: Session,
    environment: Environment,
    root: RootOption = None,
    site: SiteOption = None,
    arch: ArchOption = None,
) -> None:
    """Show one environment: components, places, every smoke test."""
    from ..commands.environments import info as run
    from ..views import environments as views

    value = run(_root(session, root, site, arch), environment)
    session.report.show(value, views.info(value))


@command(app, example="diff allreduce/1 live --root /scratch/me/env", recipes=True)
def diff(
    session: Session,
    before: Annotated[
        str, typer.Argument(metavar="LOCK", help="A lock's file, or an environment NAME[/N].")
    ],
    after: Annotated[
        str,
        typer.Argument(
            metavar="LOCK|live", help="Another one; live: what a plan made now would be."
        ),
    ],
    root: RootOption = None,
    recipe: Annotated[
        str | None, typer.Option("--recipe", help="For live: the recipe's file. Else by its name.")
    ] = None,
    site: SiteOption = None,
    arch: ArchOption = None,
    partition: Partition = None,
    allow: Allow = None,
) -> int:
    """Show what two locks decide differently; exit code 8 if they do. No network.

    Inputs that changed without changing a decision are shown, and do not count.
    """
    from ..commands.diff import DiffOptions, compare
    from ..commands.load import choice
    from ..errors import ExitCode
    from ..views import diff as views

    where = DiffOptions(root, choice(recipe or "", site, arch, partition, allow))
    value = compare(before, after, where, session.context)
    session.report.show(value, views.diff(value))
    return int(ExitCode.OK if value.same else ExitCode.DRIFT)


@command(app, example="smoke allreduce --ranks 4")
def smoke(
    session: Session,
    environment: Environment,
    ranks: Annotated[
        int | None, typer.Option(min=1, max=4096, help="Ranks to start. Else the recipe's.")
    ] = None,
    root: RootOption = None,
    site: SiteOption = None,
    arch: ArchOption = None,
) -> None:
    """Prove a published environment again; the evidence is kept beside it."""
    from ..commands.environments import smoke as run
    from ..views import environments as views

    there = _root(session, root, site, arch)
    value = run(there, environment, ranks, session.context, site)
    session.report.show(value, views.smoke(value))


@command(app, example="rollback allreduce --to 1")
def rollback(
    session: Session,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="An environment.", autocompletion=environment_names),
    ],
    to: Annotated[
        int | None, typer.Option("--to", min=1, help="The number. Else the one before.")
    ] = None,
    root: RootOption = None,
    site: SiteOption = None,
    arch: ArchOption = None,
) -> None:
    """Make an earlier number the default again; running jobs keep what they loaded."""
    from ..commands.environments import rollback as run
    from ..views import environments as views

    value = run(_root(session, root, site, arch), name, to, session.context)
    session.report.show(value, views.changed(value))


@command(app, example="remove allreduce/1")
def remove(
    session: Session,
    environment: Environment,
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Remove builds that were never published.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Remove all numbers, the default too, and all builds.")
    ] = False,
    root: RootOption = None,
    site: SiteOption = None,
    arch: ArchOption = None,
) -> None:
    """Remove one number; never the default, never what a process here still uses."""
    from ..commands.environments import What
    from ..commands.environments import remove as run
    from ..views import environments as views

    place = _root(session, root, site, arch)
    what: What = "all" if everything else "unfinished" if unfinished else "number"
    value = run(place, environment, session.context, what=what)
    session.report.show(value, views.removed(value))
