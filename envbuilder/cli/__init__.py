"""The command line: parses arguments, calls one verb, shows what it hands back."""

from __future__ import annotations

import atexit
import functools
import gc
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from .. import __version__
from . import streams
from .command import Group

EXIT_CODES = """Exit codes: 0 ok, 1 unexplained error in a log, 2 usage or document,
3 no solution, 4 known bad, 5 build, 6 smoke test, 8 drift, 9 missing tool, 70 a bug of envbuild."""

MODULES = {
    "stacks": ("create", "clone", "image", "lock", "render", "doctor"),
    "plans": ("plan", "why", "why-not"),
    "environments": (
        *("list", "import", "catalogue", "info", "diff", "smoke", "rollback", "remove", "launch"),
        *("job", "shell"),
    ),
    "troubles": ("validate", "diagnose", "hang", "report"),
    "ci": ("ci", "module"),
    "documents": ("search", "advisories", "knowledge", "bundle", "recipes", "sites"),
}
"""The modules of the commands, each with the first words of its commands: a call imports one."""


def _groups(words: Sequence[str]) -> list[Group]:
    """Return the groups of the module whose command *words* begin with; for no command, all."""
    names = [name for name, commands in MODULES.items() if words and words[0] in commands]
    modules = [import_module(f"{__name__}.{name}") for name in names or MODULES]
    return [group for module in modules for group in module.GROUPS]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"envbuild {__version__}")
        raise typer.Exit


def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


def command_line(words: Sequence[str] = ()) -> typer.Typer:
    """Return the command line; if *words* begin with a verb, with no other one than that.

    For what is no verb, a slip say, it is the whole one.
    """
    line = typer.Typer(
        name="envbuild",
        help="Build deep-learning environments from recipes and prove that their ranks can "
        "communicate.",
        epilog=EXIT_CODES,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    line.callback()(_main)
    requested = [group for group in _groups(words) if group.verb(words)]
    for group in requested or _groups(()):
        line.add_typer(group.app(group.verb(words)), name=group.word)
    return line


@functools.cache
def _whole() -> typer.Typer:
    return command_line()


def __getattr__(name: str) -> typer.Typer:
    """Return the whole command line as ``app``, where Typer's own tools look for it."""
    if name == "app":
        return _whole()
    raise AttributeError(name)


def start_fast() -> None:
    """Save what a short command spends on nothing: about a quarter of a plan's CPU time."""
    # Nearly all that is made while models are imported stays; to look at it again is of no use.
    gc.set_threshold(100_000, 50, 50)
    # Nor is it at the end, where Python would look through all of it for cycles, several times.
    atexit.register(gc.freeze)
    # Pydantic would read the metadata of every installed package to look for plugins of its own.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def main() -> None:
    """Run the command line."""
    start_fast()
    # Until a verb runs there is nothing to clean up, and Python would show a traceback.
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    streams.prepare()
    try:
        command_line(sys.argv[1:])()
    except OSError as error:
        # Help and version, which Typer writes before there is a session that catches it.
        streams.drop_output()
        typer.echo(f"error: cannot write to standard output: {error.strerror}", err=True)
        sys.exit(5)
