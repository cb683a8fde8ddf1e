"""The documents that an environment was built from, kept in its build folder.

They are the recipe, the site and the site's snapshot. They lie as in any folder of documents, so
that recipe and site are found by their names: in ``given`` if the user gave a path, which is
searched before other folders, or in ``named`` if a name was searched for, which is searched last.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..documents.source import read_bytes
from ..errors import UsageError

_FOLDER = Path("inputs")
_GIVEN, _NAMED = _FOLDER / "given", _FOLDER / "named"
_SITES = "sites"
# A snapshot of 12,000 modules has about 6 MB.
_MAX_BYTES = 64 * 1024 * 1024


class InputFile(NamedTuple):
    """A document that was read. ``sha256``: of its bytes then. ``given``: by path, not by name."""

    path: Path
    sha256: str
    given: bool


def recipe_text(recipe: InputFile) -> dict[str, str]:
    """Return the text of a recipe under its place in the build folder."""
    return {str(_folder(recipe) / recipe.path.name): _same_text(recipe)}


def site_texts(site: InputFile, snapshot: InputFile | None) -> dict[str, str]:
    """Return the texts of a site and of its snapshot under their places in the build folder.

    The snapshot lies below the site's folder. One that lies elsewhere is not kept.
    """
    folder = _folder(site) / _SITES
    texts = {str(folder / site.path.name): _same_text(site)}
    name = snapshot and Path(os.path.relpath(snapshot.path, site.path.parent))
    if snapshot and name and ".." not in name.parts:
        texts[str(folder / name)] = _same_text(snapshot)
    return texts


def _folder(file: InputFile) -> Path:
    return _GIVEN if file.given else _NAMED


def _same_text(file: InputFile) -> str:
    """Return the text of a document. Raises UsageError if it is not the one that was read."""
    data = read_bytes(file.path, _MAX_BYTES)
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise UsageError(
            "document.changed",
            f"{file.path} changed while envbuild was planning",
            "run the same command again",
        )
    return data.decode("utf-8")


def input_folders(build: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the folders of a build folder that are searched first, and those searched last."""
    first, last = build / _GIVEN, build / _NAMED
    return (first,) if first.is_dir() else (), (last,) if last.is_dir() else ()


def kept_recipe(build: Path) -> Path | None:
    """Return the recipe that is kept in a build folder, or None."""
    return next(_files(build, "*.yaml"), None)


def kept_site(build: Path) -> Path | None:
    """Return the site that is kept in a build folder, or None."""
    return next(_files(build, f"{_SITES}/*.yaml"), None)


def _files(build: Path, pattern: str) -> Iterator[Path]:
    for folder in (_GIVEN, _NAMED):
        yield from sorted((build / folder).glob(pattern))
