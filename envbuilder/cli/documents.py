"""The commands over documents: recipes and sites."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .options import Json, Recipes
from .session import open_session, run_verb

if TYPE_CHECKING:
    from ..commands.library import Kind


def _group(kind: Kind) -> typer.Typer:
    """Return the commands that recipes and sites share."""
    group = typer.Typer(help=f"Look at {kind}s and check your own.", no_args_is_help=True)

    @group.command("list")
    def list_documents(recipes: Recipes = None, as_json: Json = False) -> None:
        """List them, with where each was found."""
        session = open_session(as_json, recipes)

        def verb() -> None:
            from .. import views
            from ..commands.library import list_documents as run

            value = run(kind, session.context)
            session.report.show(value, views.documents(value))

        run_verb(session, verb)

    @group.command("show")
    def show(name: str, recipes: Recipes = None, as_json: Json = False) -> None:
        """Print one as it is written; with --json as it is read."""
        session = open_session(as_json, recipes)

        def verb() -> None:
            from ..commands.library import show as run

            value, text = run(kind, name, session.context)
            session.report.show(value, text)

        run_verb(session, verb)

    @group.command("check")
    def check(files: list[Path], recipes: Recipes = None, as_json: Json = False) -> None:
        """Check files; every problem of all of them is shown with its line and column."""
        session = open_session(as_json, recipes)

        def verb() -> None:
            from ..commands.library import check as run

            names = run(kind, files, session.context)
            session.report.show({"good": names}, "\n".join(f"{name}: good" for name in names))

        run_verb(session, verb)

    @group.command("schema")
    def schema() -> None:
        """Print the JSON schema for editors."""
        session = open_session(as_json=False)

        def verb() -> None:
            from ..commands.library import schema as run

            session.report.raw(run(kind))

        run_verb(session, verb)

    return group


recipes = _group("recipe")
sites = _group("site")


@sites.command("detect")
def detect(as_json: Json = False) -> None:
    """Show the site that this machine is when no other is named."""
    session = open_session(as_json)

    def verb() -> None:
        from .. import views
        from ..commands.library import detect_site

        site, found = detect_site(session.context)
        plain: dict[str, Any] = {"site": site.plain(), "snapshot": found.plain()}
        session.report.show(plain, views.site(site, found))

    run_verb(session, verb)
