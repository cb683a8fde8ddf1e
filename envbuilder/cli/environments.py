"""The commands over what a root holds: list, info, diff, smoke, rollback, remove."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    Allow,
    ArchOption,
    Environment,
    Json,
    Partition,
    Recipes,
    RootOption,
    SiteOption,
    environment_names,
)
from .session import Session, open_session, run_verb

if TYPE_CHECKING:
    from ..root.store import Root


app = typer.Typer()


def _root(session: Session, root: str | None, site: str | None, arch: str | None) -> Root:
    from ..commands.places import existing_root

    return existing_root(root, site, arch, session.context)


@app.command("list", epilog="Example: envbuild list --root /scratch/me/env")
def list_(
    root: RootOption = None,
    site: SiteOption = None,
    arch: ArchOption = None,
    as_json: Json = False,
) -> None:
    """Show the environments of a root and what was proved of each."""
    session = open_session(as_json)

    def verb() -> None:
        from .. import views
        from ..commands.environments import list_all

        value = list_all(_root(session, root, site, arch))
        session.report.show(value, views.listing(value))

    run_verb(session, verb)


@app.command(epilog="Example: envbuild info allreduce/1")
def info(
    environment: Environment,
    root: RootOption = None,
    site: SiteOption = None,
    arch: ArchOption = None,
    as_json: Json = False,
) -> None:
    """Show one environment: components, places, every smoke test."""
    session = open_session(as_json)

    def verb() -> None:
        from .. import views
        from ..commands.environments import info as run

        value = run(_root(session, root, site, arch), environment)
        session.report.show(value, views.info(value))

    run_verb(session, verb)


@app.command(epilog="Example: envbuild diff allreduce/1 live --root /scratch/me/env")
def diff(
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
    recipes: Recipes = None,
    as_json: Json = False,
) -> None:
    """Show what two locks decide differently; exit code 8 if they do. No network.

    Inputs that changed without changing a decision are shown, and do not count.
    """
    session = open_session(as_json, recipes)

    def verb() -> int:
        from .. import views_diff
        from ..commands.diff import Where, compare
        from ..commands.load import choice
        from ..errors import ExitCode

        where = Where(root, choice(recipe or "", site, arch, partition, allow))
        value = compare(before, after, where, session.context)
        session.report.show(value, views_diff.diff(value))
        return int(ExitCode.OK if value.same else ExitCode.DRIFT)

    run_verb(session, verb)


@app.command(epilog="Example: envbuild smoke allreduce --ranks 4")
def smoke(
    environment: Environment,
    ranks: Annotated[
        int | None, typer.Option(min=1, max=4096, help="Ranks to start. Else the recipe's.")
    ] = None,
    root: RootOption = None,
    site: SiteOption = None,
    arch: ArchOption = None,
    as_json: Json = False,
) -> None:
    """Prove a published environment again; the evidence is kept beside it."""
    session = open_session(as_json)

    def verb() -> None:
        from .. import views
        from ..commands.environments import smoke as run

        value = run(_root(session, root, site, arch), environment, ranks, session.context)
        session.report.show(value, views.smoke(value))

    run_verb(session, verb)


@app.command(epilog="Example: envbuild rollback allreduce --to 1")
def rollback(
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
    as_json: Json = False,
) -> None:
    """Make an earlier number the default again; running jobs keep what they loaded."""
    session = open_session(as_json)

    def verb() -> None:
        from .. import views
        from ..commands.environments import rollback as run

        value = run(_root(session, root, site, arch), name, to, session.context)
        session.report.show(value, views.changed(value))

    run_verb(session, verb)


@app.command(epilog="Example: envbuild remove allreduce/1")
def remove(
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
    as_json: Json = False,
) -> None:
    """Remove one number; never the default, never what a process here still uses."""
    session = open_session(as_json)

    def verb() -> None:
        from .. import views
        from ..commands.environments import What
        from ..commands.environments import remove as run

        place = _root(session, root, site, arch)
        what: What = "all" if everything else "unfinished" if unfinished else "number"
        value = run(place, environment, session.context, what=what)
        session.report.show(value, views.removed(value))

    run_verb(session, verb)
