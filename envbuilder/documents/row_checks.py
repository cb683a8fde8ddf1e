"""What a row of knowledge must agree with: known names, releases that exist, facts that there are.

Every check yields problems with the place of the word that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from packaging.version import Version

from ..errors import Place, Problem
from ..model.condition import OPERATIONS, Condition
from ..model.knowledge import (
    Advisories,
    Components,
    Couplings,
    Flags,
    Knowledge,
    Ranges,
    Remedy,
    Row,
    Selection,
    Selector,
    Toolchains,
    Versions,
)
from ..model.ranges import ANY_VERSION, check_range, matches, version
from ..text import nearest, shown, unknown
from .checks import OWN_COMPONENTS_HINT
from .tree import Keys, Pairs, find, key_place

_NOTHING = Version("0")

_MORE_HINT = "releases that it lacks go into versions.yaml, under 'existing'"
_ALL_HINT = "write '*' for all releases, also those to come"


@dataclass(frozen=True)
class KnowledgeFile:
    """One file of knowledge: its kind (components, versions, ...), its value, what is written."""

    kind: str
    value: Any
    root: Pairs

    def at(self, *keys: str | int) -> Location:
        """Return the spot that *keys* lead to."""
        return Location(self.root, keys)


@dataclass(frozen=True)
class Location:
    """A spot in a document; places are looked up only where something is wrong."""

    root: Pairs
    keys: Keys

    def at(self, *keys: str | int) -> Location:
        """Return a spot below this one."""
        return Location(self.root, (*self.keys, *keys))

    @property
    def place(self) -> Place:
        """Where the value stands; of one that is not written, what is around it."""
        keys = self.keys
        while (node := find(self.root, keys)) is None:
            keys = keys[:-1]
        return node.place

    @property
    def key(self) -> Place:
        """Where the last key stands."""
        return key_place(self.root, self.keys)


class Catalogue:
    """The releases that exist of each component and of all that fulfil a virtual."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._known = knowledge
        self._found: dict[str, tuple[str, ...]] = {}

    @cached_property
    def virtuals(self) -> frozenset[str]:
        """The names of all virtuals."""
        components = self._known.components.values()
        return frozenset(virtual for each in components for virtual in each.fulfils)

    def of(self, name: str) -> tuple[str, ...]:
        """Return the versions; none where nothing is recorded."""
        if name not in self._found:
            members = self._known.fulfilling(name) if name in self.virtuals else (name,)
            self._found[name] = tuple(v for each in members for v in self._versions(each))
        return self._found[name]

    def _versions(self, component: str) -> list[str]:
        versions = [each.version for each in self._known.releases.get(component, ())]
        existing = self._known.existing.get(component)
        return [*versions, *existing.versions, *existing.announced] if existing else versions


def duplicates(sheets: Sequence[KnowledgeFile], others: Sequence[Knowledge]) -> Iterator[Problem]:
    """Yield a problem for every id that two rows have.

    A row of another folder and of the same kind is replaced, which is what its id is for.
    """
    elsewhere = {(kind, name) for knowledge in others for kind, name in _all_ids(knowledge)}
    kinds = {name: kind for kind, name in elsewhere}
    first: dict[str, tuple[str, Place]] = {}
    for sheet in sheets:
        for spot, name in _ids(sheet):
            kind = _kind(spot)
            if name in first and (first[name][0] != kind or first[name][1].file == spot.place.file):
                message = f"the id '{shown(name)}' is taken: it stands at {first[name][1]}"
                yield Problem(message, spot.place, ("give the row an id of its own",))
            elif name in kinds and (kind, name) not in elsewhere:
                message = f"the id '{shown(name)}' is taken: it is one of the {kinds[name]}"
                yield Problem(message, spot.place, ("give the row an id of its own",))
            first.setdefault(name, (kind, spot.place))


_ROWS = {"symptoms": "symptoms", "advisories": "advisories", "couplings": "couplings"}


def _ids(sheet: KnowledgeFile) -> Iterator[tuple[Location, str]]:
    key = "rules" if sheet.kind == "flags" else _ROWS.get(sheet.kind)
    if key is not None:
        for n, row in enumerate(getattr(sheet.value, key)):
            yield sheet.at(key, n, "id"), row.id


def _kind(spot: Location) -> str:
    key = str(spot.keys[0])
    return "flag rules" if key == "rules" else key


def _all_ids(knowledge: Knowledge) -> Iterator[tuple[str, str]]:
    for kind, rows in (
        ("symptoms", knowledge.symptoms),
        ("advisories", knowledge.advisories),
        ("couplings", knowledge.couplings),
        ("flag rules", knowledge.flag_rules),
    ):
        for row in rows:
            yield kind, row.id


def faults(sheet: KnowledgeFile, knowledge: Knowledge, catalogue: Catalogue) -> Iterator[Problem]:
    """Yield a problem for everything in one file that the whole of the knowledge belies."""
    check = _CHECKS.get(sheet.kind)
    if check is not None:
        yield from check(_Checks(knowledge, catalogue), sheet)


@dataclass(frozen=True)
class _Checks:
    """Checks of single words, against the whole of the knowledge."""

    known: Knowledge
    catalogue: Catalogue

    def component(self, name: str, place: Place) -> Iterator[Problem]:
        """Check the name of a component."""
        if name in self.known.components:
            return
        if name in self.catalogue.virtuals:
            fulfil = ", ".join(self.known.fulfilling(name))
            message = f"'{shown(name)}' is not a component: {fulfil} fulfil it"
            yield Problem(message, place, ("name one of them",))
        else:
            message = unknown("component", name, self.known.components)
            yield Problem(message, place, (OWN_COMPONENTS_HINT,))

    def role(self, name: str, place: Place) -> Iterator[Problem]:
        """Check the name of a component or virtual."""
        if name not in self.known.components and name not in self.catalogue.virtuals:
            names = [*self.known.components, *self.catalogue.virtuals]
            yield Problem(unknown("component", name, names), place, (OWN_COMPONENTS_HINT,))

    def range(self, name: str, constraint: str, spot: Location) -> Iterator[Problem]:
        """Check that some, and not all, of the releases that exist lie in a range."""
        versions = self.catalogue.of(name)
        if constraint == ANY_VERSION or not versions:
            return
        inside = sum(matches(each, constraint) for each in versions)
        text = f"release of {name} lies in '{shown(constraint)}'"
        if inside == 0:
            oldest, newest = _ends(versions)
            message = f"no {text}: known are {oldest} to {newest}"
            yield Problem(message, spot.place, (_MORE_HINT,))
        elif inside == len(versions):
            yield Problem(f"every {text}", spot.place, (_ALL_HINT,))

    def ranges(self, name: str, ranges: Ranges, spot: Location) -> Iterator[Problem]:
        """Check one range, or each of several."""
        if isinstance(ranges, str):
            yield from self.range(name, ranges, spot)
        else:
            for n, each in enumerate(ranges):
                yield from self.range(name, each, spot.at(n))

    def selections(self, chosen: Mapping[str, Selection], spot: Location) -> Iterator[Problem]:
        """Check what stands under beside, given or needs."""
        for name, selection in chosen.items():
            here = spot.at(name)
            yield from self.role(name, here.key)
            if isinstance(selection, Selector):
                yield from self.range(name, selection.range, here.at("range"))
            else:
                yield from self.range(name, selection, here)

    def condition(self, text: str | None, spot: Location) -> Iterator[Problem]:
        """Check the names of the facts that a condition looks at."""
        for name in sorted(Condition(text).names()) if text else ():
            owner, dot, rest = name.partition(".")
            if not dot:
                continue  # of the facts without an owner, only those that there are can be parsed
            message = self._fact(owner, rest)
            if message is not None:
                yield Problem(message, spot.place)

    def _fact(self, owner: str, rest: str) -> str | None:
        if owner == "flags":
            names = self.known.flags
            return None if rest in names else _in_condition("flags", "flag", rest, names)
        if owner == "ops":
            fine = rest in OPERATIONS
            return None if fine else _in_condition("ops", "operation", rest, OPERATIONS)
        if owner in self.known.components or owner in self.catalogue.virtuals:
            return None
        owners = ["flags", "ops", *self.known.components, *self.catalogue.virtuals]
        near = nearest(owner, owners)
        message = f"unknown fact '{shown(owner)}.{shown(rest)}'"
        return f"{message}: did you mean '{near}.{shown(rest)}'?" if near else message

    def row(self, row: Row, spot: Location, owner: str | None) -> Iterator[Problem]:
        """Check what all rows have. *owner*: the component that remedies speak of."""
        yield from self.condition(row.when, spot.at("when"))
        for n, remedy in enumerate(row.remedies):
            yield from self._remedy(remedy, spot.at("remedies", n), owner)

    def _remedy(self, remedy: Remedy, spot: Location, owner: str | None) -> Iterator[Problem]:
        yield from self.condition(remedy.when, spot.at("when"))
        if remedy.affected is not None and owner is not None:
            yield from self.ranges(owner, remedy.affected, spot.at("affected"))
        if remedy.kind == "flag" and remedy.name not in self.known.flags:
            message = unknown("flag", remedy.name, self.known.flags)
            yield Problem(message, spot.at("name").place)
        if remedy.kind in ("component", "build-version"):
            yield from self.role(remedy.name, spot.at("name").place)
            yield from self._remedy_range(remedy, spot.at("value"))

    def _remedy_range(self, remedy: Remedy, spot: Location) -> Iterator[Problem]:
        if remedy.value is None:
            return
        try:
            check_range(remedy.value)
        except ValueError as error:
            yield Problem(str(error), spot.place)
        else:
            yield from self.range(remedy.name, remedy.value, spot)


def _in_condition(owner: str, what: str, word: str, names: Iterable[str]) -> str:
    message = f"unknown {what} '{owner}.{shown(word)}'"
    near = nearest(word, names)
    return f"{message}: did you mean '{owner}.{near}'?" if near else message


def _ends(versions: Sequence[str]) -> tuple[str, str]:
    """Return the oldest and the newest."""
    ordered = sorted(versions, key=lambda each: version(each) or _NOTHING)
    return ordered[0], ordered[-1]


def _components(checks: _Checks, sheet: KnowledgeFile) -> Iterator[Problem]:
    value: Components = sheet.value
    owners: dict[str, str] = {}
    for name, each in checks.known.components.items():
        for module in each.modules:
            owners.setdefault(module, name)
    for name, each in value.components.items():
        for n, module in enumerate(each.modules):
            if owners[module] != name and checks.known.components[name] == each:
                message = f"the module name '{shown(module)}' is that of {owners[module]}"
                place = sheet.at("components", name, "modules", n).place
                yield Problem(message, place, ("a module's version is that of one component",))


def _versions(checks: _Checks, sheet: KnowledgeFile) -> Iterator[Problem]:
    value: Versions = sheet.value
    for name in value.releases:
        yield from checks.component(name, sheet.at("releases", name).key)
    for name in value.existing:
        yield from checks.component(name, sheet.at("existing", name).key)
    for name in value.source_trees:
        yield from checks.component(name, sheet.at("source-trees", name).key)
    for channel, held in value.channels.items():
        for name in held.packages:
            yield from checks.component(name, sheet.at("channels", channel, "packages", name).key)


def _advisories(checks: _Checks, sheet: KnowledgeFile) -> Iterator[Problem]:
    value: Advisories = sheet.value
    for n, row in enumerate(value.advisories):
        spot = sheet.at("advisories", n)
        yield from checks.role(row.component, spot.at("component").place)
        yield from checks.ranges(row.component, row.affected, spot.at("affected"))
        yield from checks.selections(row.beside, spot.at("beside"))
        yield from checks.row(row, spot, row.component)


def _couplings(checks: _Checks, sheet: KnowledgeFile) -> Iterator[Problem]:
    value: Couplings = sheet.value
    for n, row in enumerate(value.couplings):
        spot = sheet.at("couplings", n)
        yield from checks.selections(row.given, spot.at("given"))
        yield from checks.selections(row.needs, spot.at("needs"))
        yield from checks.row(row, spot, None)


def _toolchains(checks: _Checks, sheet: KnowledgeFile) -> Iterator[Problem]:
    value: Toolchains = sheet.value
    for kind, each in value.kinds.items():
        for n, below in enumerate(each.on):
            if below not in checks.known.kinds:
                message = unknown("kind of toolchain", below, checks.known.kinds)
                yield Problem(message, sheet.at("kinds", kind, "on", n).place)
    owners: dict[str, str] = {}
    for generation, held in checks.known.generations.items():
        for compiler in held.compilers:
            owners.setdefault(compiler, generation)
    for generation, held in value.generations.items():
        spot = sheet.at("generations", generation)
        for name in held.components:
            yield from checks.component(name, spot.at("components", name).key)
        for n, compiler in enumerate(held.compilers):
            if owners[compiler] != generation and checks.known.generations[generation] == held:
                message = f"the compiler '{shown(compiler)}' is that of {owners[compiler]}"
                yield Problem(message, spot.at("compilers", n).place)


def _flags(checks: _Checks, sheet: KnowledgeFile) -> Iterator[Problem]:
    value: Flags = sheet.value
    for name, flag in value.flags.items():
        spot = sheet.at("flags", name)
        yield from checks.component(flag.runtime, spot.at("runtime").place)
        if flag.home_of is not None:
            yield from checks.component(flag.home_of, spot.at("home-of").place)
        yield from checks.condition(flag.derived, spot.at("derived"))
        for n, choice in enumerate(flag.values):
            yield from checks.range(flag.runtime, choice.range, spot.at("values", n, "range"))
    for n, rule in enumerate(value.rules):
        spot = sheet.at("rules", n)
        yield from checks.component(rule.runtime, spot.at("runtime").place)
        yield from checks.ranges(rule.runtime, rule.range, spot.at("range"))
        yield from checks.row(rule, spot, rule.runtime)


_CHECKS: Mapping[str, Callable[[_Checks, KnowledgeFile], Iterator[Problem]]] = {
    "components": _components,
    "versions": _versions,
    "advisories": _advisories,
    "couplings": _couplings,
    "toolchains": _toolchains,
    "flags": _flags,
}
