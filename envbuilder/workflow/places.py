"""Which root a verb means."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..model.places import Dialect
from ..model.site import Site
from ..root.location import default_root, named_root
from ..root.used import used_roots
from ..target_tools.root.stamp import Root
from ..target_tools.root.stamp import find_root as find_root_at
from ..target_tools.root.store import is_root, open_root, read_root
from ..text import counted
from .context import Context
from .options import RootOptions

if TYPE_CHECKING:
    from ..documents.site_choice import ChosenSite

# How many of several roots an error names.
_MOST_SHOWN = 5


def root_path(path: str | None, site: Site, arch: str, context: Context) -> Path:
    """Return the root: the path given, ENVBUILD_ROOT, else ``<base>/<site>/<arch>``."""
    named = named_root(path, context.environ, context.cwd)
    return named or default_root(site, arch, context.environ)


def site_dialect(site: Site) -> Dialect:
    """Return the language of a site's modulefiles."""
    return "tcl" if site.module_system == "tcl" else "lua"


def find_root(where: RootOptions, context: Context) -> Root | None:
    """Return the root that is named, or the site's where there is one; None: there is none.

    Raises UsageError for a root that is named and not there.
    """
    path, chosen = _place(where, context)
    return read_root(path) if chosen is None or is_root(path) else None


def local_root(where: RootOptions, context: Context) -> Root | None:
    """Return the root that is named, or the site's; None: there is none."""
    path, _ = _place(where, context)
    return read_root(path) if is_root(path) else None


def existing_root(where: RootOptions, context: Context) -> Root:
    """Return a root that exists: the one that is named, the site's, or the one that was used.

    Raises UsageError if none does, or if several were used.
    """
    path, chosen = _place(where, context)
    if chosen is None:
        return read_root(path)
    context.reporter.say(chosen.describe())
    site = chosen.site.name if where.site else None
    used = None if is_root(path) else _used_root(site, where.arch, context)
    return used or read_root(path)


def _used_root(site: str | None, arch: str | None, context: Context) -> Root | None:
    """Return the only root that the user created environments in; None if there is none.

    *site* and *arch*: those that the user named. Raises UsageError if there are several.
    """
    roots = list(filter(None, map(_readable_root, used_roots(context.environ))))
    fitting = [each for each in roots if site in (None, each.site) and arch in (None, each.arch)]
    if len(fitting) > 1:
        raise UsageError(
            "root.ambiguous",
            f"the site has no root, and you used {counted(len(fitting), 'other root')}",
            *(f"--root '{each.path}'" for each in fitting[:_MOST_SHOWN]),
        )
    if fitting:
        path = fitting[0].path
        context.reporter.say(f"the site has no root; using {path}, which you created")
    return fitting[0] if fitting else None


def _readable_root(path: Path) -> Root | None:
    """Return a root of the user's list; None if it is gone or damaged: the user did not name it."""
    try:
        return find_root_at(path)
    except (OSError, UsageError):
        return None


def opened_root(where: RootOptions, context: Context) -> Root:
    """Return a root to write in: one that is there, else a new one, as ``create`` makes it."""
    path, chosen = _place(where, context)
    if is_root(path):
        return read_root(path)
    chosen = chosen or _chosen(where, context)
    context.reporter.say(chosen.describe())
    return open_root(path, chosen.site.name, _arch(where))


def _place(where: RootOptions, context: Context) -> tuple[Path, ChosenSite | None]:
    """Return where the root is, and of which site it is the default, where none is named."""
    named = named_root(where.root, context.environ, context.cwd)
    if named:
        # Only without it do the site's documents matter; they take time to read.
        return named, None
    chosen = _chosen(where, context)
    return default_root(chosen.site, _arch(where), context.environ), chosen


def _chosen(where: RootOptions, context: Context) -> ChosenSite:
    from ..documents.site_choice import choose_site
    from .site_contents import site_search

    return choose_site(where.site, site_search(context))


def _arch(where: RootOptions) -> str:
    return where.arch or platform.machine()
