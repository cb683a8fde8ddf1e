"""The cut: of all modules of a site, those that a request can touch.

A site has thousands of modules, a request touches dozens. What is left out cannot be in any answer:
the cut holds all providers of what is wanted, all that these load, their parents, and whatever may
take the place of a module that is among them, to the fixpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..model.knowledge import Component
from ..model.ranges import series
from ..model.site import StatedModule
from .names import Names, key
from .problem import Module


@dataclass(frozen=True)
class Shelf:
    """All modules of a site, and what is known of them, looked up when it is asked for."""

    modules: Mapping[str, StatedModule]
    names: Names
    components: Mapping[str, Component]

    @cached_property
    def by_key(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in self.modules:
            found.setdefault(key(name), []).append(name)
        return found

    @cached_property
    def _provided(self) -> dict[str, dict[str, str]]:
        return {}

    @cached_property
    def _stating(self) -> list[StatedModule]:
        return [module for module in self.modules.values() if module.provides]

    def providing(self, component: str) -> list[str]:
        """Return the modules that provide a component, sorted."""
        found = {module.name for module in self._stating if component in module.provides}
        known = self.components.get(component)
        for name in known.modules if known else ():
            found |= {m for m in self.by_key.get(name, ()) if component in self.provides(m)}
        return sorted(found)

    def provides(self, module: str) -> dict[str, str]:
        """Return the components that a module provides, with their versions."""
        if module not in self._provided:
            self._provided[module] = self.names.provides(self.modules[module])
        return self._provided[module]

    def generation(self, module: str) -> str | None:
        """Return the toolchain generation; in a hierarchy, where no name says it, its parents'."""
        if module not in self._generations:
            self._generations[module] = self._find_generation(module)
        return self._generations[module]

    @cached_property
    def _generations(self) -> dict[str, str | None]:
        return {}

    def _find_generation(self, module: str) -> str | None:
        stated = self.modules[module]
        own = self.names.generation(stated)
        if own is not None or not stated.parents:
            return own
        of_parents = {
            self.names.generation(self.modules[name])
            for alternative in stated.parents
            for name in alternative
            if name in self.modules
        } - {None}
        return of_parents.pop() if len(of_parents) == 1 else None

    def may_replace(self, module: str, other: str) -> bool:
        """Whether *module* may take the place of *other*: same generation, same ABI series."""
        if module == other or self.generation(module) != self.generation(other):
            return False
        mine, theirs = self.provides(module), self.provides(other)
        return bool(theirs) and all(
            component in mine and self._same_series(component, mine[component], version)
            for component, version in theirs.items()
        )

    def _same_series(self, component: str, one: str, other: str) -> bool:
        known = self.components.get(component)
        if known is None or known.series is None:
            return one == other
        return series(one, known.series) == series(other, known.series)


def reachable(shelf: Shelf, seeds: Iterable[str]) -> frozenset[str]:
    """Return all modules that loading some of *seeds* can touch, and what may replace those."""
    found: set[str] = set()
    waiting = [name for name in seeds if name in shelf.modules]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        module = shelf.modules[name]
        near = [*module.loads, *(p for alternative in module.parents for p in alternative)]
        near += [m for m in shelf.by_key[key(name)] if shelf.may_replace(m, name)]
        waiting += [each for each in near if each in shelf.modules and each not in found]
    return frozenset(found)


def solver_modules(shelf: Shelf, names: Iterable[str]) -> tuple[Module, ...]:
    """Return the modules as the solver sees them."""
    there = frozenset(names)
    return tuple(_solver_module(shelf, name, there) for name in sorted(there))


def _solver_module(shelf: Shelf, name: str, there: frozenset[str]) -> Module:
    module = shelf.modules[name]
    provided = [shelf.components.get(each) for each in shelf.provides(name)]
    return Module(
        name=name,
        key=key(name),
        loads=tuple(each for each in module.loads if each in there),
        parents=module.parents,
        conflicts=tuple(each for each in module.conflicts if each != key(name)),
        families=module.families,
        generation=shelf.generation(name),
        build_only=bool(provided) and all(each and each.build_only for each in provided),
        replaces=frozenset(
            each
            for each in shelf.by_key[key(name)]
            if each in there and shelf.may_replace(name, each)
        ),
    )
