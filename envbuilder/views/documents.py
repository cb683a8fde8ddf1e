"""Recipes, sites and snapshots of sites as text for people."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.outcome import DocumentEntry
from ..model.site import Snapshot
from .layout import columns


def snapshot(path: str, value: Snapshot, notes: int) -> str:
    """Return what was recorded, and in which file."""
    modules, trees = _count(len(value.modules), "module"), _count(len(value.trees), "tree")
    interpreters = _count(len(value.interpreters), "interpreter")
    lines = [
        f"{value.module_system}: {modules} in {trees}",
        *(f"  {tree.path}" for tree in value.trees),
        f"{interpreters} outside the modules, glibc {value.glibc or 'unknown'}",
    ]
    if value.preload:
        lines.append(f"with {', '.join(value.preload)} loaded")
    if notes:
        lines.append(f"{_count(notes, 'warning')} about it above")
    return "\n".join([*lines, f"wrote {path}"])


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def documents(entries: Sequence[DocumentEntry]) -> str:
    """Return recipes or sites, a line each."""
    return columns((entry.name, entry.summary) for entry in entries) or "  none was found"
