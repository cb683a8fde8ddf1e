"""What a user may say to the verbs over a plan: one frozen value each, as in ``options.py``."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from ..text import shown

if TYPE_CHECKING:
    from ..model.plan import Plan


def recipe_names(incomplete: str) -> list[str]:
    """Return the recipes that begin so, for the shell's completion; never fails."""
    from ..documents.library import catalogue, search_path

    with contextlib.suppress(Exception):
        names = [name for name, _ in catalogue("recipe", search_path(os.environ, ()))]
        return [name for name in names if name.startswith(incomplete)]
    return []


RecipeName = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE",
        help="A recipe's name, or the path of its file.",
        autocompletion=recipe_names,
    ),
]
EnvironmentOrRecipe = Annotated[
    str,
    typer.Argument(
        metavar="NAME[/N]|RECIPE",
        help="A published environment, otherwise a recipe's name or the path of its file.",
        autocompletion=recipe_names,
    ),
]
SiteOption = Annotated[
    str | None, typer.Option(help="A site's name or file (default: $ENVBUILD_SITE, or detected).")
]
ArchOption = Annotated[
    str | None, typer.Option(help="The architecture: x86_64, ppc64le or aarch64.")
]
Partition = Annotated[str | None, typer.Option(help="A partition of the site.")]
AllowOption = Annotated[
    list[str] | None,
    typer.Option(metavar="ID=REASON", help="Waive an advisory, with a reason. May be repeated."),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File to write (default: standard output)."),
]
NewFileOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="New file to write (default: standard output)."
    ),
]
RootOption = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="The folder of environments, or ws:NAME for a workspace (default: $ENVBUILD_ROOT, "
        "otherwise the site's).",
    ),
]


@dataclass(frozen=True)
class PlanOptions:
    """Of what a plan is made; None: not said. Raises UsageError for a waiver without a reason."""

    recipe: RecipeName
    site: SiteOption = None
    arch: ArchOption = None
    partition: Partition = None
    profile: Annotated[
        str | None,
        typer.Option(help="scorep: instrument the build with Score-P and start ranks with it."),
    ] = None
    allow: AllowOption = None

    def __post_init__(self) -> None:
        self.waivers()

    def waivers(self) -> dict[str, str]:
        """Return the reason of each waiver by the id of what it waives."""
        return dict(_waiver(each) for each in self.allow or ())

    def as_locked(self, plan: Plan) -> PlanOptions:
        """Return the options with what was not said as it was in *plan*."""
        from ..model.profiles import base_name

        return replace(
            self,
            recipe=self.recipe or base_name(plan),
            profile=self.profile or plan.profile,
            site=self.site or plan.site,
            arch=self.arch or plan.arch,
        )


def _waiver(text: str) -> tuple[str, str]:
    name, equals, reason = text.partition("=")
    if not reason.isprintable() or len(reason) > 500:
        raise UsageError(
            "waiver.reason-unprintable",
            f"the reason of --allow {shown(name)} is not one line of at most 500 printable "
            "characters",
            "give a shorter reason, without line breaks",
        )
    if not (name and equals and reason.strip()):
        raise UsageError(
            "waiver.reason-missing",
            f"--allow '{shown(text)}' has no reason",
            f"write --allow '{shown(name) or 'ID'}=why it is fine here'",
        )
    return name, reason.strip()


@dataclass(frozen=True)
class EnvironmentOptions(PlanOptions):
    """Of a published environment, or of what a plan is made."""

    recipe: EnvironmentOrRecipe


@dataclass(frozen=True)
class WhyOptions(EnvironmentOptions):
    """Of a published environment, or of what a plan without a profile is made."""

    profile: str | None = None
    root: RootOption = None
