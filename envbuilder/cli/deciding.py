"""The commands that only decide: plan, why, why-not. No network, nothing written."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import command
from .options import (
    Allow,
    ArchOption,
    Partition,
    ProfileOption,
    RecipeName,
    SiteOption,
    Verbose,
)
from .session import Session

app = typer.Typer()


@command(app, example="plan horovod-nccl --site taurus-ml --arch ppc64le", recipes=True)
def plan(
    session: Session,
    recipe: RecipeName,
    site: SiteOption = None,
    arch: ArchOption = None,
    partition: Partition = None,
    profile: ProfileOption = None,
    allow: Allow = None,
    verbose: Verbose = False,
) -> None:
    """Show what would be built: components, modules, steps. No network, nothing written."""
    from ..commands.load import choice, load
    from ..commands.load import plan as run
    from ..views import plan as views

    chosen = choice(recipe, site, arch, partition, allow, profile)
    value = run(load(chosen, session.context), verbose=verbose)
    session.report.show(value, views.plan(value, verbose))


@command(app, example="why openmpi horovod-nccl --site taurus-ml", recipes=True)
def why(
    session: Session,
    component: Annotated[str, typer.Argument(help="A component of the stack, such as openmpi.")],
    recipe: RecipeName,
    site: SiteOption = None,
    arch: ArchOption = None,
    partition: Partition = None,
    allow: Allow = None,
) -> None:
    """Say why a component of the plan is what it is, and not something newer."""
    from ..commands.load import choice
    from ..commands.why import why as run
    from ..views import plan as views

    chosen = choice(recipe, site, arch, partition, allow)
    value = run(chosen, component, session.context)
    session.report.show(value, views.why(value))


@command(
    app, "why-not", example="why-not openmpi==3.1.3 horovod-nccl --site taurus-ml", recipes=True
)
def why_not(
    session: Session,
    asked: Annotated[str, typer.Argument(metavar="COMPONENT==VERSION", help="What is not there.")],
    recipe: RecipeName,
    site: SiteOption = None,
    arch: ArchOption = None,
    partition: Partition = None,
    allow: Allow = None,
) -> None:
    """Say what stands against a version of a component."""
    from ..commands.load import choice
    from ..commands.why import why_not as run
    from ..views import plan as views

    chosen = choice(recipe, site, arch, partition, allow)
    value = run(chosen, asked, session.context)
    session.report.show(value, views.why_not(value))
