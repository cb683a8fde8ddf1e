"""``envbuild catalogue``: a page of what a root holds. Only reads."""

from __future__ import annotations

from ..commands.environments import info
from ..errors import BuildError
from ..model.outcome import Info
from ..target_tools.root import publish, stamp
from ..workflow.context import Context
from ..workflow.image_contents import OpenedRoot
from .page import Catalogue, render_catalogue


def catalogue(root: stamp.Root, context: Context) -> str:
    """Return the page; an environment whose lock cannot be read is left out, with a warning."""
    stacks: dict[str, list[Info]] = {}
    for home in root.homes():
        for version in publish.published(home):
            try:
                told = info(OpenedRoot(root, f"{home.name}/{version.number}"))
            except BuildError as error:
                context.reporter.warn(f"skipped {home.name}/{version.number}: {error}")
            else:
                stacks.setdefault(home.name, []).append(told)
    value = Catalogue(
        root=str(root.path),
        site=root.site,
        arch=root.arch,
        modulefiles=str(root.path / "modulefiles"),
        stacks=stacks,
    )
    return render_catalogue(value)
