"""plan -> lock: pip is asked inside the plan's own environment; what it refuses is barred.

And locks that are there already: read, and held against what is there now.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from .. import process
from ..documents.json_file import JsonFile
from ..errors import NoSolutionError, Place, UsageError
from ..locking import Refusal, make_lock
from ..model.places import Places
from ..model.plan import Lock, Plan
from ..render import render_build
from ..root import files
from .context import Context
from .load import Material, inputs, plan, runtime_plan

# How often pip may refuse a pin before the stack is given up.
MAX_REFUSALS = 8

PIP_SECONDS = 600.0


def obtain_lock(
    material: Material,
    planned: Plan,
    context: Context,
    scratch: Path,
) -> Lock:
    """Ask pip for the files; a pin that the index lacks is barred and the stack solved again.

    *scratch* is a folder for this alone; it is made, and removed at the end.
    """
    refused: frozenset[tuple[str, str]] = frozenset()
    while True:
        try:
            with (
                _made_and_removed(scratch),
                context.tell.working("ask the package index which files these are"),
            ):
                imports = _imports(material)
                return _ask_pip(planned, scratch, imports, context)
        except Refusal as refusal:
            context.tell.say(
                f"the index does not offer {refusal.component} {refusal.version}: solving again"
            )
            refused |= {(refusal.component, refusal.version)}
            if len(refused) > MAX_REFUSALS:
                raise NoSolutionError(
                    f"the package index refused {len(refused)} pins, at last: {refusal}",
                    "is it a complete mirror? pip-indexes in the recipe or site file names another",
                ) from refusal
            planned = plan(material, refused)


@contextlib.contextmanager
def _made_and_removed(folder: Path) -> Iterator[None]:
    files.remove_tree(folder)
    folder.mkdir(parents=True)
    try:
        yield
    finally:
        files.remove_tree(folder)


def _imports(material: Material) -> dict[str, str]:
    """Return what Python imports each known distribution as."""
    known = material.knowledge.value.components.values()
    return {each.pip: each.python_import for each in known if each.pip and each.python_import}


def _ask_pip(
    planned: Plan,
    scratch: Path,
    imports: dict[str, str],
    context: Context,
) -> Lock:
    """Run pip inside the plan's modules, in a virtualenv that is thrown away."""
    places = Places(prefix=scratch / "venv", build=scratch)
    for name, text in render_build(Lock(plan=planned, artifacts=()), places).items():
        (scratch / name).write_text(text, encoding="utf-8")

    def run(command: Sequence[str]) -> process.Finished:
        return process.run(
            ["bash", str(scratch / "shell.sh"), *command], env=context.environ, timeout=PIP_SECONDS
        )

    return make_lock(planned, run, scratch, imports)


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
                f"the lock is for {what} {locked}, not for {asked}", place=Place(str(file))
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
