"""Where the files of a lock come from, and those of them that have to be looked up there."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from .. import process
from ..errors import BuildError, MissingToolError
from ..knowledge.artifacts import UNKNOWN_INDEX, IndexFile
from ..locking.connection import Unreachable
from ..locking.index import Index
from ..locking.settings import configured
from ..machine.host import LocalMachine, cache_folder
from ..model.plan import Lock, Plan
from ..target_tools.fetch import is_whole
from ..target_tools.files import file_name, make_folder, sha256_of
from .context import Context


def obtain(files: Sequence[IndexFile], folder: Path, index: Index, cache: Path | None) -> None:
    """Put files into a folder, unless they are there. *cache*: a folder of such files, by hash.

    Each is taken from any place that has it, as its sha256 says which file it is: the cache, a
    folder or page of links, the index that linked to it, another one.

    Raises MissingToolError where a place that may have one does not give it, BuildError where none
    has it any more.
    """
    for file in files:
        path = folder / file.filename
        kept = cache and cache / file.sha256
        if not is_whole(path, file.sha256):
            if kept and kept.is_file():
                shutil.copyfile(kept, path)
            if not is_whole(path, file.sha256):
                _fetch(file, path, index)
        if kept and not kept.is_file():
            # It only saves time: a full disk is told by what needs the room.
            with contextlib.suppress(OSError):
                _keep(path, kept)


def _fetch(file: IndexFile, path: Path, index: Index) -> None:
    origin = file.index or UNKNOWN_INDEX
    silent: list[Unreachable] = []
    failures: list[BuildError] = []
    for url, sha256 in index.links(file.name, origin, silent):
        if file_name(url) == file.filename and sha256 in (None, file.sha256):
            try:
                found = index.fetch(url, file.sha256, path.parent)
            except BuildError as error:
                failures.append(error)
                continue
            if found != path:
                shutil.copyfile(found, path)
            return
    path.unlink(missing_ok=True)
    raise _not_there(file, origin, index.places, silent, failures)


def _not_there(
    file: IndexFile,
    origin: str,
    places: Sequence[str],
    silent: Sequence[Unreachable],
    failures: Sequence[BuildError],
) -> MissingToolError | BuildError:
    if origin == UNKNOWN_INDEX:
        origin = f"its index, which the earlier lock does not state (tried: {', '.join(places)})"
    message = f"{file.filename} must come from {origin}, where its link contains a secret"
    reasons = dict.fromkeys((*map(str, silent), *map(str, failures)))
    hints = (
        *reasons,
        f"put {file.filename} into a folder of PIP_FIND_LINKS",
        "or install a bundle of this lock, which contains the file",
    )
    if silent or any(isinstance(each.__cause__, Unreachable) for each in failures):
        return MissingToolError(
            "index.link-expired", f"{message}, but it is not available there now", *hints
        )
    return BuildError(
        "index.checksum-mismatch",
        f"{message}, but no file there has the sha256 {file.sha256}",
        *hints,
    )


def _keep(path: Path, kept: Path) -> None:
    """Put a file into the cache: it is there whole, or not at all."""
    make_folder(kept.parent)
    number, name = tempfile.mkstemp(prefix=".", dir=kept.parent)
    os.close(number)
    try:
        shutil.copyfile(path, name)
        if sha256_of(name) == kept.name:
            Path(name).replace(kept)
    finally:
        Path(name).unlink(missing_ok=True)


_PIP_SECONDS = 60.0


def _index_of(plan: Plan, context: Context) -> Index:
    """Return the places that a plan names, else those of pip's configuration, to be asked."""
    configuration = pip_configuration(context.environ)
    settings = configured(configuration, plan.pip_indexes, plan.find_links)
    return Index(settings, context.environ)


def _file_cache(context: Context) -> Path | None:
    """Return the folder for files that can be had in no other way twice, by their hashes."""
    caches = cache_folder(LocalMachine(context.environ))
    return caches and caches / "files"


def obtain_secret_links(
    lock: Lock, folder: Path, context: Context, wheelhouse: Path | None = None
) -> None:
    """Put the files whose links hold a secret into a folder, where they are not there yet.

    Nor in *wheelhouse*. Raises MissingToolError where one cannot be reached, BuildError where it is
    gone.
    """
    files = [
        each
        for each in lock.secret_links
        if wheelhouse is None or not is_whole(wheelhouse / each.filename, each.sha256)
    ]
    if files:
        folder.mkdir(exist_ok=True)
        with context.reporter.working("look up files whose links contain secrets"):
            obtain(files, folder, _index_of(lock.plan, context), _file_cache(context))


def pip_configuration(environ: Mapping[str, str]) -> str:
    """Return what ``pip config list`` says, with envbuild's own Python; nothing without a pip."""
    command = [sys.executable, "-I", "-m", "pip", "config", "list"]
    done = process.run(command, env=environ, timeout=_PIP_SECONDS)
    return done.stdout if done.ok else ""
