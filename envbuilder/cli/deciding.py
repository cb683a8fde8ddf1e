"""The commands that only decide: plan, why, why-not. No network, nothing written."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import (
    Allow,
    ArchOption,
    Json,
    Partition,
    ProfileOption,
    RecipeName,
    Recipes,
    SiteOption,
    Verbose,
)
from .session import open_session, run_verb

app = typer.Typer()


@app.command(epilog="Example: envbuild plan horovod-nccl --site taurus-ml --arch ppc64le")
def plan(
    recipe: RecipeName,
    site: SiteOption = None,
    arch: ArchOption = None,
    partition: Partition = None,
    profile: ProfileOption = None,
    allow: Allow = None,
    recipes: Recipes = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Show what would be built: components, modules, steps. No network, nothing written."""
    session = open_session(as_json, recipes)

    def verb() -> None:
        from .. import views_plan
        from ..commands.load import choice, load
        from ..commands.load import plan as run

        chosen = choice(recipe, site, arch, partition, allow, profile)
        value = run(load(chosen, session.context), verbose=verbose)
        session.report.show(value, views_plan.plan(value, verbose))

    run_verb(session, verb)


@app.command(epilog="Example: envbuild why openmpi horovod-nccl --site taurus-ml")
def why(
    component: Annotated[str, typer.Argument(help="A component of the stack, such as openmpi.")],
    recipe: RecipeName,
    site: SiteOption = None,
    arch: ArchOption = None,
    partition: Partition = None,
    allow: Allow = None,
    recipes: Recipes = None,
    as_json: Json = False,
) -> None:
    """Say why a component of the plan is what it is, and not something newer."""
    session = open_session(as_json, recipes)

    def verb() -> None:
        from .. import views_plan
        from ..commands.load import choice
        from ..commands.why import why as run

        chosen = choice(recipe, site, arch, partition, allow)
        value = run(chosen, component, session.context)
        session.report.show(value, views_plan.why(value))

    run_verb(session, verb)


@app.command(
    "why-not", epilog="Example: envbuild why-not openmpi==3.1.3 horovod-nccl --site taurus-ml"
)
def why_not(
    asked: Annotated[str, typer.Argument(metavar="COMPONENT==VERSION", help="What is not there.")],
    recipe: RecipeName,
    site: SiteOption = None,
    arch: ArchOption = None,
    partition: Partition = None,
    allow: Allow = None,
    recipes: Recipes = None,
    as_json: Json = False,
) -> None:
    """Say what stands against a version of a component."""
    session = open_session(as_json, recipes)

    def verb() -> None:
        from .. import views_plan
        from ..commands.load import choice
        from ..commands.why import why_not as run

        chosen = choice(recipe, site, arch, partition, allow)
        value = run(chosen, asked, session.context)
        session.report.show(value, views_plan.why_not(value))

    run_verb(session, verb)
