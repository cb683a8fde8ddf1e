"""Finding recipes and sites by name in the folders that are searched."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from .. import data
from ..errors import UsageError
from ..text import SHORT, shown, unknown

Kind = Literal["recipe", "site"]

_SUFFIX = ".yaml"
FOLDERS: dict[Kind, str] = {"recipe": ".", "site": "sites"}
# As model.base.Name has it, without pydantic.
FEED_VERSION = "VERSION"
"""The file of a feed of knowledge that states its version."""

NAME = re.compile(r"[a-z0-9]+([._+-][a-z0-9]+)*")


def search_path(environ: Mapping[str, str], extra: Sequence[Path]) -> tuple[Path, ...]:
    """Return the folders to search, first one first, each once.

    *extra* (from the command line) must exist, else UsageError; folders that ENVBUILD_PATH names
    (colon-separated) and that do not exist are left out, as PATH has it; the shipped ones are last.
    """
    for folder in extra:
        if not folder.is_dir():
            raise UsageError(
                "recipes.folder-missing", f"no such folder of recipes: '{shown(str(folder))}'"
            )
    named = (Path(entry) for entry in environ.get("ENVBUILD_PATH", "").split(":") if entry)
    folders = [*extra, *(folder for folder in named if folder.is_dir()), data.RECIPES]
    return tuple(dict.fromkeys(folders))


def feed_folder(environ: Mapping[str, str]) -> Path | None:
    """Return where ``knowledge update`` installs a feed: below XDG_DATA_HOME or HOME."""
    data_home, home = environ.get("XDG_DATA_HOME", ""), environ.get("HOME", "")
    if data_home.startswith("/"):
        return Path(data_home) / "envbuild-feed"
    return Path(home) / ".local/share/envbuild-feed" if home.startswith("/") else None


def feed_version(folder: Path) -> str | None:
    """Return the version of an installed feed; None: there is none."""
    try:
        return (folder / "knowledge" / FEED_VERSION).read_text("ascii").strip()
    except (OSError, ValueError):
        return None


def catalogue(kind: Kind, folders: Sequence[Path]) -> list[tuple[str, Path]]:
    """Return every name with its file, sorted; of several files of a name the first found."""
    files: dict[str, Path] = {}
    for folder in folders:
        for path in sorted((folder / FOLDERS[kind]).glob(f"*{_SUFFIX}")):
            if NAME.fullmatch(path.stem):
                files.setdefault(path.stem, path)
    return sorted(files.items())


def find(kind: Kind, name_or_path: str, folders: Sequence[Path]) -> Path:
    """Return the file of a recipe or site that is given by name or by path.

    What holds a '/' or ends in .yaml is a path, and then must end in .yaml. Raises UsageError with
    the nearest right name.
    """
    if "/" in name_or_path or name_or_path.endswith(_SUFFIX):
        return _by_path(kind, name_or_path)
    names = dict(catalogue(kind, folders))
    if name_or_path in names:
        return names[name_or_path]
    searched = ", ".join(shown(str(folder), 4 * SHORT) for folder in folders)
    listing = shown(", ".join(names), 4 * SHORT) or "none"
    raise UsageError(
        "document.not-found",
        unknown(kind, name_or_path, names),
        f"available: {listing}",
        f"searched: {searched}; --recipes DIR or ENVBUILD_PATH adds a folder",
    )


def _by_path(kind: Kind, text: str) -> Path:
    path = Path(text)
    if path.suffix != _SUFFIX:
        raise UsageError(
            "document.invalid-file-name",
            f"'{shown(text)}' is neither the name of a {kind} nor a file that ends in {_SUFFIX}",
            f"write a name without '/', or a path that ends in {_SUFFIX}",
        )
    try:
        if path.exists():
            return path
        target = os.readlink(path) if path.is_symlink() else None  # noqa: PTH115 - as written
        beside = [other.name for other in path.parent.glob(f"*{_SUFFIX}")]
    except (OSError, ValueError) as error:  # no permission, too long, a NUL
        raise UsageError(
            "document.not-readable", f"cannot read '{shown(text)}': {shown(str(error))}"
        ) from error
    if target is not None:
        nowhere = shown(target, 4 * SHORT)
        raise UsageError(
            "document.dangling-link",
            f"'{shown(text)}' is a symbolic link to a missing file: {nowhere}",
        )
    raise UsageError(
        "document.not-found",
        unknown(f"{kind} file", path.name, beside),
        f"searched: {shown(str(path.parent.absolute()), 4 * SHORT)}",
    )
