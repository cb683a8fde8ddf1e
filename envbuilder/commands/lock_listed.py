"""``envbuild lock RECIPE --from FILE``: a lock of just the packages that another tool's lock has.

Nothing of conda is solved again: the channels are read for these packages alone, and the recipe is
planned as if they held no others, so that all that is known of versions counts. pip is asked with
the versions of the list as constraints.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from .. import files
from ..conda.package_list import ListedPackage, ListedPackages, ListTarget, look_up
from ..conda.solve import archives
from ..errors import DocumentError, Place, Problem, UsageError
from ..formats.packages import CondaEntry, PackageList, PipEntry
from ..knowledge.channels import CHANNEL_ORIGINS
from ..locking.failures import Refusal
from ..locking.lock_check import contradictions
from ..locking.locker import distributions_of, make_lock
from ..model.plan import Lock, Plan
from ..runtimes import RUNTIMES
from ..target_tools.names import normalize
from ..text import counted, shown
from ..workflow.channels import close_engine, engine, virtual_packages
from ..workflow.context import Context
from ..workflow.entries import entries
from ..workflow.foreign_files import read_file
from ..workflow.load import PlanInputs, load, plan_offered
from ..workflow.lock import lock_environment
from ..workflow.plan_options import PlanOptions

_RECIPE = "envbuild recipes import FILE converts the whole list to a recipe"


def lock_of_file(choice: PlanOptions, file: Path, context: Context) -> Lock:
    """Return the lock of a recipe with the packages of a file; uses the network.

    Raises UsageError for a file that is no lock, DocumentError for packages that the channels do
    not have so, that do not go together or that the recipe does not ask for, and NoSolutionError
    where they are not what it asks for.
    """
    inputs = load(choice, context)
    if not inputs.backend.TRAITS.channels:
        raise UsageError(
            "list.backend-not-conda",
            f"--from needs a recipe with backend: conda, but recipe {inputs.recipe.value.name} "
            f"has backend: {inputs.recipe.value.backend}",
            _RECIPE,
        )
    found, _ = read_file(file, inputs.arch, context)
    for note in found.notes:
        context.reporter.warn(note)
    if found.packages is None:
        raise UsageError(
            "list.no-files",
            f"not a lock but a {found.form}: it does not name a file for each package",
            "convert it with envbuild recipes import FILE, then run envbuild lock",
            place=Place(shown(str(file))),
        )
    return lock_packages(found.packages, inputs, context, shown(str(file)))


def lock_packages(packages: PackageList, inputs: PlanInputs, context: Context, origin: str) -> Lock:
    """Return the lock of a recipe with just these packages. *origin*: what they are from."""
    listed = _look_up(packages, inputs, context)
    knowledge = inputs.knowledge.value
    offered = knowledge.model_copy(update={"channels": {**knowledge.channels, **listed.channels}})
    planned = plan_offered(inputs, offered, context).plan
    _check_origins(planned, packages, inputs)
    conda = archives(planned, listed.records, knowledge.components)
    distributions = distributions_of(inputs.recipe.value, knowledge.components)
    with (
        tempfile.TemporaryDirectory(prefix="envbuild-lock-") as folder,
        files.scratch(Path(folder) / "work") as scratch,
        context.reporter.working("take the packages of the list"),
    ):
        environment = lock_environment(planned, scratch, inputs, context)
        exact = {normalize(each.name): each.version for each in packages.pip}
        try:
            lock = make_lock(planned, replace(environment, exact=exact), distributions, conda)
        except Refusal as refusal:
            raise UsageError(
                "index.version-missing",
                f"the package index does not have {refusal.component} {refusal.version}, which "
                f"{origin} lists: {refusal}",
            ) from refusal
    _check(lock, packages, origin, context)
    return lock


def listed_of(entries: Iterable[CondaEntry]) -> list[ListedPackage]:
    """Return packages as the channels are asked for them."""
    return [
        ListedPackage(each.name, each.subdir, each.url, each.sha256, each.md5, each.place)
        for each in entries
    ]


def _look_up(packages: PackageList, inputs: PlanInputs, context: Context) -> ListedPackages:
    channels = inputs.knowledge.value.channels
    wanted = listed_of(packages.conda)
    unhashed = sum(each.sha256 is None and each.md5 is None for each in wanted)
    if unhashed:
        context.reporter.warn(
            f"{counted(unhashed, 'package')} without a hash in the list: using the channels' hashes"
        )
    target = ListTarget(inputs.arch, virtual_packages(inputs), inputs.site.channels)
    with context.reporter.working(f"look up {counted(len(wanted), 'package')}"):
        found = look_up(
            wanted,
            {name: channels[name] for name in inputs.recipe.value.channels},
            target,
            inputs.knowledge.value.components,
            engine(context),
            context.reporter.warn,
        )
    close_engine(context)
    return found


def _check_origins(planned: Plan, packages: PackageList, inputs: PlanInputs) -> None:
    """Raise DocumentError for listed packages that the recipe wants another version of.

    With it from elsewhere there would be two of them.
    """
    components = inputs.knowledge.value.components
    there = {each.name: each for each in packages.conda}
    wrong = []
    for pin in (*planned.pins, *planned.build_pins):
        listed = there.get(components[pin.component].conda or "")
        if listed and pin.origin not in CHANNEL_ORIGINS:
            wanted = inputs.recipe.value.stack.get(pin.component, "*")
            message = (
                f"the list has {listed.filename}, but the recipe requires {pin.component} "
                f"{wanted}, which is {pin}"
            )
            wrong.append(Problem("list.recipe-mismatch", message, listed.place, (_RECIPE,)))
    if wrong:
        raise DocumentError(tuple(wrong))


def _check(lock: Lock, packages: PackageList, origin: str, context: Context) -> None:
    """Raise DocumentError unless the lock holds what is listed; say what it holds besides."""
    wrong = [
        Problem("lock.contradiction", each, None, (_RECIPE,))
        for each in contradictions(lock, entries().backends, RUNTIMES)
    ]
    wheels = {each.name: each for each in lock.index_files if each.kind == "wheel"}
    for each in packages.pip:
        found = wheels.get(normalize(each.name))
        if found is None:
            wrong.append(
                Problem(
                    "list.unused-package",
                    f"no package of the recipe requires {each.name}",
                    each.place,
                    (_RECIPE,),
                )
            )
        elif each.sha256 not in (None, found.sha256):
            message = (
                f"{each.name} {each.version} has the sha256 {each.sha256} in the list, but "
                f"{found.sha256} on the index: {found.filename}"
            )
            wrong.append(Problem("list.checksum-mismatch", message, each.place, ()))
    if wrong:
        raise DocumentError(tuple(wrong))
    more = [*_besides(lock, packages.pip)]
    if more:
        context.reporter.say(f"pip also installs {', '.join(more)}, which {origin} does not list")


def _besides(lock: Lock, listed: Sequence[PipEntry]) -> Iterator[str]:
    names = {normalize(each.name) for each in listed}
    for each in lock.index_files:
        if each.kind == "wheel" and each.name not in names and not each.build_only:
            yield f"{each.name} {each.version}"
