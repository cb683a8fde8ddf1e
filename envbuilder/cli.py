"""The command line: parses arguments, calls one verb, shows what it hands back."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import __version__

if TYPE_CHECKING:
    from .commands.context import Context
    from .commands.library import Kind
    from .report import Report
    from .root.store import Root

EXIT_CODES = """\b
Exit codes: 0 ok, 2 usage or document, 3 no solution, 4 known bad, 5 build, 6 smoke test,
7 speed, 8 drift, 9 missing tool, 70 a bug of envbuild."""

app = typer.Typer(
    name="envbuild",
    help="From a recipe to a deep-learning environment that proves its ranks can talk.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
recipes_app = typer.Typer(help="Look at recipes and check your own.", no_args_is_help=True)
sites_app = typer.Typer(help="Look at sites and check your own.", no_args_is_help=True)
app.add_typer(recipes_app, name="recipes")
app.add_typer(sites_app, name="sites")

Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Recipes = Annotated[
    list[Path] | None,
    typer.Option("--recipes", metavar="DIR", help="Further folder of recipes; may be repeated."),
]
RecipeName = Annotated[
    str, typer.Argument(metavar="RECIPE", help="A recipe's name, or the path of its file.")
]
SiteOption = Annotated[
    str | None, typer.Option("--site", help="Where: a site's name or file. Else ENVBUILD_SITE.")
]
ArchOption = Annotated[
    str | None, typer.Option("--arch", help="Architecture: x86_64, ppc64le or aarch64.")
]
RootOption = Annotated[
    str | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="Where environments live. Else ENVBUILD_ROOT, else the site's.",
    ),
]
Environment = Annotated[
    str, typer.Argument(metavar="NAME[/N]", help="An environment; without /N its default.")
]


@dataclass(frozen=True)
class Session:
    """One call of the command line: where to print, and the world outside."""

    report: Report
    context: Context


def _session(as_json: bool, recipes: list[Path] | None = None) -> Session:
    from .commands.context import Context
    from .report import Report

    report = Report(sys.stdout, sys.stderr, as_json)
    context = Context(
        environ=dict(os.environ),
        cwd=Path.cwd(),
        clock=lambda: datetime.now(timezone.utc),
        tell=report,
        recipe_folders=tuple(recipes or ()),
    )
    return Session(report, context)


def _run(session: Session, verb: Callable[[], None]) -> None:
    """Run one verb; the one place that turns errors into messages and exit codes."""
    from .errors import EnvbuildError, ExitCode, os_error

    try:
        verb()
    except EnvbuildError as error:
        session.report.error(error)
        raise typer.Exit(int(error.code)) from None
    except BrokenPipeError:
        # The reader of our output has gone (envbuild list | head): not an error of anybody's.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except OSError as error:
        found = os_error(error)
        session.report.error(found)
        raise typer.Exit(int(found.code)) from None
    except KeyboardInterrupt:
        session.report.warn("interrupted; nothing was published")
        raise typer.Exit(130) from None
    except Exception:
        import traceback

        session.report.bug(traceback.format_exc())
        raise typer.Exit(int(ExitCode.BUG)) from None


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"envbuild {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


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
    session = _session(as_json, recipes)

    def verb() -> None:
        from . import views
        from .commands.create import CreateOptions
        from .commands.create import create as run
        from .commands.load import Choice

        options = CreateOptions(Choice(recipe, site, arch), root, resume, relock)
        done = run(options, session.context)
        session.report.show(done, views.created(done))

    _run(session, verb)


@app.command(epilog="Example: envbuild plan allreduce")
def plan(
    recipe: RecipeName,
    site: SiteOption = None,
    arch: ArchOption = None,
    recipes: Recipes = None,
    as_json: Json = False,
) -> None:
    """Show what would be built: components, modules, steps. No network, nothing written."""
    session = _session(as_json, recipes)

    def verb() -> None:
        from . import views
        from .commands.load import Choice, load
        from .commands.load import plan as run

        value = run(load(Choice(recipe, site, arch), session.context))
        session.report.show(value, views.plan(value))

    _run(session, verb)


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
    session = _session(as_json=False, recipes=recipes)

    def verb() -> None:
        from .commands.load import Choice
        from .commands.render import make

        text = make(Choice(recipe, site, arch), session.context).text()
        if output is None:
            session.report.raw(text)
        else:
            from .root.files import write_atomically

            write_atomically(session.context.path(output), text)

    _run(session, verb)


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
    session = _session(as_json, recipes)

    def verb() -> None:
        from .commands.load import Choice
        from .commands.render import render as run

        written = run(Choice(recipe, site, arch), root, output, session.context)
        session.report.show({"written": list(written)}, "\n".join(written))

    _run(session, verb)


def _root(session: Session, root: str | None, site: str | None, arch: str | None) -> Root:
    from .commands.places import existing_root

    return existing_root(root, site, arch, session.context)


@app.command("list", epilog="Example: envbuild list --root /scratch/me/env")
def list_(
    root: RootOption = None,
    site: SiteOption = None,
    arch: ArchOption = None,
    as_json: Json = False,
) -> None:
    """Show the environments of a root and what was proved of each."""
    session = _session(as_json)

    def verb() -> None:
        from . import views
        from .commands.environments import list_all

        value = list_all(_root(session, root, site, arch))
        session.report.show(value, views.listing(value))

    _run(session, verb)


@app.command(epilog="Example: envbuild info allreduce/1")
def info(
    environment: Environment,
    root: RootOption = None,
    site: SiteOption = None,
    arch: ArchOption = None,
    as_json: Json = False,
) -> None:
    """Show one environment: components, places, every smoke test."""
    session = _session(as_json)

    def verb() -> None:
        from . import views
        from .commands.environments import info as run

        value = run(_root(session, root, site, arch), environment)
        session.report.show(value, views.info(value))

    _run(session, verb)


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
    session = _session(as_json)

    def verb() -> None:
        from . import views
        from .commands.environments import smoke as run

        value = run(_root(session, root, site, arch), environment, ranks, session.context)
        session.report.show(value, views.smoke(value))

    _run(session, verb)


@app.command(epilog="Example: envbuild rollback allreduce --to 1")
def rollback(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An environment.")],
    to: Annotated[
        int | None, typer.Option("--to", min=1, help="The number. Else the one before.")
    ] = None,
    root: RootOption = None,
    site: SiteOption = None,
    arch: ArchOption = None,
    as_json: Json = False,
) -> None:
    """Make an earlier number the default again; running jobs keep what they loaded."""
    session = _session(as_json)

    def verb() -> None:
        from . import views
        from .commands.environments import rollback as run

        value = run(_root(session, root, site, arch), name, to)
        session.report.show(value, views.changed(value))

    _run(session, verb)


@app.command(epilog="Example: envbuild remove allreduce/1")
def remove(
    environment: Environment,
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Remove builds that were never published.")
    ] = False,
    root: RootOption = None,
    site: SiteOption = None,
    arch: ArchOption = None,
    as_json: Json = False,
) -> None:
    """Remove one number; never the default, never what a process here still uses."""
    session = _session(as_json)

    def verb() -> None:
        from . import views
        from .commands.environments import remove as run

        place = _root(session, root, site, arch)
        value = run(place, environment, session.context, unfinished=unfinished)
        session.report.show(value, views.removed(value))

    _run(session, verb)


@app.command(epilog="Example: envbuild doctor")
def doctor(as_json: Json = False) -> None:
    """Show what this machine has, what is missing, and how to get it without root."""
    session = _session(as_json)

    def verb() -> None:
        from . import views
        from .detect import doctor as run

        value = run(session.context.environ)
        session.report.show(value, views.doctor(value))

    _run(session, verb)


def _document_commands(group: typer.Typer, kind: Kind) -> None:
    """Give a group the verbs that recipes and sites share."""

    @group.command("list")
    def list_documents(recipes: Recipes = None, as_json: Json = False) -> None:
        """List them, with where each was found."""
        session = _session(as_json, recipes)

        def verb() -> None:
            from . import views
            from .commands.library import list_documents as run

            value = run(kind, session.context)
            session.report.show(value, views.documents(value))

        _run(session, verb)

    @group.command("show")
    def show(name: str, recipes: Recipes = None, as_json: Json = False) -> None:
        """Print one as it is written; with --json as it is read."""
        session = _session(as_json, recipes)

        def verb() -> None:
            from .commands.library import show as run

            value, text = run(kind, name, session.context)
            session.report.show(value, text)

        _run(session, verb)

    @group.command("check")
    def check(files: list[Path], recipes: Recipes = None, as_json: Json = False) -> None:
        """Check files; every problem of all of them is shown with its line and column."""
        session = _session(as_json, recipes)

        def verb() -> None:
            from .commands.library import check as run

            names = run(kind, files, session.context)
            session.report.show({"good": names}, "\n".join(f"{name}: good" for name in names))

        _run(session, verb)

    @group.command("schema")
    def schema() -> None:
        """Print the JSON schema for editors."""
        session = _session(as_json=False)

        def verb() -> None:
            from .commands.library import schema as run

            session.report.raw(run(kind))

        _run(session, verb)


_document_commands(recipes_app, "recipe")
_document_commands(sites_app, "site")


@sites_app.command("detect")
def detect(as_json: Json = False) -> None:
    """Show the site that this machine is when no other is named."""
    session = _session(as_json)

    def verb() -> None:
        from . import views
        from .commands.library import detect_site

        site, found = detect_site(session.context)
        plain: dict[str, Any] = {"site": site.plain(), "snapshot": found.plain()}
        session.report.show(plain, views.site(site, found))

    _run(session, verb)


def main() -> None:
    """Run the command line."""
    app()
