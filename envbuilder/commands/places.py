"""Which root a verb means."""

from __future__ import annotations

import platform
from pathlib import Path

from ..model.site import Site
from ..root.location import default_root, named_root
from ..target_tools.root.store import Root, is_root, read_root
from .context import Context


def root_path(path: str | None, site: Site, arch: str, context: Context) -> Path:
    """Return the root: the path given, ENVBUILD_ROOT, else ``<base>/<site>/<arch>``."""
    named = named_root(path, context.environ, context.cwd)
    return named or default_root(site, arch, context.environ)


def find_root(
    path: str | None, site: str | None, arch: str | None, context: Context
) -> Root | None:
    """Return the root that is named, or the site's where there is one; None: there is none.

    Raises UsageError for a root that is named and not there.
    """
    named = named_root(path, context.environ, context.cwd)
    if named:
        return read_root(named)
    from ..documents.site_choice import choose_site
    from .load import folders_and_knowledge, site_search

    chosen = choose_site(site, site_search(*folders_and_knowledge(context), context))
    default = default_root(chosen.site, arch or platform.machine(), context.environ)
    return read_root(default) if is_root(default) else None


def existing_root(path: str | None, site: str | None, arch: str | None, context: Context) -> Root:
    """Return a root that is there. Raises UsageError if none is."""
    named = named_root(path, context.environ, context.cwd)
    if named:
        return read_root(named)
    # Only without a named root do the site's documents matter; they take time to read.
    from ..documents.site_choice import choose_site
    from .load import folders_and_knowledge, site_search

    chosen = choose_site(site, site_search(*folders_and_knowledge(context), context))
    context.reporter.say(chosen.describe())
    return read_root(default_root(chosen.site, arch or platform.machine(), context.environ))
