"""plan -> lock: pip is asked inside the plan's own environment, or, where that is not on this
machine or too old, for it; what it refuses is barred.

And locks that are there already: read, and held against what is there now.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .. import process
from ..documents.json_file import JsonFile
from ..errors import NoSolutionError, Place, UsageError
from ..locking import OLDEST_GLIBC, Known, Refusal, Run, Where, make_lock, question
from ..model.places import Places
from ..model.plan import Lock, Modules, Plan
from ..model.site import glibc_of
from ..render import render_build
from ..root import files
from .buildable import check_buildable
from .context import Context
from .load import Material, inputs, plan, runtime_plan

# How often pip may refuse a pin before the stack is given up.
_MAX_REFUSALS = 8

_PIP_SECONDS = 600.0

# A constraint that leaves one release: ==1.2.3, not ==1.2.*
_EXACT = re.compile(r"={2,3}[^,*]+")


def obtain_lock(
    material: Material,
    planned: Plan,
    context: Context,
    scratch: Path,
    downloads: Path | None = None,
) -> Lock:
    """Ask pip for the files; a pin that the index lacks is barred and the stack solved again.

    *scratch* is a folder for this alone; it is made, and removed at the end. Wheels that pip had to
    download for its answer are left in *downloads*.
    """
    check_buildable(planned)
    refused: frozenset[tuple[str, str]] = frozenset()
    while True:
        try:
            with (
                files.scratch(scratch),
                context.tell.working("ask the package index which files these are"),
            ):
                where = _where(planned, scratch, material, context)
                return make_lock(planned, replace(where, downloads=downloads), _known(material))
        except Refusal as refusal:
            context.tell.say(
                f"the index does not offer {refusal.component} {refusal.version}: solving again"
            )
            refused |= {(refusal.component, refusal.version)}
            if len(refused) > _MAX_REFUSALS:
                raise NoSolutionError(
                    f"the package index refused {len(refused)} pins, at last: {refusal}",
                    "is it a complete mirror? pip-indexes in the recipe or site file names another",
                ) from refusal
            planned = _planned_again(material, refused, planned)


def question_of(planned: Plan, material: Material, context: Context, scratch: Path) -> str | None:
    """Return what tells the question for this plan's files from others, None where nothing does.

    *scratch* as for ``obtain_lock``.
    """
    if not _is_here(planned):
        return None
    with files.scratch(scratch):
        where = _where(planned, scratch, material, context)
        return question(planned, where.glibc, where.inside)


def _planned_again(material: Material, refused: frozenset[tuple[str, str]], before: Plan) -> Plan:
    """Solve again without what the index refused.

    Where that has no answer and the site's glibc is not known, the reason may be that wheels were
    chosen for the oldest: then the error names the fact to state.
    """
    try:
        return plan(material, refused)
    except NoSolutionError as error:
        if _is_here(before) or _glibc_stated(material):
            raise
        first, *rest = error.problems
        hint = (
            f"site {material.site.name} states no glibc, so only wheels for {OLDEST_GLIBC} were "
            "taken: state facts: {glibc: ...} in the site file (ldd --version says it there)"
        )
        error.problems = (replace(first, hints=(hint, *first.hints)), *rest)
        raise


def _known(material: Material) -> Known:
    components = material.knowledge.value.components
    recipe = material.recipe.value
    wanted = {**recipe.stack, recipe.runtime.package: recipe.runtime.version}
    return Known(
        imports={
            each.pip: each.python_import
            for each in components.values()
            if each.pip and each.python_import
        },
        distributions={name: each.pip for name, each in components.items() if each.pip},
        exact=frozenset(name for name, asked in wanted.items() if _EXACT.fullmatch(asked)),
    )


def _glibc_stated(material: Material) -> str | None:
    return glibc_of(material.site, material.chosen.facts, material.snapshot)


def _where(planned: Plan, scratch: Path, material: Material, context: Context) -> Where:
    here = _is_here(planned)
    return Where(
        inside=_shell(planned, scratch / "inside", scratch / "venv", context),
        outside=_shell(_bare(planned), scratch / "outside", scratch / "venv", context),
        scratch=scratch,
        here=here,
        glibc=(here and _glibc_here()) or _glibc_stated(material) or OLDEST_GLIBC,
        environ=context.environ,
        say=context.tell.say,
    )


def _is_here(planned: Plan) -> bool:
    """Whether the plan's interpreter and modules can be asked on this machine."""
    init = planned.modules.init
    return (
        platform.machine() == planned.arch
        and planned.python is not None
        and Path(planned.python).exists()
        and (init is None or Path(init).exists())
    )


def _glibc_here() -> str | None:
    try:
        said = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (OSError, ValueError):
        return None  # another C library: no wheel of the index is for it
    return said.removeprefix("glibc ") or None


def _bare(planned: Plan) -> Plan:
    """Return the plan without what would change the environment of a Python that is not its own."""
    return planned.model_copy(update={"modules": Modules(), "environment": ()})


def _shell(planned: Plan, folder: Path, venv: Path, context: Context) -> Run:
    """Return what starts a command as the build's steps do, its virtualenv being *venv*."""
    # Only its environment is wanted: nothing is built here.
    planned = planned.model_copy(update={"builds": (), "patches": (), "proofs": (), "steps": ()})
    folder.mkdir()
    places = Places(prefix=venv, build=folder)
    for name, text in render_build(Lock(plan=planned, artifacts=()), places).items():
        (folder / name).write_text(text, encoding="utf-8")

    def run(command: Sequence[str]) -> process.Finished:
        return process.run(
            ["bash", str(folder / "shell.sh"), *command], env=context.environ, timeout=_PIP_SECONDS
        )

    return run


LOCKS = JsonFile(
    model=Lock,
    called="lock",
    again="locks are made, not written by hand: envbuild lock RECIPE --output FILE",
    max_bytes=64 * 1024 * 1024,
)


def changed_inputs(lock: Lock, material: Material) -> tuple[str, ...]:
    """Return what the lock was made of and is not as it was: ``recipe allreduce``."""
    before = {each.kind: each for each in lock.plan.inputs}
    now = {each.kind: each for each in inputs(material, runtime_plan(material))}
    kinds = dict.fromkeys((*before, *now))
    return tuple(
        " ".join(dict.fromkeys((kind, (before.get(kind) or now[kind]).name)))
        for kind in kinds
        if before.get(kind) != now.get(kind)
    )


def check_is_for(lock: Lock, file: Path, material: Material) -> None:
    """Raise UsageError if a lock is for another recipe, site or architecture."""
    plan = lock.plan
    for what, asked, locked in (
        ("recipe", material.recipe.value.name, plan.recipe),
        ("site", material.site.name, plan.site),
        ("architecture", material.arch, plan.arch),
    ):
        if asked != locked:
            raise UsageError(
                f"the lock is for {what} {locked}, not for {asked}",
                "use it for what it was made for, or make another: envbuild lock RECIPE -o FILE",
                place=Place(str(file)),
            )


def check_runtime(lock: Lock, file: Path, material: Material) -> None:
    """Raise UsageError unless the runtime's sources are those that were locked."""
    now = runtime_plan(material)
    if now.source_sha256 != lock.plan.runtime.source_sha256:
        raise UsageError(
            f"the lock is for {now.package} {lock.plan.runtime.version} from other sources than "
            f"those in {material.runtime_source}",
            "build it with the envbuild that made it, or make it anew: envbuild lock",
            place=Place(str(file)),
        )
