"""Which site is meant, and what it holds: for every verb, also those that make no plan."""

from __future__ import annotations

from ..documents.site_choice import ChosenSite, SiteSearch
from ..model.base import canonical_json, sha256_text
from ..model.base_image import BaseImage
from ..model.site import Site, Snapshot
from ..target_tools.files import sha256_of
from .context import Context
from .entries import entries


def site_search(context: Context) -> SiteSearch:
    """Return what sites are chosen from."""

    def detect() -> Site:
        from ..doctor.local import local_site

        return local_site(context.environ)

    named = context.environ.get("ENVBUILD_SITE")
    return SiteSearch(context.folders, context.knowledge, entries(), named, detect)


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


def base_site(base: BaseImage) -> ChosenSite:
    """Return the site that an image's base is."""
    return ChosenSite(base.site, "the image's base", sha256_text(canonical_json(base.site.plain())))


def held_by(base: BaseImage) -> tuple[Snapshot, str, tuple[str, ...]]:
    """Return what an image's base holds, as ``snapshot_of`` does."""
    return base.snapshot, sha256_text(canonical_json(base.snapshot.plain())), ()
