"""A folder of sources as the build takes it: which files, their hash, a copy."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from ..errors import UsageError

# What a checkout holds beside its sources, and what a build leaves there.
IGNORED = frozenset(
    {"__pycache__", "tests", "build", "dist", "build_record.json"}
    | {"collective_op.json", "collective_op.so"}
)


def files(folder: Path) -> Iterator[Path]:
    """Yield the source files below *folder*, relative to it, sorted by name."""
    for path in sorted(folder.iterdir()):
        if path.name in IGNORED or path.name.startswith(".") or path.name.endswith(".egg-info"):
            continue
        if path.is_dir():
            yield from (path.relative_to(folder) / below for below in files(path))
        else:
            yield path.relative_to(folder)


def tree_sha256(folder: Path) -> str:
    """Return one sha256 over the names and contents of all source files."""
    whole = hashlib.sha256()
    for name in files(folder):
        content = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        whole.update(f"{content}  {name.as_posix()}\n".encode())
    return whole.hexdigest()


def copy(folder: Path, target: Path) -> None:
    """Copy the source files to *target*, which is made anew."""
    shutil.rmtree(target, ignore_errors=True)
    for name in files(folder):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, target / name)


def python_version(folder: Path, package: str) -> str:
    """Return ``__version__`` of the package in a source tree; UsageError if there is none."""
    init = folder / package / "__init__.py"
    try:
        text = init.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(
            "runtime.no-sources",
            f"{folder} does not contain the sources of {package}: {init.name} is missing",
        ) from error
    match = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    if not match:
        raise UsageError("runtime.no-version", f"{init} does not define __version__")
    return match[1]
