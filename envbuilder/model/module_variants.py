"""Modules of one name behind different ones: a hierarchy has an ``OpenMPI/4.1.5`` per compiler.

To load it one says ``OpenMPI/4.1.5`` whichever it is; which one that is depends on what is loaded
before. Whatever tells modules apart calls such a one ``OpenMPI/4.1.5 behind GCC 12.3.0``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, product

from .site import StatedModule

_BEHIND = " behind "
Parents = tuple[tuple[str, ...], ...]


def variant(name: str, parents: Parents) -> str:
    """Return what a module is called that has namesakes; no module's name has spaces."""
    # No slash: what stands before the last one is what Lmod calls the module's name.
    opened_by = " or ".join(" ".join(alternative) for alternative in parents) or "nothing"
    return f"{name}{_BEHIND}{opened_by.replace('/', ' ')}"


def loaded_as(module: str) -> str:
    """Return the name by which a module is loaded."""
    return module.partition(_BEHIND)[0]


def told_apart(modules: Sequence[StatedModule]) -> dict[str, StatedModule]:
    """Return the modules by names of their own, which they, loads, parents and conflicts use."""
    of_name: dict[str, list[StatedModule]] = {}
    for module in modules:
        of_name.setdefault(module.name, []).append(module)
    namesakes = {
        name: {variant(name, each.parents): each for each in those}
        for name, those in of_name.items()
        if len(those) > 1
    }
    if not namesakes:
        return {module.name: module for module in modules}
    names = _Names(namesakes, of_name)
    return {
        own: names.renamed(own, module)
        for name, those in of_name.items()
        for own, module in namesakes.get(name, {name: those[-1]}).items()
    }


class _Names:
    """The own names of modules that have namesakes, by the name that these share."""

    def __init__(
        self,
        namesakes: Mapping[str, Mapping[str, StatedModule]],
        of_name: Mapping[str, Sequence[StatedModule]],
    ) -> None:
        self._namesakes = namesakes
        self._of_name = of_name

    def renamed(self, own: str, module: StatedModule) -> StatedModule:
        """Return a module under its own name, with the own names of all that it speaks of."""
        changes = {
            "name": own,
            "parents": tuple(dict.fromkeys(self._parents(module.parents))),
            "loads": tuple(self._loads(module)),
            "conflicts": tuple(
                each for name in module.conflicts for each in self._namesakes.get(name, (name,))
            ),
        }
        return module.model_copy(update=changes)

    def _parents(self, parents: Parents) -> Iterator[tuple[str, ...]]:
        for alternative in parents:
            there = self._brought(alternative)
            yield from product(*(self._fitting(name, there) for name in alternative))

    def _fitting(self, name: str, there: frozenset[str] | set[str]) -> tuple[str, ...]:
        """Return those of a name that are found where these are loaded; all where none is."""
        those = self._namesakes.get(name)
        if those is None:
            return (name,)
        found = [
            own
            for own, module in those.items()
            if not module.parents or any(there.issuperset(each) for each in module.parents)
        ]
        return tuple(found or those)

    def _loads(self, module: StatedModule) -> Iterator[str]:
        """Yield what a module loads: of namesakes the one that is found by then."""
        there = set(self._brought(chain.from_iterable(module.parents)))
        for name in module.loads:
            yield self._fitting(name, there)[-1]
            there |= self._brought([name])

    def _brought(self, names: Iterable[str]) -> frozenset[str]:
        """Return modules and what they load, directly or not, by the names that are loaded."""
        found: set[str] = set()
        ahead = [*names]
        while ahead:
            each = ahead.pop()
            if each not in found:
                found.add(each)
                ahead += [load for one in self._of_name.get(each, ()) for load in one.loads]
        return frozenset(found)
