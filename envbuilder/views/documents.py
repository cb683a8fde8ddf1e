"""Recipes, sites and snapshots of sites as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..model.outcome import DocumentEntry, RecipeDraft
from ..model.site import Snapshot
from ..text import counted, filled
from .layout import columns, joined


@joined
def snapshot(path: str, value: Snapshot, notes: int) -> Iterator[str]:
    """Return what was recorded, and in which file."""
    modules, trees = counted(len(value.modules), "module"), counted(len(value.trees), "tree")
    yield f"{value.module_system}: {modules} in {trees}"
    yield from (f"  {tree.path}" for tree in value.trees)
    interpreters = counted(len(value.interpreters), "interpreter")
    yield f"{interpreters} outside the modules, glibc {value.glibc or 'unknown'}"
    if value.preload:
        yield f"with {', '.join(value.preload)} loaded"
    if notes:
        yield f"{counted(notes, 'warning')} about it above"
    yield f"wrote {path}"


def documents(entries: Sequence[DocumentEntry]) -> str:
    """Return recipes or sites, a line each."""
    return columns((entry.name, entry.summary) for entry in entries) or "  none was found"


@joined
def recipe_draft(value: RecipeDraft) -> Iterator[str]:
    """Return what is not in a recipe that was written, and what create makes otherwise."""
    for title, those in (
        ("what the site's document has to state for it:", value.site),
        ("not in it, for nothing says it or a recipe cannot:", value.unknown),
        ("what create makes otherwise:", value.differs),
    ):
        if those:
            yield title
            yield from (line for each in those for line in filled("  ", each))
    yield f"wrote {value.file}"
