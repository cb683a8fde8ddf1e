"""All knowledge of the folders that are searched: merged, and checked against itself.

The shipped knowledge is read from a cache where that is of the very same files; what a folder of a
site or user says is read as YAML and checked against all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .. import data
from ..model.base import sha256_text
from ..model.knowledge import Knowledge
from . import knowledge_cache

if TYPE_CHECKING:
    from .load import Document

T = TypeVar("T")


@dataclass(frozen=True)
class LoadedKnowledge:
    """All knowledge that was found. ``hashes``: the sha256 of each file, 64 digits."""

    value: Knowledge
    hashes: Mapping[Path, str]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, in the order in which they were read."""
        return tuple(self.hashes)

    @property
    def sha256(self) -> str:
        """The sha256 of all names and hashes; not of paths: elsewhere it is the same knowledge."""
        return sha256_text("".join(f"{path.name} {one}\n" for path, one in self.hashes.items()))


@dataclass(frozen=True)
class _Folder:
    """What one folder says. ``sheets``: as it was written; () where it was checked by itself."""

    value: Knowledge
    hashes: Mapping[Path, str]
    sheets: tuple[Document[Any], ...] = ()


def load_knowledge(folders: Sequence[Path], cache: Path | None = None) -> LoadedKnowledge:
    """Read the files in the ``knowledge`` folder of every folder.

    Folders come in the order of the search; each file may be absent. What an earlier one says of a
    component, of a component's releases, of a flag, or under an id, replaces what later ones say.
    *cache*: the folder where the shipped knowledge is kept as it was read, None: nowhere. Raises
    DocumentError (what is written) or UsageError (a file that cannot be read).
    """
    read = [
        _shipped(cache) if folder == data.RECIPES else _written(folder / "knowledge")
        for folder in folders
    ]
    merged = read[0].value if len(read) == 1 else _merged([each.value for each in read])
    _check(read, merged)
    hashes = {
        path: sha256
        for name in knowledge_cache.NAMES
        for each in read
        for path, sha256 in each.hashes.items()
        if path.name == name
    }
    return LoadedKnowledge(merged, hashes)


def _shipped(cache: Path | None) -> _Folder:
    folder = data.RECIPES / "knowledge"
    cached = knowledge_cache.find(cache, folder) if cache else None
    if cached:
        return _Folder(cached.value, cached.hashes)
    # lazy import: what reads YAML takes 0.1 s
    from .rows import problems

    read = _written(folder)
    if problems(read.sheets, [], read.value):
        return read
    cached = knowledge_cache.store(cache, read.value, read.hashes)
    return _Folder(cached.value, cached.hashes)


def _written(folder: Path) -> _Folder:
    # lazy import: what reads YAML takes 0.1 s
    from .rows import as_knowledge, read_sheets

    sheets = read_sheets(folder)
    hashes = {each.loaded.path: each.loaded.sha256 for each in sheets}
    return _Folder(as_knowledge(sheets), hashes, sheets)


def _check(read: Sequence[_Folder], merged: Knowledge) -> None:
    """Raise DocumentError for what was read as YAML and does not agree with the whole."""
    if not any(each.sheets for each in read):
        return
    from .load import all_of
    from .rows import problems

    others = [each.value for each in read if not each.sheets]
    faults = problems([sheet for each in read for sheet in each.sheets], others, merged)
    if faults:
        raise all_of(faults)


def _merged(each: Sequence[Knowledge]) -> Knowledge:
    return Knowledge(
        components=_first_wins(one.components for one in each),
        releases=_first_wins(one.releases for one in each),
        existing=_first_wins(one.existing for one in each),
        source_trees=_first_wins(one.source_trees for one in each),
        channels=_first_wins(one.channels for one in each),
        symptoms=_first_of_each_id(one.symptoms for one in each),
        advisories=_first_of_each_id(one.advisories for one in each),
        couplings=_first_of_each_id(one.couplings for one in each),
        kinds=_first_wins(one.kinds for one in each),
        generations=_first_wins(one.generations for one in each),
        flags=_first_wins(one.flags for one in each),
        flag_rules=_first_of_each_id(one.flag_rules for one in each),
    )


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


Row = TypeVar("Row", bound=_HasId)


def _first_of_each_id(each: Iterable[Iterable[Row]]) -> tuple[Row, ...]:
    return tuple(_first_wins({one.id: one for one in rows} for rows in each).values())


def _first_wins(each: Iterable[Mapping[str, T]]) -> dict[str, T]:
    merged: dict[str, T] = {}
    for one in each:
        for name, entry in one.items():
            merged.setdefault(name, entry)
    return merged
