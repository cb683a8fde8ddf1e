"""Where the files of a lock come from, and those of them that have to be looked up there."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from .. import process
from ..locking.index import Index
from ..locking.secret_links import obtain
from ..locking.settings import configured
from ..machine.host import LocalMachine, cache_folder
from ..model.plan import Lock, Plan
from ..target_tools.fetch import is_whole
from .context import Context

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
