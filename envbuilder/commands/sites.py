"""The verbs that look at a live site: snapshot, detect."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..detect import local_site, snapshot
from ..detect.draft import draft
from ..detect.interpreters import Detected
from ..detect.merge import merged
from ..detect.module_trees import age_note, changed_trees
from ..detect.probe import probe as look_closer
from ..detect.site_snapshot import snapshot_text, take
from ..documents import find, load_site
from ..documents.snapshots import load_snapshot
from ..errors import DocumentError, EnvbuildError, Problem, UsageError
from ..model.site import Site, Snapshot
from ..root.files import write_atomically
from ..text import shown
from .choose import LOCAL
from .context import Context
from .load import folders_and_knowledge

__all__ = ["detect_site", "draft_site", "save", "site_notes", "snapshot_text", "take_snapshot"]

_NAME = re.compile(r"[a-z0-9]+([._+-][a-z0-9]+)*")

# What a draft is called that goes to the screen.
DRAFT_NAME = "this-site"


def take_snapshot(
    site: str,
    context: Context,
    *,
    probe: bool = False,
    trees: Sequence[str] | None = None,
) -> Detected:
    """Look at a site's module trees on this machine; *trees*: other folders than the site's.

    What is wrong with single modules is in the notes. Writes nothing.
    """
    folders, knowledge = folders_and_knowledge(context)
    if site == LOCAL:
        document = local_site(context.environ)
    else:
        document = load_site(find("site", site, folders), knowledge.value).value
    places = [str(context.path(tree)) for tree in trees] if trees else None
    with context.tell.working(f"looking at the modules of site {document.name}"):
        taken = take(document, context.environ, context.clock().date(), places)
    if not probe:
        return taken.detected
    with context.tell.working("loading those that bring Python, MPI or Python packages"):
        return look_closer(taken, knowledge.value.components)


def save(text: str, output: str | Path, context: Context) -> Path:
    """Write a file at once, whatever was there before; return its path."""
    path = context.path(output)
    if not path.parent.is_dir():
        raise UsageError(f"no such folder: '{shown(str(path.parent), 240)}'", "make it first")
    write_atomically(path, text)
    return path


def site_notes(files: Sequence[Path], context: Context) -> tuple[str, ...]:
    """Return what should be known of the snapshots of these site documents.

    Contradictions of what the document states, module trees on this machine that changed since,
    and age. Raises one DocumentError with what is wrong with the snapshots' files.
    """
    _, knowledge = folders_and_knowledge(context)
    notes: list[str] = []
    problems: list[Problem] = []
    for file in files:
        loaded = load_site(file, knowledge.value)
        if loaded.value.snapshot is None:
            continue
        try:
            found = load_snapshot(loaded.path.parent / loaded.value.snapshot)
        except EnvbuildError as error:
            problems += error.problems
            continue
        said = list(merged(loaded.value, found)[1])
        said += [f"the module tree {tree} has changed since" for tree in changed_trees(found)]
        age = age_note(found, context.clock().date())
        said += [age] if age else []
        notes += [f"{file.name}: {each}" for each in said]
    if problems:
        raise DocumentError(tuple(problems))
    return tuple(notes)


def detect_site(context: Context) -> tuple[Site, Snapshot]:
    """Return the site that this machine is, and what was found on it."""
    site = local_site(context.environ)
    return site, snapshot(site, context.environ).snapshot


def draft_site(context: Context, output: str | None = None) -> str:
    """Return the draft of a site document for this machine, named after the file it is for."""
    name = Path(output).name.removesuffix(".yaml") if output else DRAFT_NAME
    if output and (not output.endswith(".yaml") or not _NAME.fullmatch(name)):
        raise UsageError(
            f"'{shown(output)}' cannot be a site document",
            "name it after the site, in lower case: our-cluster.yaml",
        )
    return draft(local_site(context.environ), context.environ, name)
