"""Folders of packages: the distributions in them, and their files that look like libraries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..machine.host import names_in
from ..target_tools.distributions import ENDINGS, parse_fields, read_metadata, read_record
from ..target_tools.files import open_regular
from .facts import InstalledDistribution

# So deep below a folder of packages nobody puts libraries; a loop of mounts would be.
_DEEPEST = 40
_LARGEST_WHEEL_FILE = 64 * 1024


def distributions_in(folder: Path) -> Iterator[InstalledDistribution]:
    """Yield the distributions of a folder, sorted; those that cannot be read with a problem."""
    for name in names_in(folder):
        if name.endswith(ENDINGS) or name == "EGG-INFO":
            yield _distribution(folder / name)


def _distribution(path: Path) -> InstalledDistribution:
    fields = read_metadata(path)
    stem, _, _ = path.name.rpartition(".")
    name, _, version = stem.partition("-")
    recorded, problem = _recorded(path)
    if fields is None or "name" not in fields or "version" not in fields:
        why = "it has no METADATA" if fields is None else "its METADATA has no Name or Version"
        known = version.partition("-")[0] or "?"
        return InstalledDistribution(
            name, known, path, tags=_tags(path), recorded=recorded, problem=problem or why
        )
    return InstalledDistribution(
        name=fields["name"][0],
        version=fields["version"][0],
        path=path,
        requires=tuple(fields.get("requires-dist", ())),
        requires_python=next(iter(fields.get("requires-python", ())), None),
        tags=_tags(path),
        recorded=recorded,
        problem=problem,
    )


def _recorded(path: Path) -> tuple[dict[str, tuple[str, str]] | None, str | None]:
    """Return the rows of a RECORD, None without one, and what is wrong with it."""
    try:
        return read_record(path / "RECORD"), None
    except (FileNotFoundError, NotADirectoryError):  # an egg-info may be a file
        return None, None
    except (OSError, ValueError) as error:
        return None, f"cannot read its RECORD: {error}"


def _tags(path: Path) -> tuple[str, ...]:
    """Return the tags of the wheel that it was installed from: cp311-cp311-linux_x86_64."""
    try:
        with open_regular(path / "WHEEL") as stream:
            text = stream.read(_LARGEST_WHEEL_FILE).decode("utf-8", "replace")
    except OSError:
        return ()
    return tuple(parse_fields(text).get("tag", ()))


def library_files(folder: str, deepest: int = _DEEPEST) -> Iterator[str]:
    """Yield the files below a folder whose name is that of a library; no link is followed."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda each: each.name)
    except OSError:
        return
    for each in entries:
        if each.is_dir(follow_symlinks=False):
            if deepest and each.name != "__pycache__":
                yield from library_files(each.path, deepest - 1)
        elif ".so" in each.name and (each.name.endswith(".so") or ".so." in each.name):
            yield each.path
