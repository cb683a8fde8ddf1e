"""What a recipe needs without saying so: what its runtime, and building that, stand on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..model.horovod import HOROVOD
from ..model.knowledge import Knowledge, Need
from ..model.module_names import stem
from ..model.ranges import matches
from ..model.recipe import Recipe
from ..model.site import Snapshot
from .request import Requirement

BUNDLED = "distributed-dl-training"
BUILT_WITH = "flit-core"
"""The component that the bundled runtime is built with."""


def runtime_requirements(recipe: Recipe, knowledge: Knowledge) -> tuple[Requirement, ...]:
    """Return what must be in the environment: for the bundled runtime, and for the recipe's."""
    why = f"runtime {BUNDLED}"
    own = [Requirement(name, "*", why) for name in ("numpy", "mpi4py", "mpi")]
    known = knowledge.components.get(recipe.runtime.package)
    return tuple(_once([*own, *_of(known.needs if known else (), recipe, knowledge)]))


def build_requirements(
    recipe: Recipe, knowledge: Knowledge, snapshot: Snapshot
) -> tuple[Requirement, ...]:
    """Return what must be there while the runtimes are built, as far as it is planned."""
    own = Requirement(BUILT_WITH, ">=3.2", f"building runtime {BUNDLED}")
    known = knowledge.components.get(recipe.runtime.package)
    needs = _of(known.build_needs if known else (), recipe, knowledge)
    return (
        *_once([own, *_planned(needs, knowledge, snapshot)]),
        *_verifying(recipe),
    )


def _verifying(recipe: Recipe) -> Iterator[Requirement]:
    """Yield what the site's own Horovod is looked at with; one that is built needs it anyway."""
    if recipe.runtime.origin == "module" and recipe.runtime.package == HOROVOD:
        yield Requirement("pyelftools", "*", f"verifying runtime {HOROVOD}")


def _planned(
    needs: Iterable[Requirement], knowledge: Knowledge, snapshot: Snapshot
) -> Iterator[Requirement]:
    """Yield what a plan decides: what the index has, and a compiler that is known to be there.

    Where modules have a compiler, it comes along with the toolchain. Where none has, it is asked
    for if the machine has one: then the rows about compilers see which it will be. Elsewhere only
    the build can tell.
    """
    machine = {each.component for each in snapshot.system}
    for each in needs:
        if each.component in knowledge.releases or (
            each.component in machine and not _in_modules(each.component, knowledge, snapshot)
        ):
            yield each


def _in_modules(component: str, knowledge: Knowledge, snapshot: Snapshot) -> bool:
    """Return whether any module brings a component, as it states or as its name says."""
    named = {stem(f"{each}/0") for each in knowledge.components[component].modules}
    return any(
        component in module.provides or stem(module.name) in named for module in snapshot.modules
    )


def _of(needs: Sequence[Need], recipe: Recipe, knowledge: Knowledge) -> Iterator[Requirement]:
    """Yield the needs of the releases that the recipe admits.

    Which of them it will be is not decided yet. What an older one needs beside does no harm. A
    module has what its runtime needs.
    """
    runtime = recipe.runtime
    if runtime.origin == "module":
        return
    admitted = [
        release.version
        for release in knowledge.releases.get(runtime.package, ())
        if matches(release.version, runtime.version)
    ]
    for need in needs:
        if any(matches(each, need.range) for each in admitted):
            for name, constraint in need.components.items():
                yield Requirement(name, constraint, f"runtime {runtime.package}")


def _once(wanted: Iterable[Requirement]) -> Iterator[Requirement]:
    seen: set[str] = set()
    for each in wanted:
        if each.component not in seen:
            seen.add(each.component)
            yield each
