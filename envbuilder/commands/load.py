"""load -> resolve -> plan: what every verb that needs a plan begins with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .. import data, sources
from ..backends import backend, prefix_parts
from ..backends.protocol import Backend
from ..documents.knowledge import load_knowledge
from ..documents.knowledge_cache import LoadedKnowledge, knowledge_folder
from ..documents.library import find, search_path
from ..documents.load import LoadedDocument, load_recipe
from ..documents.patches import patches_of
from ..documents.profile import check_is_there, profile_of, variant
from ..documents.site_choice import ChosenSite, SiteSearch, choose_arch, choose_site, with_partition
from ..errors import UsageError
from ..launchers import api_launcher, own_launcher
from ..model import matching
from ..model.backend import PrefixParts
from ..model.base import canonical_json, sha256_text
from ..model.knowledge import Knowledge
from ..model.plan import Input, Plan, RuntimePlan
from ..model.profiles import base_name
from ..model.recipe import Arch, Profile, Recipe
from ..model.resolution import Resolution
from ..model.site import Site, Snapshot
from ..planning import PlanRequest, make_plan
from ..resolve import TABLE_ROWS, Request, resolve
from ..resolve.implied_requirements import BUNDLED, build_requirements, runtime_requirements
from ..resolve.relevant_components import relevant_components
from ..target_tools.files import sha256_of
from ..text import shown, unknown
from .context import Context
from .entries import entries

RUNTIME_PACKAGE = "distributed_dl_training"


@dataclass(frozen=True)
class PlanOptions:
    """What a user chose on the command line; None: not said. ``allow``: (id, reason)."""

    recipe: str
    site: str | None = None
    arch: str | None = None
    partition: str | None = None
    allow: tuple[tuple[str, str], ...] = ()
    profile: Profile | None = None

    def as_locked(self, plan: Plan) -> PlanOptions:
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
) -> PlanOptions:
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
    return PlanOptions(recipe, site, arch, partition, tuple(waivers), profile_of(profile))


@dataclass(frozen=True)
class PlanInputs:
    """Everything read for a plan, before anything is decided.

    ``notes``: what is odd about the snapshot, in words. ``folders``: those that were searched.
    """

    recipe: LoadedDocument[Recipe]
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

    @property
    def backend(self) -> Backend:
        return backend(self.recipe.value.backend)

    def prefix_of(self, plan: Plan) -> PrefixParts:
        """Return how the prefix of a plan is made."""
        return prefix_parts(plan, self.knowledge.value.components)


def load(choice: PlanOptions, context: Context) -> PlanInputs:
    """Read and check the documents, choose the site, look at what it holds."""
    folders, knowledge = folders_and_knowledge(context)
    recipe = load_recipe(find("recipe", choice.recipe, folders), knowledge.value, entries())
    if choice.profile:
        traits = backend(recipe.value.backend).TRAITS
        recipe = variant(recipe, choice.profile, traits)
    search = site_search(folders, knowledge, context)
    chosen = choose_site(choice.site, search, recipe.value, choice.arch)
    chosen = with_partition(chosen, choice.partition)
    context.reporter.say(chosen.describe())
    arch = choose_arch(choice.arch, recipe, chosen)
    useful = relevant_components(recipe.value, knowledge.value)
    snapshot, digest, notes = snapshot_of(chosen, context, useful)
    for note in notes:
        context.reporter.say(f"note: {note}")
    if choice.profile:
        check_is_there(choice.profile, chosen.site, snapshot, knowledge.value)
    recipe = _allowing(recipe, choice.allow)
    _waivers_are_known(recipe, knowledge.value)
    return PlanInputs(
        recipe=recipe,
        chosen=chosen,
        arch=arch,
        knowledge=knowledge,
        snapshot=snapshot,
        snapshot_sha256=digest,
        runtime_source=_runtime_source(recipe),
        notes=notes,
        folders=folders,
        profile=choice.profile,
    )


def _allowing(
    recipe: LoadedDocument[Recipe], allow: tuple[tuple[str, str], ...]
) -> LoadedDocument[Recipe]:
    """Return the recipe with the waivers of the command line beside its own."""
    if not allow:
        return recipe
    waivers = {**recipe.value.allow, **dict(allow)}
    return replace(recipe, value=recipe.value.model_copy(update={"allow": waivers}))


def _waivers_are_known(recipe: LoadedDocument[Recipe], knowledge: Knowledge) -> None:
    """Raise UsageError for a waiver of what is no row: a slip would otherwise waive nothing."""
    ids = {row.id for row in matching.rows(knowledge)}
    for name in recipe.value.allow:
        if name not in ids and not name.startswith(TABLE_ROWS):
            raise UsageError(
                unknown("advisory to allow", name, ids),
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
        from ..doctor.detection import snapshot

        detected = snapshot(site, context.environ, components=components)
        return detected.snapshot, sha256_text(canonical_json(detected.snapshot.plain())), ()
    from ..documents.snapshots import load_snapshot
    from ..module_system.merge import merged
    from ..module_system.trees import age_note

    file = chosen.path.parent / site.snapshot
    recorded = load_snapshot(file)
    modules, notes = merged(site, recorded)
    digest = sha256_of(file)
    age = age_note(recorded, context.clock().date())
    return (
        recorded.model_copy(update={"modules": modules}),
        digest,
        notes if age is None else (age, *notes),
    )


def plan(
    loaded: PlanInputs,
    refused: frozenset[tuple[str, str]] = frozenset(),
    verbose: bool = False,
) -> Plan:
    """Resolve and plan; pure from here on, *refused* holds the pins that the index lacks."""
    return plan_of(loaded, resolve(request(loaded, refused), verbose))


def plan_of(loaded: PlanInputs, resolution: Resolution) -> Plan:
    """Return the plan of components that are decided."""
    runtime = runtime_plan(loaded)
    return make_plan(
        PlanRequest(
            recipe=loaded.recipe.value,
            backend=loaded.backend.TRAITS,
            knowledge=loaded.knowledge.value,
            site=loaded.site,
            arch=loaded.arch,
            resolution=resolution,
            runtime=runtime,
            inputs=inputs(loaded, runtime),
            own_launcher=own_launcher,
            api_launcher=api_launcher,
            patches=patches_of(resolution.builds, loaded.folders),
            profile=loaded.profile,
        )
    )


def runtime_plan(loaded: PlanInputs) -> RuntimePlan:
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


def request(loaded: PlanInputs, refused: frozenset[tuple[str, str]] = frozenset()) -> Request:
    """Return what the resolver is asked."""
    recipe, knowledge = loaded.recipe, loaded.knowledge.value
    return Request(
        recipe=recipe.value,
        backend=loaded.backend.TRAITS,
        site=loaded.site,
        arch=loaded.arch,
        snapshot=loaded.snapshot,
        knowledge=knowledge,
        implied=runtime_requirements(recipe.value, knowledge),
        build_only=build_requirements(recipe.value, knowledge, loaded.snapshot),
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


def folders_and_knowledge(context: Context) -> tuple[tuple[Path, ...], LoadedKnowledge]:
    """Return the folders that are searched, and the knowledge found there."""
    folders = search_path(context.environ, context.recipe_folders)
    return folders, load_knowledge(folders, knowledge_folder(context.environ, context.cwd))


def site_search(
    folders: Sequence[Path], knowledge: LoadedKnowledge, context: Context
) -> SiteSearch:
    """Return what sites are chosen from."""

    def detect() -> Site:
        from ..doctor.local import local_site

        return local_site(context.environ)

    named = context.environ.get("ENVBUILD_SITE")
    return SiteSearch(folders, knowledge.value, entries(), named, detect)


def _runtime_source(recipe: LoadedDocument[Recipe]) -> Path:
    source = recipe.value.runtime.source
    return data.RUNTIME if source is None else (recipe.path.parent / source).resolve()


def inputs(loaded: PlanInputs, runtime: RuntimePlan) -> tuple[Input, ...]:
    """Return what the plan depends on, by which a stale lock is told."""
    return (
        Input(kind="recipe", name=loaded.recipe.value.name, sha256=loaded.recipe.sha256),
        Input(kind="site", name=loaded.site.name, sha256=loaded.chosen.sha256),
        Input(kind="snapshot", name=loaded.site.name, sha256=loaded.snapshot_sha256),
        Input(kind="knowledge", name="knowledge", sha256=loaded.knowledge.sha256),
        Input(kind="runtime", name=runtime.package, sha256=runtime.source_sha256),
    )
