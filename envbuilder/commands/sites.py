"""The verbs that look at a live site: snapshot, detect."""

from __future__ import annotations

import shlex
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from .. import data
from ..documents.library import NAME, find
from ..documents.load import load_site
from ..documents.site_choice import DESCRIBE, LOCAL
from ..documents.snapshots import snapshot_command, snapshot_file, text_with_snapshot
from ..errors import UsageError
from ..files import write_atomically
from ..launching.schedulers import SCHEDULERS
from ..machine.detection import DetectionResult, live_snapshot, snapshot, snapshot_text
from ..machine.host import LocalMachine
from ..machine.local_site import local_site
from ..machine.modules.module_probe import probe as probe_modules
from ..machine.modules.site_modules import read_modules
from ..machine.site_draft import draft
from ..machine.visible_modules import base_trees, has_visible_trees
from ..model.launch import Words
from ..model.site import Site, SiteLauncher, Snapshot
from ..text import shown
from ..workflow.context import Context
from ..workflow.entries import entries

__all__ = ["attach_snapshot", "detect_site", "draft_site", "snapshot_text", "take_snapshot"]


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
    if site == LOCAL and places is None and has_visible_trees(document, context.environ):
        places = list(base_trees(document, context.environ)) or None
    with context.reporter.working(f"read the modules of site {document.name}"):
        site_modules = read_modules(document, context.environ, places)
    if probe:
        with context.reporter.working("load the modules of Python, MPI and Python packages"):
            site_modules = probe_modules(site_modules, context.knowledge.components)
    with context.reporter.working("examine this machine"):
        return live_snapshot(document, context.environ, context.clock().date(), site_modules)


class SnapshotUse(NamedTuple):
    """The site's file that uses a snapshot. ``note``: why none does."""

    site_file: Path | None = None
    note: str | None = None


def attach_snapshot(
    site: str, snapshot_path: Path, context: Context, *, trial: bool
) -> SnapshotUse:
    """Have the site's file use a snapshot that was just written, unless it is a *trial*.

    A file that names another snapshot, is shipped, or cannot be changed stays as it is.
    """
    if site == LOCAL:
        return SnapshotUse(note=f"no site file uses this snapshot; {DESCRIBE} writes a site file")
    path = find("site", site, context.folders)
    loaded = load_site(path, context.knowledge, entries())
    used = snapshot_file(loaded)
    if used is not None:
        if used.exists() and used.samefile(snapshot_path):
            return SnapshotUse(path)
        return SnapshotUse(note=f"{path} uses another snapshot: {used}")
    near = snapshot_path.is_relative_to(path.parent.absolute())
    name = str(snapshot_path.relative_to(path.parent.absolute()) if near else snapshot_path)
    note = f"{path} does not use this snapshot: add the line 'snapshot: {name}' to it"
    shipped = path.is_relative_to(data.RECIPES)
    text = text_with_snapshot(loaded, name, context.knowledge, entries())
    if trial or shipped or text is None:
        return SnapshotUse(note=note)
    try:
        write_atomically(path.resolve(), text, stat.S_IMODE(path.stat().st_mode))
    except OSError as error:
        return SnapshotUse(note=f"{note} ({error.strerror})")
    return SnapshotUse(path)


def detect_site(context: Context) -> tuple[Site, Snapshot]:
    """Return the site that this machine is, and what was found on it."""
    site = local_site(context.environ)
    return site, snapshot(site, context.environ).snapshot


def draft_site(context: Context, output: str | None = None) -> str:
    """Return the draft of a site document for this machine, named after the file it is for."""
    name = Path(output).name.removesuffix(".yaml") if output else DRAFT_NAME
    if output and (not output.endswith(".yaml") or not NAME.fullmatch(name)):
        raise UsageError(
            "site.invalid-file-name",
            f"'{shown(output)}' is not a valid name of a site document",
            "use the site's name in lower case: our-cluster.yaml",
        )
    return draft(local_site(context.environ), context.environ, name, *_scheduler(context))


def next_steps(site_file: Path, draft_text: str) -> Iterator[str]:
    """Yield what to do with a draft until plans use it."""
    if "\nsnapshot: " in draft_text:
        yield f"to record its modules: {snapshot_command(site_file)}"
    name = shlex.quote(str(site_file))
    yield f"to plan for it: --site {name}, or export ENVBUILD_SITE={name}"


def _scheduler(context: Context) -> tuple[str | None, SiteLauncher | None, Words]:
    """Return the first scheduler whose program for submitting jobs is here, its launcher, and what
    that starts ranks by.
    """
    host = LocalMachine(context.environ)

    def ask(program: str, *words: str) -> str:
        path = host.which(program)
        return host.ask(path, *words).text if path else ""

    for name, scheduler in SCHEDULERS.items():
        # Others may have a program of that name.
        if host.which(scheduler.SUBMIT) and scheduler.VERSION in (
            ask(scheduler.SUBMIT, "--version") if scheduler.VERSION else ""
        ):
            return name, scheduler.draft_launcher(host.which, ask), scheduler.draft_pmi(ask)
    return None, None, ()
