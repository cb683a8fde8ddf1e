"""The commands over a plan: plan, why, why-not."""

from __future__ import annotations

from typing import Annotated

import typer

from ..workflow.plan_options import PlanOptions, WhyOptions
from .command import Group, command
from .session import Session

verbs = Group()
GROUPS = (verbs,)


@command(verbs, example="plan horovod-nccl --site taurus-ml --arch ppc64le")
def plan(
    session: Session,
    choice: PlanOptions,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show all details.")] = False,
) -> None:
    """Show what create would build: components, modules, steps. No network, writes nothing."""
    from ..views import plan as views
    from ..workflow import load as run

    inputs = run.load(choice, session.context)
    value, _ = run.plan_with_channels(inputs, session.context, verbose=verbose)
    session.report.show(value, views.plan(value, verbose))


@command(verbs, example="why openmpi horovod-nccl --site taurus-ml")
def why(
    session: Session,
    component: Annotated[str, typer.Argument(help="A component of the stack, such as openmpi.")],
    choice: WhyOptions,
) -> None:
    """Explain why a component has its version and origin, and not a newer version."""
    from ..commands.why import why as run
    from ..views import plan as views

    value = run(choice, component, session.context)
    session.report.show(value, views.why(value))


@command(verbs, "why-not", example="why-not openmpi==3.1.3 horovod-nccl --site taurus-ml")
def why_not(
    session: Session,
    asked: Annotated[
        str,
        typer.Argument(metavar="COMPONENT==VERSION", help="The version that was not chosen."),
    ],
    choice: WhyOptions,
) -> None:
    """Explain why a version of a component was not chosen."""
    from ..commands.why import why_not as run
    from ..views import plan as views

    value = run(choice, asked, session.context)
    session.report.show(value, views.why_not(value))
