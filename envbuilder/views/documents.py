"""Recipes, sites and snapshots of sites as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from .. import data
from ..model.outcome import DocumentCheck, DocumentEntry, RecipeDraft, SearchMatch
from ..model.site import Snapshot
from ..text import counted, filled
from .layout import joined


@joined
def snapshot(path: str, value: Snapshot, notes: int, site_file: str | None) -> Iterator[str]:
    """Return what was recorded, in which file, and which site's file uses it."""
    modules, trees = counted(len(value.modules), "module"), counted(len(value.trees), "tree")
    yield f"{value.module_system}: {modules} in {trees}"
    yield from (f"  {tree.path}" for tree in value.trees)
    interpreters = counted(len(value.interpreters), "interpreter")
    yield f"{interpreters} outside of modules, glibc {value.glibc or 'unknown'}"
    if value.preload:
        yield f"preloaded modules: {', '.join(value.preload)}"
    if notes:
        yield f"{counted(notes, 'warning')} (see above)"
    if site_file:
        yield f"used by {site_file}"
    yield f"wrote {path}"


@joined
def matches(found: Sequence[SearchMatch]) -> Iterator[str]:
    """Return the matches of a search, grouped by their kind."""
    if not found:
        yield "  none found"
    kind = ""
    width = max((len(match.name) for match in found), default=0)
    for match in found:
        if match.kind != kind:
            kind = match.kind
            yield kind
        yield from filled(f"  {match.name:{width}}  ", match.summary)


@joined
def documents(entries: Sequence[DocumentEntry]) -> Iterator[str]:
    """Return recipes or sites; below each that is not shipped its file, of the others the folder.

    A summary goes on in the next line where a terminal has no room for it; a file stays whole.
    """
    if not entries:
        yield "  none found"
        return
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        yield from filled(f"  {entry.name:{width}}  ", entry.summary)
        if not _shipped(entry):
            yield f"  {'':{width}}  {entry.file}"
    if any(map(_shipped, entries)):
        yield from filled("", f"entries without a file are shipped with envbuild: {data.RECIPES}")


@joined
def checked(value: DocumentCheck) -> Iterator[str]:
    """Return a line for each file: good, or how many warnings are about it."""
    for name in value.good:
        number = len(value.warnings.get(name, ()))
        yield f"{name}: {counted(number, 'warning') if number else 'good'}"


def _shipped(entry: DocumentEntry) -> bool:
    return Path(entry.file).is_relative_to(data.RECIPES)


@joined
def recipe_draft(value: RecipeDraft) -> Iterator[str]:
    """Return what is not in a recipe that was written, and what create makes otherwise."""
    for title, those in (
        ("required in the site file:", value.site),
        ("not in the recipe, because it is unknown or a recipe cannot express it:", value.unknown),
        ("differences of an environment made by create:", value.differs),
    ):
        if those:
            yield title
            yield from (line for each in those for line in filled("  ", each))
    yield f"wrote {value.file}"
