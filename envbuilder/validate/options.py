"""What a user may say to ``validate``: one frozen value each, whose fields are the options."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from ..workflow.plan_options import Partition, recipe_names


@dataclass(frozen=True)
class ComparisonOptions:
    """What an environment is compared with; None: not."""

    site: Annotated[
        str | None,
        typer.Option(help="Check for this site (name or file) instead of this machine."),
    ] = None
    partition: Partition = None
    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="RECIPE",
            help="Report where the environment differs from this recipe.",
            autocompletion=recipe_names,
        ),
    ] = None


@dataclass(frozen=True)
class ReportOptions:
    """How findings are told."""

    everything: Annotated[
        bool, typer.Option("--all", help="Show all findings with all details.")
    ] = False
    form: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORM",
            help="junit or sarif: for continuous integration; baseline: a file for --baseline "
            "with these findings, to which you add reasons.",
        ),
    ] = None


@dataclass(frozen=True)
class ProvingOptions:
    """Whether the environment is run, on how many ranks, what is kept of it."""

    run: Annotated[
        bool,
        typer.Option(
            "--run",
            help="Also import the packages with the environment's Python and start ranks that "
            "communicate. This runs code of the environment.",
        ),
    ] = False
    ranks: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=2, max=4096, help="With --run: number of ranks (default: 2)."
        ),
    ] = None
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="With --run: folder for scripts, logs and records of the ranks."
        ),
    ] = None


@dataclass(frozen=True)
class ValidateOptions:
    """What is looked at in an environment, and what of it is accepted."""

    loaded: Annotated[
        bool,
        typer.Option(
            "--loaded",
            help="Check the modules that are loaded in this shell and the Python on PATH.",
        ),
    ] = False
    verify: Annotated[
        bool, typer.Option("--verify", help="Hash every file that a package recorded.")
    ] = False
    inside: Annotated[
        str | None,
        typer.Option(
            metavar="/PATH", help="For an image with several environments: the path of one."
        ),
    ] = None
    compared: ComparisonOptions = field(default_factory=ComparisonOptions)
    proving: ProvingOptions = field(default_factory=ProvingOptions)
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File of accepted findings, each with a reason."),
    ] = None


@dataclass(frozen=True)
class RemovedOptions:
    """Options that no longer exist; ``validate`` names what replaces them."""

    fix: Annotated[bool, typer.Option("--fix", hidden=True)] = False
    watch_list: Annotated[str | None, typer.Option(metavar="FILE", hidden=True)] = None
