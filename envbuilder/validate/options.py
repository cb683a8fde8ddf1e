"""What a user may say to ``validate``: one frozen value each, whose fields are the options."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from ..workflow.options import Partition, recipe_names


@dataclass(frozen=True)
class ComparisonOptions:
    """What an environment is compared with; None: not."""

    site: Annotated[
        str | None,
        typer.Option(help="Say whether it would run there: a site's name or file."),
    ] = None
    partition: Partition = None
    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="RECIPE",
            help="Say what is not as this recipe asks.",
            autocompletion=recipe_names,
        ),
    ] = None


@dataclass(frozen=True)
class ReportOptions:
    """How findings are told."""

    everything: Annotated[
        bool, typer.Option("--all", help="Show all findings and all that is known of each.")
    ] = False
    form: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORM",
            help="junit, sarif: for a CI; baseline: a --baseline of what is found, with the "
            "reasons to be written.",
        ),
    ] = None


@dataclass(frozen=True)
class ProvingOptions:
    """Whether the environment is run, on how many ranks, what is kept of it."""

    run: Annotated[
        bool,
        typer.Option(
            "--run",
            help="Also import its packages, by its own Python, and start ranks that talk. This "
            "runs them.",
        ),
    ] = False
    ranks: Annotated[
        int | None,
        typer.Option(metavar="N", min=2, max=4096, help="With --run: so many ranks. Else 2."),
    ] = None
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="With --run: keep scripts, logs and records of the ranks there."
        ),
    ] = None


@dataclass(frozen=True)
class ValidateOptions:
    """What is looked at in an environment, and what of it is accepted."""

    loaded: Annotated[
        bool,
        typer.Option(
            "--loaded",
            help="Look at the modules that are loaded in this shell, and at the Python that it "
            "runs.",
        ),
    ] = False
    verify: Annotated[
        bool, typer.Option("--verify", help="Hash every file that a package recorded.")
    ] = False
    inside: Annotated[
        str | None,
        typer.Option(metavar="/PATH", help="Of an image: where in it, if it has several."),
    ] = None
    compared: ComparisonOptions = field(default_factory=ComparisonOptions)
    proving: ProvingOptions = field(default_factory=ProvingOptions)
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Findings that are accepted, each with a reason."),
    ] = None


@dataclass(frozen=True)
class RemovedOptions:
    """Options that no longer exist; ``validate`` names what replaces them."""

    fix: Annotated[bool, typer.Option("--fix", hidden=True)] = False
    watch_list: Annotated[str | None, typer.Option(metavar="FILE", hidden=True)] = None
