"""The commands over modulefiles of a site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..workflow.options import MatrixOptions
from .command import Group, command
from .session import Session

verbs = Group("module", "Modulefiles for the module trees of a site.")
GROUPS = (verbs,)


@command(verbs, example="module render --site summit --base /ccs/proj/envbuild --output modules")
def render(
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
