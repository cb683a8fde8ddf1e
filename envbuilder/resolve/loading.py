"""Loading modules as Lmod 8 does it, and the order of loads that ends as planned.

What is followed here was looked up in Lmod 8.6.19 and is compared with it by
``tests/integration/test_loading_lmod.py``. A modulefile is taken to be one of EasyBuild's: first
its conflicts, then its loads (each unless that very module is loaded), then its family.

- A module of the same key is unloaded first, and only it: what it had loaded stays. With
  LMOD_DISABLE_SAME_NAME_AUTOSWAP=yes (*autoswap* false) that is an error.
- A module that is loaded already is unloaded and loaded once more, so that it comes last. What it
  loads and what is no longer there comes back, in the place of what was chosen instead.
- A module of the same family is replaced in either mode, without an error.
- Conflicts bind in one direction: when the module that names them is loaded.
- An error anywhere in a load undoes all of that load.
- Unloading a module that is not loaded does nothing.

Where the parents of a loaded module go, Lmod unloads ("deactivates") it without an error and loads
it again once it can be found, maybe from another tree. No plan should count on that: it is an
error here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from ..model.site import StatedModule
from .problem import SolverModule

Action = tuple[Literal["load", "unload"], str]

# For up to this many loads (preloads not counted) every order is tried before there is said to be
# none; for more, as many steps as below. An order that exists is nearly always found at once.
_ALL_ORDERS = 7
_MOST_STEPS = 1000


class LoadError(Exception):
    """The module system refuses a load, or ends it otherwise than anyone wants."""


def order(
    modules: Mapping[str, SolverModule],
    loads: frozenset[str],
    preload: tuple[str, ...],
    final: frozenset[str],
    replaced: Mapping[str, str],
    behind: Mapping[str, frozenset[str]] | None = None,
) -> tuple[Action, ...] | None:
    """Return the actions after which exactly *final* is loaded, with and without autoswap.

    *preload* comes first; a module of *replaced* is unloaded right before the one that takes its
    place is loaded. Of all such orders it is the smallest in text order among those that load
    nothing twice, load all that brings a replaced module before what takes its place, and load
    what *behind* names behind those (what is loaded later comes first on PATH); if there is none,
    the smallest of all. None: there is no order (more than seven loads: none was found).
    """
    first = tuple(dict.fromkeys(preload))
    rest = tuple(sorted(loads - frozenset(first)))
    for careful in (True, False):
        found = _Search(modules, final, replaced, rest, careful, behind or {}).run(first)
        if found is not None:
            return found
    return None


@dataclass
class LoadedModules:
    """What is loaded while actions are carried out. ``state``: key -> (module, is it loaded).

    A module is not loaded yet while what it loads is; Lmod calls that pending. What loads modules
    of the tree that it opens itself opens that first.
    """

    modules: Mapping[str, SolverModule]
    autoswap: bool
    state: dict[str, tuple[str, bool]] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)
    reloading: set[str] = field(default_factory=set)

    def copy(self) -> LoadedModules:
        return LoadedModules(self.modules, self.autoswap, dict(self.state), dict(self.holders))

    def loaded(self) -> tuple[str, ...]:
        return tuple(name for name, active in self.state.values() if active)

    def is_loaded(self, name: str) -> bool:
        return (name, True) in self.state.values()

    def act(self, action: Action) -> None:
        """Carry out one action; after a LoadError the session is of no more use."""
        kind, name = action
        if kind == "load":
            self._load(name)
        elif self.is_loaded(name):
            self._unload(name)

    def _load(self, name: str) -> None:
        """Load a module with all that it loads. Chains of loads are long: nothing is recursive."""
        running = [self._loading(name)]
        while running:
            below = next(running[-1], None)
            if below is None:
                running.pop()
            else:
                running.append(self._loading(below))

    def _loading(self, name: str) -> Iterator[str]:
        """Carry out the load of one module, and yield what is to be loaded meanwhile."""
        module = _module(self.modules, name)
        there, active = self.state.get(module.key, ("", False))
        if active:
            if there != name and not self.autoswap:
                raise LoadError(f"{name} would replace {there}, which is loaded")
            self._unload(there)
        pending = frozenset(loaded for loaded, _ in self.state.values())
        if not _is_found(module, pending):
            raise LoadError(f"{name} is not found before {', '.join(module.parents[0])}")
        _refuse_conflict(module, self.state)
        self.state[module.key] = (name, False)
        for below in module.loads:
            # Pending counts as loaded: a circle of loads ends here.
            if self.state.get(_module(self.modules, below).key, ("",))[0] != below:
                yield below
        if module.key not in self.state:
            raise LoadError(f"a module that {name} loads unloads it again")
        others = self._join_families(module)
        # What it loads may be of its own name: that one stays then.
        if self.state[module.key] == (name, False):
            del self.state[module.key]
            self.state[module.key] = (name, True)
            self._refuse_hidden()
        yield from self._replace_family(module, others)

    def _unload(self, name: str) -> None:
        module = self.modules[name]
        del self.state[module.key]
        for family in module.families:
            self.holders.pop(family, None)
        for other, _ in self.state.values():
            below = self.modules[other]
            if name in chain(*below.parents) and not _is_found(below, frozenset(self.loaded())):
                raise LoadError(f"{other} is no longer found without {name}")

    def _refuse_hidden(self) -> None:
        """Raise LoadError where the name of a loaded module means another one by now.

        Lmod loads that one in its place.
        """
        loaded = frozenset(self.loaded())
        for name in loaded:
            for alternative in self.modules[name].hidden:
                if loaded.issuperset(alternative):
                    raise LoadError(
                        f"{name} means another module together with {', '.join(alternative)}"
                    )

    def _join_families(self, module: SolverModule) -> list[str]:
        """Enter the module into its families; return the keys of those that held them."""
        held = [self.holders.get(family) for family in module.families]
        self.holders.update(dict.fromkeys(module.families, module.key))
        return [key for key in held if key is not None and key != module.key]

    def _replace_family(self, module: SolverModule, others: list[str]) -> Iterator[str]:
        """Unload those of its families, the last one first, and load the module once more."""
        if not others:
            return
        if module.name in self.reloading:
            raise LoadError(f"{module.name} loads a module of its own family")
        self.reloading.add(module.name)
        for key in reversed(others):
            for each in (key, module.key):
                there, active = self.state.get(each, ("", False))
                if active:
                    self._unload(there)
            yield module.name
        self.reloading.discard(module.name)


def _module(modules: Mapping[str, SolverModule], name: str) -> SolverModule:
    try:
        return modules[name]
    except KeyError:
        raise LoadError(f"there is no module {name}") from None


def _is_found(module: SolverModule, loaded: frozenset[str]) -> bool:
    """Whether a tree that holds the module is open."""
    return not module.parents or any(loaded.issuperset(each) for each in module.parents)


def _refuse_conflict(module: SolverModule, state: Mapping[str, tuple[str, bool]]) -> None:
    for each in module.conflicts:
        for key in (each, each.rpartition("/")[0]):
            other, active = state.get(key, ("", False))
            if active and each in (key, other):
                raise LoadError(f"{module.name} conflicts with {other}")


@dataclass
class _Search:
    """Looks for an order, depth first, the smallest in text order first.

    Autoswap is off: where nothing fails, no module was swapped for one of its key by itself, and
    the same actions do the same with autoswap. ``tried``: loads to come and what is loaded, from
    which there is no way.
    """

    modules: Mapping[str, SolverModule]
    final: frozenset[str]
    replaced: Mapping[str, str]
    rest: tuple[str, ...]
    careful: bool
    behind: Mapping[str, frozenset[str]]
    tried: set[tuple[tuple[str, ...], frozenset[str]]] = field(default_factory=set)
    steps: int = 0

    def run(self, preload: tuple[str, ...]) -> tuple[Action, ...] | None:
        """Return all actions, those of the preloads first, or None."""
        session = LoadedModules(self.modules, autoswap=False)
        actions: list[Action] = []
        try:
            for name in preload:
                actions += self._step(session, name)
        except LoadError:
            return None
        later = self._after(session, self.rest, self._bringers())
        return None if later is None else (*actions, *later)

    def _step(self, session: LoadedModules, name: str) -> Iterator[Action]:
        """Carry out what loading *name* takes, and yield it."""
        for old in sorted(old for old, new in self.replaced.items() if new == name):
            if session.is_loaded(old):
                session.act(("unload", old))
                yield "unload", old
        session.act(("load", name))
        yield "load", name

    def _bringers(self) -> Mapping[str, frozenset[str]]:
        """Return for each load those that come before it: what brings what it replaces, mostly."""
        brought = {name: closure(self.modules, name) for name in self.rest}
        return {
            name: self.behind.get(name, frozenset()).union(
                other
                for other in self.rest
                if other != name and any(self.replaced.get(each) == name for each in brought[other])
            )
            for name in self.rest
        }

    def _after(
        self,
        session: LoadedModules,
        rest: tuple[str, ...],
        bringers: Mapping[str, frozenset[str]],
    ) -> tuple[Action, ...] | None:
        """Return actions for the loads that are left, or None."""
        if not rest:
            return () if frozenset(session.loaded()) == self.final else None
        here = (rest, frozenset(session.loaded()))
        if here in self.tried:
            return None
        self.tried.add(here)
        for name in rest:
            if self.careful and (session.is_loaded(name) or bringers[name].intersection(rest)):
                continue
            self.steps += 1
            if self.steps > _MOST_STEPS and len(self.rest) > _ALL_ORDERS:
                return None
            then = session.copy()
            try:
                actions = tuple(self._step(then, name))
            except LoadError:
                continue
            later = self._after(then, tuple(each for each in rest if each != name), bringers)
            if later is not None:
                return (*actions, *later)
        return None


def closure(
    modules: Mapping[str, SolverModule] | Mapping[str, StatedModule], name: str
) -> frozenset[str]:
    """Return what a module brings: itself and what it loads, directly or not."""
    found: set[str] = set()
    ahead = [name]
    while ahead:
        each = ahead.pop()
        if each not in found and each in modules:
            found.add(each)
            ahead += modules[each].loads
    return frozenset(found)
