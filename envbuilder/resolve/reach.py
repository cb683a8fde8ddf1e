"""The cut: of all modules of a site, those that a request can touch.

A site has thousands of modules, a request touches dozens. What is left out cannot be in any answer:
the cut holds all providers of what is wanted, all that these load, their parents, and whatever may
take the place of a module that is among them, to the fixpoint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from ..knowledge.components import Component
from ..knowledge.ranges import series_text
from ..machine.modules.names import key, stem
from ..machine.modules.variants import NO_PARENTS, clash, loaded_as
from ..model.site import StatedModule
from .loading import closure
from .names import Names
from .problem import SolverModule

Signature = tuple[str | None, frozenset[tuple[str, str]]]
"""A module's generation, and the ABI series of all that it provides."""


class Abis:
    """The ABIs of the modules of one key: which of them may be loaded in whose place.

    A module may take the place of those of its generation that provide nothing which it does not
    provide in the same series. That depends on their signatures alone, so that thousands of modules
    are compared by the few signatures that they have.
    """

    def __init__(self, signatures: Mapping[str, Signature]) -> None:
        self._signatures = signatures
        every = sorted(set(signatures.values()), key=lambda one: (str(one[0]), sorted(one[1])))
        self._labels = {each: f"abi {n}" for n, each in enumerate(every) if each[1]}
        by_item: dict[tuple[str | None, tuple[str, str]], list[Signature]] = {}
        for generation, items in self._labels:
            for item in items:
                by_item.setdefault((generation, item), []).append((generation, items))
        self._below = {each: self._find_below(each, by_item) for each in every}
        self._above: dict[str, list[str]] = {}
        for name in sorted(signatures):
            for label in self._below[signatures[name]]:
                self._above.setdefault(label, []).append(name)

    def _find_below(
        self,
        signature: Signature,
        by_item: Mapping[tuple[str | None, tuple[str, str]], Sequence[Signature]],
    ) -> frozenset[str]:
        generation, items = signature
        shared = Counter(each for item in items for each in by_item[generation, item])
        return frozenset(self._labels[each] for each, n in shared.items() if n == len(each[1]))

    def of(self, module: str) -> str | None:
        """Return what a module may be replaced as; None: nothing may take its place."""
        return self._labels.get(self._signatures[module])

    def replaceable(self, module: str) -> frozenset[str]:
        """Return the ABIs in whose place a module may be loaded, its own among them."""
        return self._below[self._signatures[module]]

    def replacing(self, abi: str | None) -> Sequence[str]:
        """Return the modules that may be loaded in the place of an ABI, sorted."""
        return self._above.get(abi, ()) if abi is not None else ()


@dataclass(frozen=True)
class ModuleIndex:
    """All modules of a site, and what is known of them, looked up when it is asked for.

    Many small members: each is one table of the same modules, made once and only if it is needed.
    """

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
    def by_name(self) -> dict[str, list[str]]:
        """The modules by the name that each is loaded by."""
        found: dict[str, list[str]] = {}
        for name in self.modules:
            found.setdefault(loaded_as(name), []).append(name)
        return found

    @cached_property
    def with_loads(self) -> Callable[[tuple[str, ...]], frozenset[str]]:
        """Return modules and all that they load, directly or not."""
        return cache(lambda names: frozenset().union(*(closure(self.modules, n) for n in names)))

    def hidden(self, module: str) -> Iterator[tuple[str, ...]]:
        """Yield what may not be loaded beside a module, because its name means another one there.

        A tree that is behind all that another is behind, and behind more, is opened later and
        searched first. Where neither is so it is unknown which one is loaded: neither may be.
        """
        namesakes = [name for name in self.by_name[loaded_as(module)] if name != module]
        parents = self.modules[module].parents if namesakes else ()
        paths = [self.with_loads(alternative) for alternative in parents or NO_PARENTS]
        for namesake in namesakes:
            for alternative in self.modules[namesake].parents:
                opening = self.with_loads(alternative)
                if any(not (opening < path or clash(opening, path)) for path in paths):
                    yield alternative

    @cached_property
    def _in_lower_case(self) -> list[tuple[str, str]]:
        return [(name.lower(), name) for name in self.modules]

    @cached_property
    def defaults(self) -> dict[str, frozenset[str]]:
        """The modules that the site marks as the default of their key."""
        found: dict[str, set[str]] = {}
        for name, module in self.modules.items():
            if module.default:
                found.setdefault(key(name), set()).add(name)
        return {of: frozenset(names) for of, names in found.items()}

    @cached_property
    def _stating(self) -> list[StatedModule]:
        return [module for module in self.modules.values() if module.provides]

    def providing(self, component: str) -> list[str]:
        """Return the modules that provide a component, sorted."""
        found = {module.name for module in self._stating if component in module.provides}
        known = self.components.get(component)
        words = {stem(f"{name}/0") for name in (known.modules if known else ())}
        for text, name in self._in_lower_case:
            # Reading a name takes longer than looking for a word in it.
            if any(word in text for word in words) and component in self.provides(name):
                found.add(name)
        return sorted(found)

    @cached_property
    def provides(self) -> Callable[[str], dict[str, str]]:
        """Return the components that a module provides, with their versions."""
        return cache(lambda module: self.names.provides(self.modules[module]))

    @cached_property
    def generation(self) -> Callable[[str], str | None]:
        """Return the toolchain generation; in a hierarchy, where no name says it, its parents'."""
        return cache(self._generation)

    def _generation(self, module: str) -> str | None:
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

    def abis(self, module: str) -> Abis:
        """Return the ABIs of all modules that have the key of this one."""
        return self._abis(key(module))

    @cached_property
    def _abis(self) -> Callable[[str], Abis]:
        return cache(lambda of: Abis({name: self._signature(name) for name in self.by_key[of]}))

    def _signature(self, module: str) -> Signature:
        items = (
            (component, self._series_of(component, version))
            for component, version in self.provides(module).items()
        )
        return self.generation(module), frozenset(items)

    def _series_of(self, component: str, version: str) -> str:
        known = self.components.get(component)
        if known is None or known.series is None:
            return version
        return series_text(version, known.series)


def reachable(index: ModuleIndex, seeds: Iterable[str]) -> frozenset[str]:
    """Return all modules that loading some of *seeds* can touch, and what may replace those."""
    found: set[str] = set()
    replaceable: set[tuple[str, str | None]] = set()
    waiting = [name for name in seeds if name in index.modules]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        module = index.modules[name]
        near = [*module.loads, *(p for alternative in module.parents for p in alternative)]
        abi = key(name), index.abis(name).of(name)
        if abi not in replaceable:
            replaceable.add(abi)
            near += index.abis(name).replacing(abi[1])
        waiting += [each for each in near if each in index.modules and each not in found]
    return frozenset(found)


def solver_modules(index: ModuleIndex, names: Iterable[str]) -> tuple[SolverModule, ...]:
    """Return the modules as the solver sees them."""
    there = frozenset(names)
    return tuple(_solver_module(index, name, there) for name in sorted(there))


def _solver_module(index: ModuleIndex, name: str, there: frozenset[str]) -> SolverModule:
    module = index.modules[name]
    provided = [index.components.get(each) for each in index.provides(name)]
    return SolverModule(
        name=name,
        key=key(name),
        loads=tuple(each for each in module.loads if each in there),
        parents=module.parents,
        # Which library of a name is loaded does not matter as long as nobody uses it by itself.
        hidden=tuple(a for a in index.hidden(name) if provided and there.issuperset(a)),
        conflicts=tuple(each for each in module.conflicts if each != key(name)),
        families=module.families,
        generation=index.generation(name),
        build_only=bool(provided) and all(each and each.build_only for each in provided),
        replaces=index.abis(name).replaceable(name),
        abi=index.abis(name).of(name),
    )
