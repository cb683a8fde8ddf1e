"""Which site is meant, and what it holds: for every verb, also those that make no plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..base import canonical_json, sha256_text
from ..documents.site_choice import (
    DESCRIBE,
    NOT_DESCRIBED,
    ChosenSite,
    SiteSearch,
    choose_site,
    with_partition,
)
from ..documents.snapshots import lacks_snapshot, snapshot_command
from ..errors import EnvbuildError, UsageError
from ..launching.schedulers import SCHEDULERS
from ..model.plan import Plan, SiteFinding
from ..model.site import Site, Snapshot
from ..target_tools.files import sha256_of
from ..text import LONG, counted, shown
from .context import Context
from .entries import entries

if TYPE_CHECKING:
    from ..model.base_image import BaseImage


def site_search(context: Context) -> SiteSearch:
    """Return what sites are chosen from."""

    def detect() -> Site:
        from ..machine.local_site import local_site

        return local_site(context.environ)

    named = context.environ.get("ENVBUILD_SITE")
    documents = (context.folders, context.knowledge, entries())
    return SiteSearch(*documents, named, detect, context.reporter.warn)


def partition_of_job(chosen: ChosenSite, context: Context) -> str | None:
    """Return the partition of the job that the shell is in, where the site describes it."""
    here = (context.environ.get(each.PARTITION) for each in SCHEDULERS.values())
    return next((each for each in here if each in chosen.site.partitions), None)


def site_of(plan: Plan, asked: str | None, partition: str | None, context: Context) -> ChosenSite:
    """Return the site of an environment.

    Its partition is the one that was said, or that the job is in. Raises UsageError where another
    site is asked for, and where its own cannot be found.
    """
    search = site_search(context)
    chosen = choose_site(asked or search.from_environ or plan.site, search)
    if chosen.site.name != plan.site:
        if asked:
            raise UsageError(
                "site.mismatch",
                f"{plan.recipe} is for site {plan.site}, not for {chosen.site.name}",
                f"use --site {plan.site}, or the file of that name",
            )
        chosen = choose_site(plan.site, search)
    return with_partition(chosen, partition or partition_of_job(chosen, context))


def snapshot_of(
    chosen: ChosenSite, context: Context, components: frozenset[str]
) -> tuple[Snapshot, str, tuple[str, ...]]:
    """Return what the site holds, its hash, and what is odd; of this machine only *components*.

    From its snapshot's file, else from looking at this machine. The hash is over the file: what the
    site states over it is in the hash of the site.
    """
    site = chosen.site
    if site.snapshot is None or chosen.path is None:
        from ..machine.detection import INCOMPLETE, snapshot

        detected = snapshot(site, context.environ, components=components)
        # doctor shows the others.
        notes = tuple(note for note in detected.notes if note == INCOMPLETE)
        return detected.snapshot, sha256_text(canonical_json(detected.snapshot.plain())), notes
    from ..documents.snapshots import snapshot_of_site
    from ..machine.modules.merge import merged
    from ..machine.modules.trees import age_note

    recorded = snapshot_of_site(site, chosen.path)
    modules, notes = merged(site, recorded)
    digest = sha256_of(chosen.path.parent / site.snapshot)
    age = age_note(recorded, context.clock().date())
    return (
        recorded.model_copy(update={"modules": modules}),
        digest,
        notes if age is None else (age, *notes),
    )


def with_visible_modules(
    chosen: ChosenSite, context: Context
) -> tuple[ChosenSite, tuple[SiteFinding, ...]]:
    """Return this machine with the modules that the shell sees, any other site as it is; and what
    a plan does not know about the site as a whole.
    """
    site = chosen.site
    if chosen.path is not None:
        return chosen, _unrecorded(chosen.path, site)
    # lazy import: most sites have a file
    from ..machine.visible_modules import has_visible_trees, visible_modules

    if not has_visible_trees(site, context.environ):
        # A machine without modules has little more to describe than what is detected.
        return chosen, ()
    fix = f"{DESCRIBE} writes a site file for it"
    undescribed = SiteFinding(kind="not-described", reason=NOT_DESCRIBED, fix=fix)
    findings = () if chosen.described else (undescribed,)
    try:
        visible = visible_modules(site, context.environ, context.cwd, context.reporter.working)
    except EnvbuildError as error:
        reason = f"the modules of MODULEPATH are not used: {error}"
        return chosen, (*findings, SiteFinding(kind="modules-out-of-reach", reason=reason))
    number, trees = counted(len(visible.modules), "module"), counted(len(visible.trees), "tree")
    odd = "; envbuild sites snapshot local shows warnings about them" if visible.notes else ""
    context.reporter.say(f"note: this shell sees {number} in {trees}{odd}")
    update = {"module_trees": visible.trees, "modules": visible.modules}
    return chosen._replace(site=site.model_copy(update=update)), findings


def _unrecorded(file: Path, site: Site) -> tuple[SiteFinding, ...]:
    if not lacks_snapshot(site):
        return ()
    reason = (
        f"site {site.name} has module trees, but no snapshot: only the modules in its file are "
        "known"
    )
    fix = f"{shown(snapshot_command(file), 10 * LONG)} records them"
    return (SiteFinding(kind="no-snapshot", reason=reason, fix=fix),)


def base_site(base: BaseImage) -> ChosenSite:
    """Return the site that an image's base is."""
    return ChosenSite(base.site, "the image's base", sha256_text(canonical_json(base.site.plain())))


def held_by(base: BaseImage) -> tuple[Snapshot, str, tuple[str, ...]]:
    """Return what an image's base holds, as ``snapshot_of`` does."""
    return base.snapshot, sha256_text(canonical_json(base.snapshot.plain())), ()
