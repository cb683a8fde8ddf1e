"""What a recipe needs without saying so: what its runtime, and building that, stand on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..knowledge.components import Need
from ..knowledge.ranges import matches
from ..knowledge.rows import Knowledge
from ..machine.modules.names import provided_by_name, stems
from ..model.recipe import Recipe
from ..model.runtime import Runtimes
from ..model.site import Snapshot
from .request import Requirement


def runtime_requirements(
    recipe: Recipe, knowledge: Knowledge, runtimes: Runtimes
) -> tuple[Requirement, ...]:
    """Return what must be in the environment: for the bundled runtime, and for the recipe's."""
    own = [
        Requirement(component, constraint, f"runtime {name}")
        for name, each in runtimes.items()
        if each.TRAITS.bundled or name == recipe.runtime.package
        for component, constraint in each.TRAITS.needs.items()
    ]
    known = knowledge.components.get(recipe.runtime.package)
    return tuple(_once([*own, *_of(known.needs if known else (), recipe, knowledge)]))


def build_requirements(
    recipe: Recipe, knowledge: Knowledge, snapshot: Snapshot, runtimes: Runtimes
) -> tuple[Requirement, ...]:
    """Return what must be there while the runtimes are built, as far as it is planned."""
    own = [
        Requirement(component, constraint, f"building runtime {name}")
        for name, each in runtimes.items()
        for component, constraint in each.TRAITS.build_needs.items()
        if each.TRAITS.bundled or name == recipe.runtime.package
    ]
    known = knowledge.components.get(recipe.runtime.package)
    needs = _of(known.build_needs if known else (), recipe, knowledge)
    return (
        *_once([*own, *_planned(needs, knowledge, snapshot)]),
        *_verifying(recipe),
    )


def _verifying(recipe: Recipe) -> Iterator[Requirement]:
    """Yield what the site's own runtime is looked at with; one that is built needs it anyway."""
    if recipe.runtime.origin == "module":
        yield Requirement("pyelftools", "*", f"verifying runtime {recipe.runtime.package}")


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
    known = stems(knowledge.components)
    return any(
        component in (module.provides or provided_by_name(module.name, known))
        for module in snapshot.modules
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
