"""Options and arguments that several commands share."""

from __future__ import annotations

import contextlib
import os
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..model.evidence import Tier


def recipe_names(incomplete: str) -> list[str]:
    """Return the recipes that begin so, for the shell's completion; never fails."""
    from ..documents.library import catalogue, search_path

    with contextlib.suppress(Exception):
        folders = search_path(os.environ, ())
        names = [name for name, _ in catalogue("recipe", folders)]
        return [name for name in names if name.startswith(incomplete)]
    return []


def environment_names(context: typer.Context, incomplete: str) -> list[str]:
    """Return the environments of the root that begin so, and after a / their numbers.

    For the shell's completion; never fails.
    """
    from ..commands.places import existing_root
    from ..root.environments import names
    from .session import open_session

    with contextlib.suppress(Exception):
        session = open_session(as_json=False)
        session.report.quiet = True
        root, site, arch = (context.params.get(name) for name in ("root", "site", "arch"))
        complete = names(
            existing_root(root, site, arch, session.context), numbers="/" in incomplete
        )
        return [name for name in complete if name.startswith(incomplete)]
    return []


class TierName(str, Enum):
    """What can be asked for with ``--require-tier``, lowest first."""

    BUILT = "built"
    IMPORTED = "imported"
    RANK = "rank"
    RANKS = "ranks"
    NODES = "nodes"

    def tier(self) -> Tier:
        """Return its name in the evidence."""
        names: dict[str, Tier] = {
            "built": "built",
            "imported": "imported",
            "rank": "one rank",
            "ranks": "several ranks",
            "nodes": "several nodes",
        }
        return names[self.value]


Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Recipes = Annotated[
    list[Path] | None,
    typer.Option("--recipes", metavar="DIR", help="Further folder of recipes; may be repeated."),
]
RecipeName = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE",
        help="A recipe's name, or the path of its file.",
        autocompletion=recipe_names,
    ),
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
    str,
    typer.Argument(
        metavar="NAME[/N]",
        help="An environment; without /N its default.",
        autocompletion=environment_names,
    ),
]
Partition = Annotated[
    str | None, typer.Option("--partition", help="A part of the site with hardware of its own.")
]
ProfileOption = Annotated[
    str | None,
    typer.Option("--profile", help="scorep: instrument what is built, start through Score-P."),
]
JobNodes = Annotated[int | None, typer.Option("--nodes", metavar="N", help="Of a job. Else one.")]
JobRanks = Annotated[
    int | None,
    typer.Option(
        "--ranks-per-node", metavar="N", help="Of a job. Else as many as the smoke test has."
    ),
]
JobMinutes = Annotated[
    int | None, typer.Option("--minutes", metavar="N", help="A job's longest run time. Else 30.")
]
JobAccount = Annotated[
    str | None, typer.Option("--account", metavar="NAME", help="Whose account a job is on.")
]
JobCpus = Annotated[
    int | None,
    typer.Option("--cpus-per-rank", metavar="N", help="Cores. Else as the scheduler has it."),
]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="ID=REASON", help="Waive an advisory; may be repeated."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show all there is to say.")]
