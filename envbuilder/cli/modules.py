"""The commands over modulefiles of a site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..workflow.options import MatrixOptions
from .command import Group, command
from .session import Session

verbs = Group("module", "Modulefiles that a site puts into its module trees.")


@command(verbs, example="module render --site summit --base /ccs/proj/envbuild --output modules")
def render(
    session: Session,
    options: MatrixOptions,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Written are DIR/lua and DIR/tcl.")
    ],
) -> None:
    """Write a tree with a module for each recipe, and that of envbuild itself. No network.

    What is published in the site's root has its number and proof; what is not says so when it is
    loaded.
    """
    from ..commands.modules import render_tree

    done = render_tree(options, output, session.context)
    session.report.show(done, "\n".join(f"{done.folder}/{name}" for name in done.written))
