"""The commands over documents: recipes and sites."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Json, Recipes
from .session import open_session, run_verb

if TYPE_CHECKING:
    from ..commands.library import Kind


def _group(kind: Kind) -> typer.Typer:
    """Return the commands that recipes and sites share."""
    group = typer.Typer(help=f"Look at {kind}s and check your own.", no_args_is_help=True)
    one = {"recipe": "allreduce", "site": "taurus-ml"}[kind]
    example = f"Example: envbuild {kind}s"

    @group.command("list", epilog=f"{example} list")
    def list_documents(recipes: Recipes = None, as_json: Json = False) -> None:
        """List them, with where each was found."""
        session = open_session(as_json, recipes)

        def verb() -> None:
            from .. import views
            from ..commands.library import list_documents as run

            value = run(kind, session.context)
            session.report.show(value, views.documents(value))

        run_verb(session, verb)

    @group.command("show", epilog=f"{example} show {one}")
    def show(name: str, recipes: Recipes = None, as_json: Json = False) -> None:
        """Print one as it is written; with --json as it is read."""
        session = open_session(as_json, recipes)

        def verb() -> None:
            from ..commands.library import show as run

            value, text = run(kind, name, session.context)
            session.report.show(value, text)

        run_verb(session, verb)

    @group.command("check", epilog=f"{example} check my-{kind}.yaml")
    def check(files: list[Path], recipes: Recipes = None, as_json: Json = False) -> None:
        """Check files; every problem of all of them is shown with its line and column."""
        session = open_session(as_json, recipes)

        def verb() -> None:
            from ..commands.library import check as run

            names = run(kind, files, session.context)
            session.report.show({"good": names}, "\n".join(f"{name}: good" for name in names))

        run_verb(session, verb)

    @group.command("schema", epilog=f"{example} schema >{kind}.json")
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


@sites.command(epilog="Example: envbuild sites snapshot our-site.yaml -o our-site.snapshot.json")
def snapshot(
    site: Annotated[
        str, typer.Argument(metavar="SITE", help="A site's name or file; local: this machine.")
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write it there, not to the screen."),
    ] = None,
    probe: Annotated[
        bool, typer.Option("--probe", help="Also load modules and ask what they bring.")
    ] = False,
    tree: Annotated[
        list[str] | None,
        typer.Option("--tree", metavar="DIR", help="Look there instead; may be repeated."),
    ] = None,
    recipes: Recipes = None,
    as_json: Json = False,
) -> None:
    """Record what a site's module trees hold, for planning on any machine.

    Run it on a login node of the site. It loads the site's preloads and shows every module;
    nothing is changed there.
    """
    session = open_session(as_json, recipes)

    def verb() -> None:
        from .. import views_sites
        from ..commands import sites as run

        found = run.take_snapshot(site, session.context, probe=probe, trees=tree)
        for note in found.notes:
            session.report.warn(note)
        if output is None:
            session.report.raw(run.snapshot_text(found.snapshot))
            return
        path = run.save(run.snapshot_text(found.snapshot), output, session.context)
        plain = {"file": str(path), "notes": found.notes, "snapshot": found.snapshot.plain()}
        session.report.show(
            plain, views_sites.snapshot(str(path), found.snapshot, len(found.notes))
        )

    run_verb(session, verb)


@sites.command(epilog="Example: envbuild sites detect --output our-site.yaml")
def detect(
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write it to our-site.yaml."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Draft a site document from what this machine has; with --json all that was found."""
    session = open_session(as_json)

    def verb() -> None:
        from ..commands import sites as run

        text = run.draft_site(session.context, output)
        if output is not None:
            path = run.save(text, output, session.context)
            session.report.say(f"wrote {path}: a draft, read it and fill in what is missing")
        if as_json:
            site, found = run.detect_site(session.context)
            plain = {"site": site.plain(), "snapshot": found.plain(), "draft": text}
            session.report.show(plain, "")
        elif output is None:
            session.report.raw(text)

    run_verb(session, verb)
