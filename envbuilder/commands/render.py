"""``envbuild lock`` and ``envbuild render``: everything up to the build, without it."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from ..build import BuildPlaces, prepare
from ..errors import UsageError
from ..model.outcome import LockCheck
from ..model.places import Places
from ..model.plan import Lock
from ..render import render_build
from ..root.store import Home
from .context import Context
from .load import Choice, Material, load, plan
from .locked import LOCKS, changed_inputs, check_is_for, obtain_lock
from .places import root_path


def make(choice: Choice, context: Context) -> Lock:
    """Return the lock of a recipe; may use the network."""
    return _lock(load(choice, context), context)


def check(choice: Choice, file: Path, context: Context) -> LockCheck:
    """Say which inputs of a lock have changed; what the choice leaves open is as it was locked.

    Raises UsageError for a lock of another recipe, site or architecture. No network.
    """
    path = context.path(file)
    lock = LOCKS.load(path)
    plan = lock.plan
    choice = replace(
        choice,
        recipe=choice.recipe or plan.recipe,
        site=choice.site or plan.site,
        arch=choice.arch or plan.arch,
    )
    material = load(choice, context)
    check_is_for(lock, path, material)
    return LockCheck(file=str(path), id=lock.id(), changed=changed_inputs(lock, material))


def _lock(material: Material, context: Context) -> Lock:
    with tempfile.TemporaryDirectory(prefix="envbuild-lock-") as folder:
        return obtain_lock(material, plan(material), context, Path(folder) / "work")


def render(choice: Choice, root: str | None, output: Path, context: Context) -> tuple[str, ...]:
    """Write a build folder to *output*, which must be new or empty; return the files' names."""
    folder = context.path(output)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there and not an empty folder", "name a new folder")
    material = load(choice, context)
    lock = _lock(material, context)
    home = Home(root_path(root, material.site, material.arch, context), lock.plan.recipe)
    places = BuildPlaces(home.prefix(lock.id()), folder)
    files = render_build(lock, Places(prefix=places.prefix, build=folder))
    prepare(places, {**files, "lock.json": lock.text()}, material.runtime_source)
    return tuple(sorted([*files, "lock.json", "runtime/", "smoke.py"]))
