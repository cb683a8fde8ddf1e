"""The commands on the way to an environment: create, plan, lock, render; and doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import ArchOption, Json, RecipeName, Recipes, RootOption, SiteOption
from .session import open_session, run_verb

app = typer.Typer()


@app.command(epilog="Example: envbuild create allreduce --root /scratch/me/env")
def create(
    recipe: RecipeName,
    site: SiteOption = None,
    arch: ArchOption = None,
    root: RootOption = None,
    recipes: Recipes = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the step that failed last time.")
    ] = False,
    relock: Annotated[
        bool, typer.Option("--relock", help="Ask the package index again, take newer files.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Build an environment, prove it with a smoke test, publish it (uses the network)."""
    session = open_session(as_json, recipes)

    def verb() -> None:
        from .. import views
        from ..commands.create import CreateOptions
        from ..commands.create import create as run
        from ..commands.load import Choice

        options = CreateOptions(Choice(recipe, site, arch), root, resume, relock)
        done = run(options, session.context)
        session.report.show(done, views.created(done))

    run_verb(session, verb)


@app.command(epilog="Example: envbuild lock allreduce --output allreduce.lock.json")
def lock(
    recipe: RecipeName,
    site: SiteOption = None,
    arch: ArchOption = None,
    recipes: Recipes = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. Else standard output.")
    ] = None,
) -> None:
    """Decide every file that would be fetched, with its hash; prints JSON (uses the network)."""
    session = open_session(as_json=False, recipes=recipes)

    def verb() -> None:
        from ..commands.load import Choice
        from ..commands.render import make

        text = make(Choice(recipe, site, arch), session.context).text()
        if output is None:
            session.report.raw(text)
        else:
            from ..root.files import write_atomically

            write_atomically(session.context.path(output), text)

    run_verb(session, verb)


@app.command(epilog="Example: envbuild render allreduce --output here --root /scratch/me/env")
def render(
    recipe: RecipeName,
    output: Annotated[Path, typer.Option("--output", "-o", help="New folder to write to.")],
    site: SiteOption = None,
    arch: ArchOption = None,
    root: RootOption = None,
    recipes: Recipes = None,
    as_json: Json = False,
) -> None:
    """Write the build folder without building: bash build.sh there does it (uses the network)."""
    session = open_session(as_json, recipes)

    def verb() -> None:
        from ..commands.load import Choice
        from ..commands.render import render as run

        written = run(Choice(recipe, site, arch), root, output, session.context)
        session.report.show({"written": list(written)}, "\n".join(written))

    run_verb(session, verb)


@app.command(epilog="Example: envbuild doctor")
def doctor(as_json: Json = False) -> None:
    """Show what this machine has, what is missing, and how to get it without root."""
    session = open_session(as_json)

    def verb() -> None:
        from .. import views
        from ..commands.look import doctor as run

        value = run(session.context)
        session.report.show(value, views.doctor(value))

    run_verb(session, verb)
