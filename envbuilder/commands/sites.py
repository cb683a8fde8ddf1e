"""The verbs that look at a live site: snapshot, detect."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..doctor.detection import DetectionResult, live_snapshot, snapshot, snapshot_text
from ..doctor.draft import draft
from ..doctor.local import local_site
from ..documents.library import NAME, find
from ..documents.load import load_site
from ..documents.site_choice import LOCAL
from ..errors import UsageError
from ..host import Host
from ..model.launch import Words
from ..model.site import Launcher, Site, Snapshot
from ..module_system.module_probe import probe as probe_modules
from ..module_system.site_modules import read_modules
from ..schedulers import SCHEDULERS
from ..text import shown
from .context import Context
from .entries import entries

__all__ = ["detect_site", "draft_site", "snapshot_text", "take_snapshot"]


# What a draft is called that goes to the screen.
DRAFT_NAME = "this-site"


def take_snapshot(
    site: str,
    context: Context,
    *,
    probe: bool = False,
    trees: Sequence[str] | None = None,
) -> DetectionResult:
    """Look at a site's module trees on this machine; *trees*: other folders than the site's.

    What is wrong with single modules is in the notes. Writes nothing.
    """
    if site == LOCAL:
        document = local_site(context.environ)
    else:
        file = find("site", site, context.folders)
        document = load_site(file, context.knowledge, entries()).value
    places = [str(context.path(tree)) for tree in trees] if trees else None
    with context.reporter.working(f"looking at the modules of site {document.name}"):
        site_modules = read_modules(document, context.environ, places)
    if probe:
        with context.reporter.working("loading those that bring Python, MPI or Python packages"):
            site_modules = probe_modules(site_modules, context.knowledge.components)
    with context.reporter.working("looking at this machine"):
        return live_snapshot(document, context.environ, context.clock().date(), site_modules)


def detect_site(context: Context) -> tuple[Site, Snapshot]:
    """Return the site that this machine is, and what was found on it."""
    site = local_site(context.environ)
    return site, snapshot(site, context.environ).snapshot


def draft_site(context: Context, output: str | None = None) -> str:
    """Return the draft of a site document for this machine, named after the file it is for."""
    name = Path(output).name.removesuffix(".yaml") if output else DRAFT_NAME
    if output and (not output.endswith(".yaml") or not NAME.fullmatch(name)):
        raise UsageError(
            f"'{shown(output)}' cannot be a site document",
            "name it after the site, in lower case: our-cluster.yaml",
        )
    return draft(local_site(context.environ), context.environ, name, *_scheduler(context))


def _scheduler(context: Context) -> tuple[str | None, Launcher | None, Words]:
    """Return the first scheduler whose program for submitting jobs is here, its launcher, and what
    that starts ranks by.
    """
    host = Host(context.environ)

    def ask(program: str, *words: str) -> str:
        path = host.which(program)
        return host.ask(path, *words).text if path else ""

    for name, scheduler in SCHEDULERS.items():
        if host.which(scheduler.SUBMIT):
            return name, scheduler.draft_launcher(host.which, ask), scheduler.draft_pmi(ask)
    return None, None, ()
