"""load -> resolve -> plan: what every verb that needs a plan begins with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .. import data
from ..build import sources
from ..build.backends import Backend, backend, prefix_parts
from ..documents.knowledge_cache import LoadedKnowledge
from ..documents.library import find
from ..documents.load import (
    LoadedDocument,
    check_is_there,
    for_arch,
    load_recipe,
    profile_of,
    variant,
)
from ..documents.patches import patches_of
from ..documents.site_choice import (
    ChosenSite,
    choose_arch,
    choose_site,
    settle_channels,
    with_partition,
)
from ..errors import BuildError, MissingToolError, NoSolutionError, UsageError
from ..knowledge import matching
from ..knowledge.ageing import MAX_DAYS, days_old
from ..knowledge.rows import Knowledge
from ..knowledge.terms import Arch, Profile
from ..launching.launchers import own_launcher
from ..model.backend import PrefixParts
from ..model.plan import Input, Plan, RuntimePlan, SiteFinding
from ..model.recipe import Recipe
from ..model.resolution import Resolution
from ..model.site import Site, Snapshot
from ..planning import PlanRequest, make_plan
from ..resolve.flag_table import TABLE_ROWS
from ..resolve.implied_requirements import build_requirements, runtime_requirements
from ..resolve.name_table import NAME_ROWS
from ..resolve.relevant_components import relevant_components
from ..resolve.request import Request
from ..resolve.resolver import resolve
from ..resolve.wheel_table import WHEEL_ROWS
from ..runtimes import BUNDLED, RUNTIMES
from ..text import unknown
from .context import Context
from .entries import api_launcher, entries
from .plan_options import PlanOptions
from .site_contents import (
    base_site,
    held_by,
    site_search,
    snapshot_of,
    with_visible_modules,
)

if TYPE_CHECKING:
    from ..model.base_image import BaseImage, BaseSource


Reading = Literal["to plan", "to lock", "to lock anew"]
"""What conda channels are read for: ``with_channels`` states what that means."""


@dataclass(frozen=True)
class PlanInputs:
    """Everything read for a plan, before anything is decided.

    ``folders``: those that were searched. ``base``: what an image's base was unpacked from.
    ``of_site``: what is not known about the site as a whole. ``feed``: the version of the feed of
    knowledge, None for none.
    """

    recipe: LoadedDocument[Recipe]
    chosen: ChosenSite
    arch: Arch
    knowledge: LoadedKnowledge
    snapshot: Snapshot
    snapshot_sha256: str
    runtime_source: Path
    folders: tuple[Path, ...] = (data.RECIPES,)
    profile: Profile | None = None
    base: BaseSource | None = None
    of_site: tuple[SiteFinding, ...] = ()
    feed: str | None = None

    @property
    def site(self) -> Site:
        return self.chosen.site

    @property
    def backend(self) -> Backend:
        return backend(self.recipe.value.backend)

    @cached_property
    def runtime(self) -> RuntimePlan:
        """The runtime that comes with every environment."""
        package = self.recipe.value.runtime.package
        return RuntimePlan(
            package=BUNDLED,
            version=sources.python_version(self.runtime_source, RUNTIMES[BUNDLED].TRAITS.package),
            source_sha256=sources.tree_sha256(self.runtime_source),
            bundled=self.runtime_source == data.RUNTIME,
            aliases=self.recipe.value.runtime.aliases,
            beside=package if RUNTIMES[package].TRAITS.holder else None,
        )

    def inputs(self) -> tuple[Input, ...]:
        """Return what a plan made now depends on, by which a stale lock is told."""
        site, base = self.site.name, self.base
        return (
            Input(kind="recipe", name=self.recipe.value.name, sha256=self.recipe.sha256),
            Input(kind="site", name=site, sha256=self.chosen.sha256),
            Input(kind="snapshot", name=site, sha256=self.snapshot_sha256),
            Input(
                kind="knowledge",
                name=f"knowledge, feed {self.feed}" if self.feed else "knowledge",
                sha256=self.knowledge.sha256,
            ),
            Input(kind="runtime", name=self.runtime.package, sha256=self.runtime.source_sha256),
            *([Input(kind="base", name=base.name, sha256=base.sha256)] if base else []),
        )

    def prefix_of(self, plan: Plan) -> PrefixParts:
        """Return how the prefix of a plan is made."""
        return prefix_parts(plan, self.knowledge.value.components)


@dataclass(frozen=True)
class Planned:
    """A plan and what it was made from.

    ``offered``: the knowledge, with the contents of the recipe's conda channels.
    """

    inputs: PlanInputs
    offered: Knowledge
    plan: Plan


def _note_age(knowledge: Knowledge, context: Context) -> None:
    if context.feed:
        context.reporter.say(f"note: with the feed of knowledge {context.feed[0]}")
    days = days_old(knowledge, context.clock().date())
    if days > MAX_DAYS:
        context.reporter.say(
            f"note: the knowledge is of {knowledge.recorded}, {days} days ago: later releases and "
            "advisories are missing; envbuild knowledge update installs a feed"
        )


def load(choice: PlanOptions, context: Context, base: BaseImage | None = None) -> PlanInputs:
    """Read and check the documents, choose the site, look at what it holds.

    *base*: what an image begins with, which then is the site.
    """
    profile = profile_of(choice.profile)
    knowledge = context.knowledge
    recipe = load_recipe(find("recipe", choice.recipe, context.folders), knowledge, entries())
    if base:
        chosen = base_site(base)
    else:
        chosen = choose_site(choice.site, site_search(context), recipe.value, choice.arch)
        chosen = with_partition(chosen, choice.partition)
    context.reporter.say(chosen.describe())
    arch = choose_arch(choice.arch, recipe, chosen)
    chosen, of_site = (chosen, ()) if base else with_visible_modules(chosen, context)
    for each in of_site:
        if each.kind != "not-described":  # the line above says that
            context.reporter.warn(each.message())
    recipe = for_arch(recipe, arch)
    if profile:
        runtime = RUNTIMES[recipe.value.runtime.package].TRAITS
        recipe = variant(recipe, profile, backend(recipe.value.backend).TRAITS, runtime)
    traits = backend(recipe.value.backend).TRAITS
    useful = relevant_components(recipe.value, traits, knowledge, RUNTIMES)
    snapshot, digest, notes = held_by(base) if base else snapshot_of(chosen, context, useful)
    for note in notes:
        context.reporter.say(f"note: {note}")
    if profile:
        check_is_there(profile, chosen.site, snapshot, knowledge)
    recipe = _waiving(recipe, choice.waivers(), knowledge)
    _note_age(knowledge, context)
    for row in matching.rows(knowledge) if recipe.value.allow else ():
        if row.replaced_by and row.id in recipe.value.allow:
            context.reporter.say(f"note: {row.id} is now {row.replaced_by}, for the same releases")
    loaded = context.loaded_knowledge
    if recipe.value.channels:
        recipe, chosen, loaded = settle_channels(recipe, chosen, loaded, context.reporter.say)
    source = recipe.value.runtime.source
    return PlanInputs(
        recipe=recipe,
        chosen=chosen,
        arch=arch,
        knowledge=loaded,
        snapshot=snapshot,
        snapshot_sha256=digest,
        feed=context.feed[0] if context.feed else None,
        runtime_source=(recipe.path.parent / source).resolve() if source else data.RUNTIME,
        folders=context.folders,
        profile=profile,
        base=base.source if base else None,
        of_site=of_site,
    )


def plan_recipe(inputs: PlanInputs, context: Context, reading: Reading = "to plan") -> Planned:
    """Read the recipe's conda channels, which may use the network, and plan. Errors as below."""
    return _planned(inputs, *plan_with_channels(inputs, context, reading), context)


def plan_with_channels(
    inputs: PlanInputs, context: Context, reading: Reading = "to plan", *, verbose: bool = False
) -> tuple[Plan, Knowledge]:
    """Return the plan, and the knowledge with the contents of the recipe's channels.

    What is recorded of a channel may be an excerpt: without a solution, the channels are read.
    Raises NoSolutionError, or UsageError if the inputs contradict each other.
    """
    offered = read_offered(inputs, context, reading)
    try:
        return plan(inputs, offered, verbose=verbose), offered
    except NoSolutionError:
        records = _records(inputs)
        if reading != "to plan" or not records:
            raise
        whole = _read_or_warn(inputs, context, records)
        if whole is None:
            raise
    return plan(inputs, whole, verbose=verbose), whole


def _read_or_warn(inputs: PlanInputs, context: Context, records: str) -> Knowledge | None:
    """Return what the channels contain; None, and a warning, if they cannot be read."""
    try:
        return read_offered(inputs, context, "to lock")
    except (BuildError, MissingToolError) as error:
        context.reporter.warn(f"only what is recorded of {records} was read: {error}")
        return None


def _records(inputs: PlanInputs) -> str:
    """Return the recipe's channels of which a plan reads the record alone; those withdrawn have no
    other contents.
    """
    channels = inputs.knowledge.value.channels
    chosen = [(name, channels[name]) for name in inputs.recipe.value.channels]
    if any(channel.withdrawal for _, channel in chosen):
        return ""
    recorded = [f"{name} ({channel.recorded})" for name, channel in chosen if channel.packages]
    return ", ".join(recorded)


def plan_offered(inputs: PlanInputs, offered: Knowledge, context: Context) -> Planned:
    """Plan, and warn of each component that the plan does not take from the site's modules.

    Raises NoSolutionError, or UsageError if the inputs contradict each other.
    """
    return _planned(inputs, plan(inputs, offered), offered, context)


def _planned(inputs: PlanInputs, made: Plan, offered: Knowledge, context: Context) -> Planned:
    for each in made.site_findings:
        if each not in inputs.of_site:
            context.reporter.warn(each.message())
    return Planned(inputs, offered, made)


def read_offered(inputs: PlanInputs, context: Context, reading: Reading = "to plan") -> Knowledge:
    """Return the knowledge with the contents of the recipe's channels; may use the network."""
    if not inputs.backend.TRAITS.channels:
        return inputs.knowledge.value
    # lazy import: 5 ms, and most recipes have no channels
    from .channels import with_channels

    return with_channels(inputs, context, reading)


def _waiving(
    recipe: LoadedDocument[Recipe], waivers: dict[str, str], knowledge: Knowledge
) -> LoadedDocument[Recipe]:
    """Return the recipe with the waivers of the command line beside its own.

    Raises UsageError for a waiver of what is no row: a slip would otherwise waive nothing.
    """
    allow = {**recipe.value.allow, **waivers}
    ids = {row.id for row in matching.rows(knowledge)}
    for name in allow:
        if name not in ids and not name.startswith((*TABLE_ROWS, *NAME_ROWS, *WHEEL_ROWS)):
            raise UsageError(
                "advisory.unknown",
                unknown("advisory to allow", name, ids),
                "envbuild advisories list shows all advisories",
                place=recipe.place("allow", name),
            )
    return replace(recipe, value=recipe.value.model_copy(update={"allow": allow}))


def plan(
    loaded: PlanInputs,
    offered: Knowledge,
    refused: frozenset[tuple[str, str]] = frozenset(),
    verbose: bool = False,
) -> Plan:
    """Resolve and plan; pure from here on, *refused* holds the pins that the index lacks."""
    resolution = resolve(request(loaded, offered, refused), verbose)
    found = (*loaded.of_site, *resolution.site_findings)
    return plan_of(loaded, resolution._replace(site_findings=found), offered)


def plan_of(loaded: PlanInputs, resolution: Resolution, offered: Knowledge | None = None) -> Plan:
    """Return the plan of components that are decided. *offered*: with the channels as read."""
    return make_plan(
        PlanRequest(
            recipe=loaded.recipe.value,
            backend=loaded.backend.TRAITS,
            knowledge=loaded.knowledge.value,
            site=loaded.site,
            arch=loaded.arch,
            resolution=resolution,
            runtime=loaded.runtime,
            inputs=loaded.inputs(),
            own_launcher=own_launcher,
            api_launcher=api_launcher,
            runtimes=RUNTIMES,
            patches=patches_of(resolution.builds, loaded.folders),
            profile=loaded.profile,
            offered=offered,
            partition=loaded.chosen.partition_name,
        )
    )


def request(
    loaded: PlanInputs, offered: Knowledge, refused: frozenset[tuple[str, str]] = frozenset()
) -> Request:
    """Return what the resolver is asked."""
    recipe, knowledge, place = loaded.recipe.value, offered, loaded.recipe.place
    flags = recipe.runtime.flags
    return Request(
        recipe=recipe,
        backend=loaded.backend.TRAITS,
        runtime=RUNTIMES[recipe.runtime.package],
        site=loaded.site,
        arch=loaded.arch,
        snapshot=loaded.snapshot,
        knowledge=knowledge,
        implied=runtime_requirements(recipe, knowledge, RUNTIMES),
        build_only=build_requirements(recipe, knowledge, loaded.snapshot, RUNTIMES),
        facts=loaded.chosen.facts,
        preload=loaded.chosen.preload,
        places={
            "stack": place("stack"),
            "runtime": place("runtime", "version"),
            **{name: place("stack", name) for name in recipe.stack},
            **{f"flags.{name}": place("runtime", "flags", name) for name in flags},
        },
        refused=refused,
    )
