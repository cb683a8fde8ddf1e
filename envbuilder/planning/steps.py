"""The steps of a build, as they follow from its plan."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.plan import Plan, Step


def steps_of(plan: Plan, own: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps that build an environment of *plan*. *own*: its backend's, of the prefix."""
    steps = [Step(id="modules", title="load the site's modules and compare")]
    steps = [*(steps if plan.modules.loads else ()), *own]
    steps += [
        Step(id="fetch", title="fetch the locked packages"),
        Step(id="install", title="install them"),
        Step(id="tools", title="unpack the build tools"),
    ]
    for build in plan.builds:
        title = f"build {build.component} {build.version}"
        steps.append(Step(id=f"build-{build.component}", title=title))
    if plan.builds or plan.verified:
        whose = "were built" if plan.builds else "the module brings"
        steps.append(Step(id="verify", title=f"verify the libraries that {whose}"))
    steps.append(Step(id="runtime", title="build the collective runtime"))
    if plan.runtime.aliases:
        title = f"install its aliases: {', '.join(plan.runtime.aliases)}"
        steps.append(Step(id="alias", title=title))
    return (*steps, Step(id="check", title="import every package and compare"))
