"""Which root a verb means."""

from __future__ import annotations

import platform
from pathlib import Path

from ..model.places import check_path
from ..model.site import Site
from ..root.store import Root, read_root
from .context import Context, default_base


def root_path(asked: str | None, site: Site, arch: str, context: Context) -> Path:
    """Return the root: asked for, from ENVBUILD_ROOT, else ``<base>/<site>/<arch>``."""
    named = _named(asked, context)
    if named:
        return named
    base = Path(site.base) if site.base else default_base(context.environ)
    path = base / site.name / arch
    check_path(str(path))
    return path


def _named(asked: str | None, context: Context) -> Path | None:
    named = asked or context.environ.get("ENVBUILD_ROOT")
    if not named:
        return None
    path = context.path(named)
    check_path(str(path))
    return path


def existing_root(asked: str | None, site: str | None, arch: str | None, context: Context) -> Root:
    """Return a root that is there. Raises UsageError if none is."""
    named = _named(asked, context)
    if named:
        return read_root(named)
    # Only without a named root do the site's documents matter; they take time to read.
    from .choose import choose_site
    from .load import folders_and_knowledge

    folders, knowledge = folders_and_knowledge(context)
    chosen = choose_site(site, context, folders, knowledge.value)
    context.tell.say(chosen.told())
    return read_root(root_path(None, chosen.site, arch or platform.machine(), context))
