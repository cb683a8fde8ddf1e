"""All knowledge of the folders that are searched: merged, and checked against itself.

The shipped knowledge is read from a cache where that is of the very same files; what a folder of a
site or user says is read as YAML and checked against all.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import data
from ..base import CHECKED
from ..knowledge.rows import STEMS, Knowledge
from . import knowledge_cache
from .knowledge_cache import LoadedKnowledge

if TYPE_CHECKING:
    from .rows import Sheet

# What one folder says, and as it was written; () where it was checked by itself.
_Folder = tuple[LoadedKnowledge, "tuple[Sheet, ...]"]


def load_knowledge(
    folders: Sequence[Path], cache: Path | None = None, verified: Path | None = None
) -> LoadedKnowledge:
    """Read the files in the ``knowledge`` folder of every folder.

    Folders come in the order of the search; each file may be absent. What an earlier one says of a
    component, of a component's releases, of a flag, or under an id, replaces what later ones say.
    *cache*: the folder where the shipped knowledge is kept as it was read, None: nowhere.
    *verified*: the folder of a feed, which was checked when it was installed. Raises
    DocumentError (what is written) or UsageError (a file that cannot be read).
    """
    read = [
        _shipped(cache)
        if folder == data.RECIPES
        else _verified(folder / "knowledge", cache)
        if folder == verified
        else _written(folder / "knowledge")
        for folder in folders
    ]
    values = [each.value for each, _ in read]
    if verified in folders and data.RECIPES in folders:
        values = _newer_first(values, folders.index(verified), folders.index(data.RECIPES))
    merged = values[0] if len(values) == 1 else _merged(values)
    written = [sheet for _, sheets in read for sheet in sheets]
    if written:
        # lazy import: what reads YAML takes 0.1 s
        from .messages import all_of
        from .rows import problems

        faults = problems(written, [each.value for each, sheets in read if not sheets], merged)
        if faults:
            raise all_of(faults)
    hashes = {path: sha256 for each, _ in read for path, sha256 in each.hashes.items()}
    ordered = sorted(hashes.items(), key=lambda item: STEMS.index(item[0].stem))
    return LoadedKnowledge(merged, dict(ordered))


def _shipped(cache: Path | None) -> _Folder:
    folder = data.RECIPES / "knowledge"
    cached = knowledge_cache.find(cache, folder) if cache else None
    if cached:
        return cached, ()
    # lazy import: what reads YAML takes 0.1 s
    from .rows import problems

    read, sheets = _written(folder)
    if problems(sheets, [], read.value):
        return read, sheets
    return knowledge_cache.store(cache, read.value, read.hashes), ()


def _verified(folder: Path, cache: Path | None) -> _Folder:
    cached = knowledge_cache.find(cache, folder) if cache else None
    if cached:
        return cached, ()
    read, _ = _written(folder)
    return knowledge_cache.store(cache, read.value, read.hashes), ()


def _written(folder: Path) -> _Folder:
    # lazy import: what reads YAML takes 0.1 s
    from .rows import as_knowledge, read_sheets

    sheets = read_sheets(folder)
    return LoadedKnowledge(
        as_knowledge(sheets), {each.path: each.sha256 for each in sheets}
    ), sheets


def _newer_first(values: list[Knowledge], feed: int, shipped: int) -> list[Knowledge]:
    """Let the shipped knowledge come before a feed that is older, after an update of envbuild."""
    days = values[feed].recorded, values[shipped].recorded
    if all(days) and str(days[0]) < str(days[1]):
        values[feed], values[shipped] = values[shipped], values[feed]
    return values


def _merged(each: Sequence[Knowledge]) -> Knowledge:
    sections = {name: [getattr(one, name) for one in each] for name in Knowledge.model_fields}
    days = sections.pop("recorded")
    merged = {name: _first_wins(parts) for name, parts in sections.items()}
    merged["recorded"] = max(filter(None, days), default=None)
    return Knowledge.model_validate(merged, by_name=True, context=CHECKED)


def _first_wins(parts: Sequence[Any]) -> Any:
    """Return the entries of all parts; of those with the same name, or the same id, the first."""
    merged: dict[str, Any] = {}
    for part in parts:
        for name, entry in (part if isinstance(part, dict) else {r.id: r for r in part}).items():
            merged.setdefault(name, entry)
    return merged if isinstance(parts[0], dict) else tuple(merged.values())
