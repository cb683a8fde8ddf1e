"""What a recipe needs without saying so: what its runtime, and building that, stand on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..model.knowledge import Knowledge, Need
from ..model.ranges import matches
from ..model.recipe import Recipe
from ..model.site import Snapshot
from ..resolve import Wanted

BUNDLED = "distributed-dl-training"


def needed(recipe: Recipe, knowledge: Knowledge) -> tuple[Wanted, ...]:
    """Return what must be in the environment: for the bundled runtime, and for the recipe's."""
    why = f"runtime {BUNDLED}"
    own = [Wanted(name, "*", why) for name in ("numpy", "mpi4py", "mpi")]
    known = knowledge.components.get(recipe.runtime.package)
    return tuple(_once([*own, *_of(known.needs if known else (), recipe, knowledge)]))


def needed_to_build(
    recipe: Recipe, knowledge: Knowledge, snapshot: Snapshot | None = None
) -> tuple[Wanted, ...]:
    """Return what must be there while the runtimes are built.

    What is not on the index, a compiler, is asked for where the machine is known to have it and no
    module does: then the rows about compilers see which one it will be. With modules it comes along
    with the toolchain, and elsewhere only the build can tell.
    """
    own = [Wanted("flit-core", ">=3.2", f"building runtime {BUNDLED}")]
    known = knowledge.components.get(recipe.runtime.package)
    needs = _of(known.build_needs if known else (), recipe, knowledge)
    alone = snapshot is not None and not snapshot.modules
    machine = {each.component for each in snapshot.system} if snapshot and alone else set()
    found = [w for w in needs if w.component in knowledge.releases or w.component in machine]
    return tuple(_once([*own, *found]))


def _of(needs: Sequence[Need], recipe: Recipe, knowledge: Knowledge) -> Iterator[Wanted]:
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
                yield Wanted(name, constraint, f"runtime {runtime.package}")


def _once(wanted: Sequence[Wanted]) -> Iterator[Wanted]:
    seen: set[str] = set()
    for each in wanted:
        if each.component not in seen:
            seen.add(each.component)
            yield each
