"""conda channels for the verbs that plan and lock: what they hold, and what is taken of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..channels.contents import read_channels
from ..channels.engine import Engine
from ..channels.solve import VirtualPackage, conda_pins, solve
from ..host import Host, cache_folder
from ..locking.target import OLDEST_GLIBC
from ..model.artifact import CondaArchive
from ..model.knowledge import Knowledge
from ..model.plan import Plan
from ..model.site import glibc_of
from .context import Context

if TYPE_CHECKING:
    from .load import PlanInputs


def with_channels(inputs: PlanInputs, context: Context) -> Knowledge:
    """Return what is known, with what the recipe's channels hold in place of what is recorded.

    A channel is read where it is a folder, or nothing of it is recorded; what a channel in the
    network holds is as recorded. Raises BuildError for one that cannot be read, MissingToolError
    without what reads it.
    """
    knowledge, copies = inputs.knowledge.value, inputs.site.channels
    if not inputs.backend.TRAITS.channels:
        return knowledge
    wanted = {
        name: channel.model_copy(update={"url": copies.get(name, channel.url)})
        for name, channel in knowledge.channels.items()
        if name in inputs.recipe.value.channels
    }
    to_read = {
        name: wanted[name]
        for name in inputs.recipe.value.channels
        if wanted[name].url.startswith("file:") or name in copies or not wanted[name].packages
    }
    if not to_read:
        return knowledge
    with context.reporter.working(f"read the conda channels {', '.join(to_read)}"):
        read = read_channels(to_read, inputs.arch, knowledge.components, engine(context))
    return knowledge.model_copy(update={"channels": {**knowledge.channels, **read}})


def solved(planned: Plan, inputs: PlanInputs, context: Context) -> tuple[CondaArchive, ...]:
    """Return the conda packages of a plan; none of one without any. See ``channels.solve``."""
    if not conda_pins(planned):
        return ()
    components = inputs.knowledge.value.components
    return solve(planned, virtual_packages(planned, inputs), components, engine(context))


def virtual_packages(planned: Plan, inputs: PlanInputs) -> tuple[VirtualPackage, ...]:
    """Return what the target has, as packages ask for it: as the site states it."""
    stated = glibc_of(inputs.site, inputs.chosen.facts, inputs.snapshot)
    glibc = stated or OLDEST_GLIBC
    return (
        ("__unix", "0", "0"),
        ("__linux", inputs.chosen.facts.kernel or inputs.site.facts.kernel or "0", "0"),
        ("__glibc", glibc, "0"),
        ("__archspec", "1", planned.arch),
    )


def engine(context: Context) -> Engine:
    """Return what reads channels and solves, with its cache where the user keeps caches."""
    folder = cache_folder(Host(context.environ)) or context.cwd / ".envbuild-cache"
    return Engine(context.environ, folder / "conda")
