"""conda channels for the verbs that plan and lock: what they hold, and what is taken of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..conda.cache import ChannelCache
from ..conda.contents import Cached, read_channels
from ..conda.engine import Engine
from ..conda.solve import conda_pins, solve
from ..knowledge.artifacts import CondaArchive
from ..knowledge.channels import VirtualPackage
from ..knowledge.rows import Knowledge
from ..locking.target import OLDEST_GLIBC
from ..machine.host import LocalMachine, cache_folder
from ..model.plan import Plan
from ..model.site import glibc_of
from .context import Context

if TYPE_CHECKING:
    from .load import PlanInputs, Reading


def with_channels(inputs: PlanInputs, context: Context, reading: Reading) -> Knowledge:
    """Return what is known, with what the recipe's channels hold in place of what is recorded.

    *reading*: "to plan" leaves out channels in the network whose contents are recorded; "to lock
    anew" reads again what was read within the last hour.
    Raises BuildError for a channel that cannot be read, MissingToolError without what reads it.
    """
    knowledge, copies = inputs.knowledge.value, inputs.site.channels
    to_read = {
        name: knowledge.channels[name]
        for name in inputs.recipe.value.channels
        if reading != "to plan"
        or name in copies
        or not knowledge.channels[name].packages
        or knowledge.channels[name].url.startswith("file:")
    }
    if not to_read:
        return knowledge
    cache, reporter = ChannelCache(_folder(context), context.clock()), context.reporter
    cached = Cached(cache, reporter.say, reporter.warn, anew=reading == "to lock anew")
    with reporter.working(f"read the conda channels {', '.join(to_read)}"):
        read = read_channels(
            to_read,
            inputs.arch,
            knowledge.components,
            engine(context),
            cached,
            virtual_packages(inputs),
            copies,
        )
    if reading == "to plan":
        close_engine(context)
    return knowledge.model_copy(update={"channels": {**knowledge.channels, **read}})


def solved(planned: Plan, inputs: PlanInputs, context: Context) -> tuple[CondaArchive, ...]:
    """Return the conda packages of a plan; none of one without any. See ``channels.solve``."""
    if not conda_pins(planned):
        return ()
    components = inputs.knowledge.value.components
    packages = solve(planned, virtual_packages(inputs), components, engine(context))
    close_engine(context)
    return packages


def virtual_packages(inputs: PlanInputs) -> tuple[VirtualPackage, ...]:
    """Return what the target has, as packages ask for it: as the site states it."""
    own, site = inputs.chosen.facts, inputs.site.facts
    cuda = own.driver_cuda or site.driver_cuda
    return (
        ("__unix", "0", "0"),
        ("__linux", own.kernel or site.kernel or "0", "0"),
        ("__glibc", glibc_of(inputs.site, own, inputs.snapshot) or OLDEST_GLIBC, "0"),
        ("__archspec", "1", inputs.arch),
        *([("__cuda", cuda, "0")] if cuda else []),
    )


def engine(context: Context) -> Engine:
    """Return what reads channels and solves, with its cache where the user keeps caches.

    What it read it keeps until ``close_engine``.
    """
    folder = _folder(context) / "repodata"
    if folder not in context.engines:
        context.engines[folder] = Engine(context.environ, folder)
    return context.engines[folder]


def close_engine(context: Context) -> None:
    """Let what reads channels forget them: a large one fills a gigabyte."""
    for each in context.engines.values():
        each.close()


def _folder(context: Context) -> Path:
    folder = cache_folder(LocalMachine(context.environ)) or context.cwd / ".envbuild-cache"
    return folder / "conda"
