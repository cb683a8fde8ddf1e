"""Modules of one name behind different ones: a hierarchy has an ``OpenMPI/4.1.5`` per compiler.

To load it one says ``OpenMPI/4.1.5`` whichever it is; which one that is depends on what is loaded
before. Whatever tells modules apart calls such a one ``OpenMPI/4.1.5 behind GCC 12.3.0``: its id.
The id of a module whose name no other one has is that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...model.site import StatedModule
from .names import key

_BEHIND = " behind "
Parents = tuple[tuple[str, ...], ...]
NO_PARENTS: Parents = ((),)

# A name can mean so many modules, each beside modules of its own, that their combinations never
# end. What is left out then cannot be planned with; no real tree comes near.
_MAX_WAYS = 100


def variant(name: str, parents: Parents) -> str:
    """Return what a module is called that has namesakes; no module's name has spaces."""
    # No slash: what stands before the last one is what Lmod calls the module's name.
    opened_by = " or ".join(" ".join(alternative) for alternative in parents) or "nothing"
    return f"{name}{_BEHIND}{opened_by.replace('/', ' ')}"


def loaded_as(module: str) -> str:
    """Return the name by which a module is loaded."""
    return module.partition(_BEHIND)[0]


def told_apart(modules: Sequence[StatedModule]) -> dict[str, StatedModule]:
    """Return the modules by their ids, which their loads, parents and conflicts use as well.

    A module whose name means another module behind each of its parents, or that loads such names,
    becomes several: one for each set of modules that it loads.
    """
    unique = {module.name: module for module in modules}
    if len(unique) == len(modules):
        return unique
    by_name: dict[str, dict[str, StatedModule]] = {}
    for module in modules:
        by_name.setdefault(module.name, {})[variant(module.name, module.parents)] = module
    return _Hierarchy(by_name).resolve()


class _Way(NamedTuple):
    """What some names mean, one after the other. ``beside``: what must be loaded before for that.

    ``openers``: the loaded modules that open trees, by then.
    """

    ids: tuple[str, ...]
    beside: tuple[str, ...]
    openers: frozenset[str]


class _Hierarchy:
    """Finds the module that each name means in the place where a module names it.

    Lmod searches the tree that was opened last first: of two modules of a name that are both in
    open trees it loads the one behind more modules.
    """

    def __init__(self, by_name: Mapping[str, Mapping[str, StatedModule]]) -> None:
        # As stated, and under their ids. Each name is replaced as it is resolved.
        self._variants = {
            name: [
                module.model_copy(update={"name": full if len(variants) > 1 else name})
                for full, module in variants.items()
            ]
            for name, variants in by_name.items()
        }
        self._openers = {
            name
            for variants in by_name.values()
            for module in variants.values()
            for alternative in module.parents
            for name in alternative
        }
        self._openers_by_id: dict[str, frozenset[str]] = {}
        self._resolved: set[str] = set()
        self._circular: set[str] = set()

    def resolve(self) -> dict[str, StatedModule]:
        """Return all modules by their ids."""
        for name in self._in_order():
            self._variants[name] = list(self._resolve(name))
            self._resolved.add(name)
            for module in self._variants[name]:
                self._openers_by_id[module.name] = self._openers_of((module.name, *module.loads))
        return {
            module.name: module.model_copy(update={"conflicts": tuple(self._conflicts(module))})
            for variants in self._variants.values()
            for module in variants
        }

    def _in_order(self) -> Iterator[str]:
        """Yield each name after all that its modules name; where these form a circle, after some.

        Chains of loads are long: nothing is recursive.
        """
        entered: set[str] = set()
        waiting = [(name, False) for name in reversed(self._variants)]
        while waiting:
            name, complete = waiting.pop()
            if complete:
                yield name
            elif name not in entered:
                entered.add(name)
                waiting.append((name, True))
                for module in self._variants[name]:
                    named = (
                        *module.loads,
                        *(n for alternative in module.parents for n in alternative),
                    )
                    waiting += [
                        (n, False) for n in named if n in self._variants and n not in entered
                    ]

    def _resolve(self, name: str) -> Iterator[StatedModule]:
        for module in self._variants[name]:
            parents_of: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
            for parents in self._parents(module):
                # What it loads is also found in the tree that it opens itself.
                openers = parents.openers | self._openers_of((module.name,))
                for loads in self._ways(module.loads, openers):
                    names = dict.fromkeys((*parents.beside, *parents.ids, *loads.beside))
                    parents_of.setdefault(loads.ids, []).append(tuple(names))
            if name in self._circular:
                # Modules of its circle use the id: it stays the id of one module.
                parents_of = dict([next(iter(parents_of.items()))])
            for ids, alternatives in parents_of.items():
                whole = len(parents_of) == 1
                changes = {
                    "name": module.name if whole else variant(name, tuple(alternatives)),
                    "parents": () if () in alternatives else tuple(dict.fromkeys(alternatives)),
                    "loads": ids,
                }
                yield module.model_copy(update=changes)

    def _parents(self, module: StatedModule) -> Iterator[_Way]:
        for alternative in module.parents or NO_PARENTS:
            yield from self._ways(alternative, frozenset())

    def _ways(self, names: Iterable[str], openers: frozenset[str]) -> list[_Way]:
        """Return what these names mean, loaded in this order where these modules are loaded."""
        ways = [_Way((), (), openers)]
        for name in names:
            ways = [
                _Way((*way.ids, meant), (*way.beside, *beside), way.openers | more)
                for way in ways
                for meant, beside, more in self._meanings(name, way.openers)
            ][:_MAX_WAYS]
        return ways

    def _meanings(
        self, name: str, openers: frozenset[str]
    ) -> list[tuple[str, tuple[str, ...], frozenset[str]]]:
        """Return the ids that a name can have where these modules are loaded, with what each needs
        loaded beside them, and what is loaded with it of those that open trees.

        Where a tree is open that has the name there is one; else one for each tree that has it.
        """
        if name not in self._variants:
            return [(name, (), self._openers_of((name,)))]
        if name not in self._resolved:
            # Its parents are names as yet.
            self._circular.add(name)
            openers = frozenset(map(loaded_as, openers))
        choices = [
            (module.name, alternative)
            for module in self._variants[name]
            for alternative in module.parents or NO_PARENTS
        ]
        found = [choice for choice in choices if openers.issuperset(choice[1])]
        if found:
            meant, _ = max(found, key=lambda choice: len(self._openers_of(choice[1])))
            return [(meant, (), self._openers_of((meant,)))]
        possible = [one for one in choices if self._fits(openers, one[1])] or choices
        ambiguous = len(possible) > 1 and name in self._resolved
        return [
            (meant, beside if ambiguous else (), self._openers_of((meant, *beside)))
            for meant, beside in possible
        ]

    def _openers_of(self, ids: Iterable[str]) -> frozenset[str]:
        """Return what is loaded with modules, of those that open trees."""
        found: set[str] = set()
        for module in ids:
            if module in self._openers_by_id:
                found |= self._openers_by_id[module]
            elif loaded_as(module) in self._openers:
                found.add(module)
        return frozenset(found)

    def _fits(self, openers: frozenset[str], alternative: tuple[str, ...]) -> bool:
        """Whether an alternative may be loaded beside modules: no two of it are of one key."""
        return not clash(openers, self._openers_of(alternative))

    def _conflicts(self, module: StatedModule) -> Iterator[str]:
        for name in module.conflicts:
            variants = self._variants.get(name)
            yield from (namesake.name for namesake in variants) if variants else (name,)


def clash(modules: Iterable[str], beside: Iterable[str]) -> bool:
    """Whether these cannot be loaded together: two are different modules of one key."""
    by_key = {key(module): module for module in modules}
    return any(by_key.get(key(module), module) != module for module in beside)
