"""The commands over a matrix of recipes: a site's pipeline, and its modules, rendered."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ..workflow.options import CiOptions, MatrixOptions
from ..workflow.plan_options import OutputOption
from .command import Group, command
from .session import Session

verbs = Group(
    "ci", "Pipelines that plan, lock, build, test, scan and publish the recipes of a site."
)
modules = Group("module", "Modulefiles for the module trees of a site.")
GROUPS = (verbs, modules)


@command(verbs, example="ci render --site summit --base /ccs/proj/envbuild", json=False)
def render(
    session: Session,
    options: CiOptions,
    provider: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="One of: {providers} (default: the first of these)."),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Write a pipeline for a matrix of recipes and architectures. No network, builds nothing."""
    from ..ci.command import render as run
    from ..files import write_atomically
    from ..workflow.output import output_path

    path = output_path(output, session.context)
    text = run(options, provider, session.context)
    if path is None:
        session.report.raw(text)
    else:
        write_atomically(path, text)


@command(verbs, example="ci render", recipes=False, json=False, hidden=True)
def run(_: Session, words: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Name the commands that took the place of this verb."""
    from ..errors import UsageError

    kept = [each for each in words or () if each not in ("--resume", "--nightly", "--json")]
    render = shlex.join(["envbuild", "ci", "render", *kept, "-o", ".gitlab-ci.yml"])
    raise UsageError(
        "ci.run-removed",
        "envbuild ci run was removed: a runner runs the jobs of a pipeline",
        f"on one machine: {render} && gitlab-ci-local --shell-executor-no-image",
    )


@command(
    modules,
    "render",
    example="module render --site summit --base /ccs/proj/envbuild --output modules",
)
def render_modules(
    session: Session,
    options: MatrixOptions,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="Folder to write: DIR/lua and DIR/tcl."),
    ],
) -> None:
    """Write a module tree with one module for each recipe and one for envbuild. No network.

    A module of a published environment contains its number and evidence. A module of a recipe
    that is not published prints a message when it is loaded.
    """
    from ..commands.modules import render_tree

    done = render_tree(options, output, session.context)
    session.report.show(done, "\n".join(f"{done.folder}/{name}" for name in done.written))
