"""What is built from source: its steps, and the description that the build's programs read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base import canonical_json
from ..errors import UsageError
from ..knowledge.artifacts import GitTree, Sdist, tree_file
from ..model.plan import Lock, Pin, SourceBuild
from ..model.proofs import is_mpi
from ..model.runtime import FlagMeaning, Runtimes
from .quoting import Quoted, bash
from .subject import Renderable

_PREFIX = "."

# The step that builds a component is named after it.
STEP = "build-"


def source_values(lock: Renderable, component: str) -> dict[str, Any]:
    """Return what the step's template needs. Raises UsageError for a lock without its sources."""
    build = next((each for each in lock.plan.builds if each.component == component), None)
    if build is None:
        raise UsageError(
            "lock.build-missing",
            f"the lock has a step that builds {component}, but no build of it",
            "make the lock again: envbuild lock",
        )
    sources = sources_of(lock, build) if isinstance(lock, Lock) else None
    # A wheel's folder has libraries to run with and no names to link by: those are made beside it.
    homes = {
        name: Quoted('"$PREFIX"' if each == _PREFIX else f'"$HERE"/linked/{name}')
        for name, each in build.homes.items()
    }
    return {
        "component": component,
        "title": f"{component} {build.version}",
        "archive": sources.filename if sources else _unlocked(build),
        "patches": build.patches,
        "variables": sorted({**build.environment, **build.flags, **homes}.items()),
        "linked": [
            {"name": name, "folder": Quoted(f'"$PREFIX"/{bash(folder)}')}
            for name, folder in sorted(build.homes.items())
            if folder != _PREFIX
        ],
        "options": build.pip_options,
    }


def _unlocked(build: SourceBuild) -> str:
    """Return what the sources of a build may be called in a wheelhouse, to be read."""
    if build.tree:
        return tree_file(build.component, build.version)
    return f"{build.component}-{build.version}.tar.gz"


def sources_of(lock: Lock, build: SourceBuild) -> Sdist | GitTree | None:
    """Return the artifact that holds the sources of *build*."""
    if build.tree:
        return lock.tree_of(build)
    pin = lock.plan.pin(build.component)
    locator = pin.locator.lower() if pin else build.component
    sdists = (each for each in lock.artifacts if isinstance(each, Sdist))
    wanted = (locator, build.version)
    return next((each for each in sdists if (each.name, each.version) == wanted), None)


def builds_text(lock: Lock, runtimes: Runtimes) -> str:
    """Return builds.json: what the target tools wheel-cache and verify must know of each build."""
    plan = lock.plan
    verified = [(each, plan.pin(each.component)) for each in plan.verified]
    every = [*((each, None) for each in plan.builds), *verified]
    return canonical_json([_described(lock, *each, runtimes) for each in every])


def contents(build: SourceBuild, runtimes: Runtimes, *, mpi: bool, module: bool) -> dict[str, Any]:
    """Return what a build must contain: of a module's, only what its flags state is known."""
    runtime = runtimes.get(build.component)
    meaning = runtime.meaning(build.flags, build.version) if runtime else FlagMeaning()
    parts = {
        name: wanted and (name != "mpi" or mpi)
        for name, wanted in meaning.parts.items()
        if not module or name in meaning.stated
    }
    return {
        "parts": parts if meaning.parts else None,
        "cpu_operations": meaning.cpu_operations,
    }


def _described(
    lock: Lock, build: SourceBuild, module: Pin | None, runtimes: Runtimes
) -> dict[str, Any]:
    """*module*: brings what is verified; None for what is built here."""
    mpi = _pin(lock, is_mpi) if "mpi" in build.links else None
    sources = sources_of(lock, build)
    patches = {patch.name: patch.sha256 for patch in lock.plan.patches}
    return {
        "component": build.component,
        "version": build.version,
        **({"module": module.locator} if module else {}),
        "sdist": sources.filename if sources else None,
        "sha256": sources.sha256 if sources else None,
        "flags": build.flags,
        "environment": build.environment,
        "pip_options": list(build.pip_options),
        "patches": [{"name": name, "sha256": patches.get(name)} for name in build.patches],
        "frameworks": list(build.frameworks),
        "homes": build.homes,
        **contents(build, runtimes, mpi=mpi is not None, module=module is not None),
        "mpi": mpi,
        "nccl": _pin(lock, lambda pin: pin.component == "nccl") if "nccl" in build.links else None,
    }


def _pin(lock: Lock, wanted: Callable[[Pin], bool]) -> dict[str, Any] | None:
    # What comes along with the modules nobody has asked for; what was asked for goes before it.
    pin = next(filter(wanted, (*lock.plan.pins, *lock.plan.brought)), None)
    keys = ("component", "version", "origin", "locator")
    return {key: getattr(pin, key) for key in keys} if pin else None
