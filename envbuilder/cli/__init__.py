"""The command line: parses arguments, calls one verb, shows what it hands back."""

from __future__ import annotations

import gc
import os
import signal
from typing import Annotated

import typer

from .. import __version__
from . import advisories, building, deciding, documents, environments, streams

EXIT_CODES = """Exit codes: 0 ok, 2 usage or document, 3 no solution, 4 known bad, 5 build,
6 smoke test, 7 speed, 8 drift, 9 missing tool, 70 a bug of envbuild."""

app = typer.Typer(
    name="envbuild",
    help="From a recipe to a deep-learning environment that proves its ranks can talk.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(building.app)
app.add_typer(deciding.app)
app.add_typer(environments.app)
app.add_typer(advisories.app, name="advisories")
app.add_typer(documents.recipes, name="recipes")
app.add_typer(documents.sites, name="sites")


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


def _start_fast() -> None:
    """Save what a short command spends on nothing: about a tenth of a plan's CPU time."""
    # Nearly all that is made while models are imported stays; to look at it again is of no use.
    gc.set_threshold(100_000, 50, 50)
    # Pydantic would read the metadata of every installed package to look for plugins of its own.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def main() -> None:
    """Run the command line."""
    _start_fast()
    # Until a verb runs there is nothing to clean up, and Python would show a traceback.
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    streams.prepare()
    app()
