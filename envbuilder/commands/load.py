"""load -> resolve -> plan: what every verb that needs a plan begins with."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .. import data, sources
from ..documents import (
    Loaded,
    LoadedKnowledge,
    find,
    load_knowledge,
    load_recipe,
    search_path,
)
from ..errors import UsageError
from ..model import matching
from ..model.base import canonical_json, sha256_text
from ..model.knowledge import Knowledge
from ..model.plan import Input, Plan, RuntimePlan
from ..model.profiles import base_name
from ..model.recipe import Arch, Profile, Recipe
from ..model.site import Site, Snapshot
from ..planning import PlanRequest, make_plan
from ..resolve import TABLE_ROWS, Request, Wanted, resolve
from ..text import shown, unknown
from .choose import ChosenSite, choose_arch, choose_site, with_partition
from .context import Context
from .needs import BUNDLED, needed, needed_to_build
from .patches import patches_of
from .profile import check_is_there, profile_of, variant
from .usable import usable

RUNTIME_PACKAGE = "distributed_dl_training"


@dataclass(frozen=True)
class Choice:
    """What a user chose on the command line; None: not said. ``allow``: (id, reason)."""

    recipe: str
    site: str | None = None
    arch: str | None = None
    partition: str | None = None
    allow: tuple[tuple[str, str], ...] = ()
    profile: Profile | None = None

    def as_locked(self, plan: Plan) -> Choice:
        """Return the choice with what was not said as it was in *plan*."""
        return replace(
            self,
            recipe=self.recipe or base_name(plan),
            profile=self.profile or plan.profile,
            site=self.site or plan.site,
            arch=self.arch or plan.arch,
        )


def choice(
    recipe: str,
    site: str | None = None,
    arch: str | None = None,
    partition: str | None = None,
    allow: Sequence[str] | None = None,
    profile: str | None = None,
) -> Choice:
    """Return the choice as it was said.

    Raises UsageError for an ``--allow`` that gives no reason, and for an unknown profile.
    """
    waivers = []
    for each in allow or ():
        name, equals, reason = each.partition("=")
        if not reason.isprintable() or len(reason) > 500:
            raise UsageError(f"the reason for --allow {shown(name)} must be one short line of text")
        if not (name and equals and reason.strip()):
            raise UsageError(
                f"'{shown(each)}' gives no reason",
                f"write --allow '{shown(name) or 'ID'}=why it is fine here'",
            )
        waivers.append((name, reason.strip()))
    return Choice(recipe, site, arch, partition, tuple(waivers), profile_of(profile))


@dataclass(frozen=True)
class Material:
    """Everything read for a plan, before anything is decided.

    ``notes``: what is odd about the snapshot, in words. ``folders``: those that were searched.
    """

    recipe: Loaded[Recipe]
    chosen: ChosenSite
    arch: Arch
    knowledge: LoadedKnowledge
    snapshot: Snapshot
    snapshot_sha256: str
    runtime_source: Path
    notes: tuple[str, ...] = ()
    folders: tuple[Path, ...] = (data.RECIPES,)
    profile: Profile | None = None

    @property
    def site(self) -> Site:
        return self.chosen.site


def load(choice: Choice, context: Context) -> Material:
    """Read and check the documents, choose the site, look at what it holds."""
    folders, knowledge = folders_and_knowledge(context)
    recipe = load_recipe(find("recipe", choice.recipe, folders), knowledge.value)
    if choice.profile:
        recipe = variant(recipe, choice.profile)
    chosen = choose_site(choice.site, context, folders, knowledge.value, recipe.value, choice.arch)
    chosen = with_partition(chosen, choice.partition)
    context.tell.say(chosen.told())
    arch = choose_arch(choice.arch, recipe, chosen)
    useful = usable(recipe.value, knowledge.value)
    found, digest, notes = snapshot_of(chosen, context, useful)
    for note in notes:
        context.tell.say(f"note: {note}")
    if choice.profile:
        check_is_there(choice.profile, chosen.site, found, knowledge.value)
    recipe = _allowing(recipe, choice.allow)
    _waivers_are_known(recipe, knowledge.value)
    return Material(
        recipe=recipe,
        chosen=chosen,
        arch=arch,
        knowledge=knowledge,
        snapshot=found,
        snapshot_sha256=digest,
        runtime_source=_runtime_source(recipe),
        notes=notes,
        folders=folders,
        profile=choice.profile,
    )


def _allowing(recipe: Loaded[Recipe], allow: tuple[tuple[str, str], ...]) -> Loaded[Recipe]:
    """Return the recipe with the waivers of the command line beside its own."""
    if not allow:
        return recipe
    waivers = {**recipe.value.allow, **dict(allow)}
    return replace(recipe, value=recipe.value.model_copy(update={"allow": waivers}))


def _waivers_are_known(recipe: Loaded[Recipe], knowledge: Knowledge) -> None:
    """Raise UsageError for a waiver of what is no row: a slip would otherwise waive nothing."""
    known = {row.id for row in matching.rows(knowledge)}
    for name in recipe.value.allow:
        if name not in known and not name.startswith(TABLE_ROWS):
            raise UsageError(
                unknown("advisory to allow", name, known),
                "envbuild advisories list shows all of them",
                place=recipe.place("allow", name),
            )


def snapshot_of(
    chosen: ChosenSite, context: Context, components: frozenset[str]
) -> tuple[Snapshot, str, tuple[str, ...]]:
    """Return what the site holds, its hash, and what is odd; of this machine only *components*.

    From its snapshot's file, else from looking at this machine. The hash is over the file: what the
    site states over it is in the hash of the site.
    """
    site = chosen.site
    if site.snapshot is None or chosen.path is None:
        from ..detect import snapshot

        found = snapshot(site, context.environ, components=components)
        return found.snapshot, sha256_text(canonical_json(found.snapshot.plain())), ()
    from ..detect.merge import merged
    from ..detect.module_trees import age_note
    from ..documents.snapshots import load_snapshot

    file = chosen.path.parent / site.snapshot
    recorded = load_snapshot(file)
    modules, notes = merged(site, recorded)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    age = age_note(recorded, context.clock().date())
    return (
        recorded.model_copy(update={"modules": modules}),
        digest,
        notes if age is None else (age, *notes),
    )


def plan(
    loaded: Material,
    refused: frozenset[tuple[str, str]] = frozenset(),
    verbose: bool = False,
) -> Plan:
    """Resolve and plan; pure from here on, *refused* holds the pins that the index lacks."""
    runtime = runtime_plan(loaded)
    found = resolve(request(loaded, refused), verbose)
    return make_plan(
        PlanRequest(
            recipe=loaded.recipe.value,
            site=loaded.site,
            arch=loaded.arch,
            found=found,
            runtime=runtime,
            inputs=inputs(loaded, runtime),
            patches=patches_of(found.builds, loaded.folders),
            channels=loaded.knowledge.value.channels,
            profile=loaded.profile,
        )
    )


def runtime_plan(loaded: Material) -> RuntimePlan:
    """Return the runtime that comes with every environment."""
    package = loaded.recipe.value.runtime.package
    return RuntimePlan(
        package=BUNDLED,
        version=sources.python_version(loaded.runtime_source, RUNTIME_PACKAGE),
        source_sha256=sources.tree_sha256(loaded.runtime_source),
        bundled=loaded.runtime_source == data.RUNTIME,
        aliases=loaded.recipe.value.runtime.aliases,
        beside=package if package in ("ddl", "tf-distribute") else None,
    )


def request(loaded: Material, refused: frozenset[tuple[str, str]] = frozenset()) -> Request:
    """Return what the resolver is asked."""
    recipe, knowledge = loaded.recipe, loaded.knowledge.value
    return Request(
        recipe=recipe.value,
        site=loaded.site,
        arch=loaded.arch,
        snapshot=loaded.snapshot,
        knowledge=knowledge,
        implied=needed(recipe.value, knowledge),
        build_only=(
            *needed_to_build(recipe.value, knowledge, loaded.snapshot),
            *_needed_to_verify(recipe.value),
        ),
        facts=loaded.chosen.facts,
        preload=loaded.chosen.preload,
        places={
            "stack": recipe.place("stack"),
            "runtime": recipe.place("runtime", "version"),
            **{name: recipe.place("stack", name) for name in recipe.value.stack},
            **{
                f"flags.{name}": recipe.place("runtime", "flags", name)
                for name in recipe.value.runtime.flags
            },
        },
        refused=refused,
    )


def _needed_to_verify(recipe: Recipe) -> tuple[Wanted, ...]:
    """Return what the site's own Horovod is looked at with; one that is built here needs it too."""
    if recipe.runtime.origin != "module" or recipe.runtime.package != "horovod":
        return ()
    return (Wanted("pyelftools", "*", "verifying runtime horovod"),)


def folders_and_knowledge(context: Context) -> tuple[tuple[Path, ...], LoadedKnowledge]:
    """Return the folders that are searched, and the knowledge found there."""
    folders = search_path(context.environ, context.recipe_folders)
    return folders, load_knowledge(folders)


def _runtime_source(recipe: Loaded[Recipe]) -> Path:
    source = recipe.value.runtime.source
    return data.RUNTIME if source is None else (recipe.path.parent / source).resolve()


def inputs(loaded: Material, runtime: RuntimePlan) -> tuple[Input, ...]:
    """Return what the plan depends on, by which a stale lock is told."""
    return (
        Input(kind="recipe", name=loaded.recipe.value.name, sha256=loaded.recipe.sha256),
        Input(kind="site", name=loaded.site.name, sha256=loaded.chosen.sha256),
        Input(kind="snapshot", name=loaded.site.name, sha256=loaded.snapshot_sha256),
        Input(kind="knowledge", name="knowledge", sha256=loaded.knowledge.sha256),
        Input(kind="runtime", name=runtime.package, sha256=runtime.source_sha256),
    )
