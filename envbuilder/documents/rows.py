"""Knowledge as its authors write it: read as YAML, and checked against the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import Place, Problem
from ..knowledge.conditions import OPERATIONS, Condition
from ..knowledge.files import FILES, Advisories, Components, Couplings, Flags, Toolchains, Versions
from ..knowledge.names import package_names
from ..knowledge.ranges import ANY_VERSION, check_range, matches, sort_key
from ..knowledge.rows import Knowledge, Ranges, Row, Selection, Selector
from ..text import nearest, shown, unknown
from .checks import OWN_COMPONENTS_HINT, component_fault
from .load import LoadedDocument, read_document
from .tree import KEY, Keys, key_place, value_place

_MORE_HINT = "add missing releases to versions.yaml, under 'existing'"
_ALL_HINT = "write '*' for all releases, including future ones"

Faults = Iterator[tuple[Any, ...]]
"""For each problem: its id, the keys that lead to it, the message, and hints."""


class RowChecks:
    """Checks of files of knowledge against *known*, the whole of it."""

    def __init__(self, known: Knowledge) -> None:
        self.known = known
        virtuals = (each for component in known.components.values() for each in component.fulfils)
        self.roles = [*known.components, *sorted(set(virtuals))]

    @cached_property
    def releases(self) -> dict[str, tuple[str, ...]]:
        """The releases that are recorded of each component, and of all that fulfil a virtual."""
        found: dict[str, tuple[str, ...]] = {}
        for name, component in self.known.components.items():
            versions = tuple(each.version for each in self.known.releases.get(name, ()))
            existing = self.known.existing.get(name)
            more = (*existing.versions, *existing.announced) if existing else ()
            for role in (name, *component.fulfils):
                found[role] = (*found.get(role, ()), *versions, *more)
        return found

    def component(self, name: str, at: Keys) -> Faults:
        """Check the name of a component."""
        fault = component_fault(name, self.known, OWN_COMPONENTS_HINT)
        if fault:
            yield "component.unknown", at, *fault

    def role(self, name: str, at: Keys) -> Faults:
        """Check the name of a component or virtual."""
        if name not in self.roles:
            message = unknown("component", name, self.roles)
            yield "component.unknown", at, message, OWN_COMPONENTS_HINT

    def ranges(self, name: str, ranges: Ranges, at: Keys) -> Faults:
        """Check that some, and not all, of the releases that exist lie in each range."""
        for n, constraint in enumerate(() if isinstance(ranges, str) else ranges):
            yield from self.ranges(name, constraint, (*at, n))
        versions = self.releases.get(name)
        if not isinstance(ranges, str) or ranges == ANY_VERSION or not versions:
            return
        inside = sum(matches(each, ranges) for each in versions)
        text = f"release of {name} lies in '{shown(ranges)}'"
        if inside == 0:
            ordered = sorted(versions, key=sort_key)
            message = f"no {text}: known are {ordered[0]} to {ordered[-1]}"
            yield "knowledge.empty-range", at, message, _MORE_HINT
        elif inside == len(versions):
            yield "knowledge.full-range", at, f"every {text}", _ALL_HINT

    def selections(self, chosen: Mapping[str, Selection], at: Keys) -> Faults:
        """Check what stands under beside, given or needs."""
        for name, selection in chosen.items():
            yield from self.role(name, (*at, name, KEY))
            if isinstance(selection, Selector):
                yield from self.ranges(name, selection.range, (*at, name, "range"))
            else:
                yield from self.ranges(name, selection, (*at, name))

    def condition(self, text: str | None, at: Keys) -> Faults:
        """Check the names of the facts that a condition looks at."""
        for name in sorted(Condition(text).names()) if text else ():
            owner, dot, rest = name.partition(".")
            # Of the facts without an owner, only those that there are can be parsed.
            message = self._unknown_fact(owner, rest) if dot else None
            if message:
                yield "fact.unknown", at, message

    def _unknown_fact(self, owner: str, rest: str) -> str | None:
        of_owner = {"flags": ("flag", [*self.known.flags]), "ops": ("operation", [*OPERATIONS])}
        what, names = of_owner.get(owner, ("fact", [*of_owner, *self.roles]))
        word = rest if owner in of_owner else owner
        if word in names:
            return None
        message = f"unknown {what} '{shown(owner)}.{shown(rest)}'"
        near = nearest(word, names)
        meant = f"{owner}.{near}" if owner in of_owner else f"{near}.{shown(rest)}"
        return f"{message}: did you mean '{meant}'?" if near else message

    def row(self, row: Row, at: Keys, owner: str | None = None) -> Faults:
        """Check what all rows have. *owner*: the component that remedies speak of."""
        yield from self.condition(row.when, (*at, "when"))
        for n, remedy in enumerate(row.remedies):
            here = (*at, "remedies", n)
            yield from self.condition(remedy.when, (*here, "when"))
            if remedy.affected is not None and owner is not None:
                yield from self.ranges(owner, remedy.affected, (*here, "affected"))
            if remedy.kind == "flag" and remedy.name not in self.known.flags:
                message = unknown("flag", remedy.name, self.known.flags)
                yield "flag.unknown", (*here, "name"), message
            if remedy.kind in ("component", "build-version"):
                yield from self.role(remedy.name, (*here, "name"))
                yield from self._remedy_range(remedy.name, remedy.value, (*here, "value"))

    def _remedy_range(self, name: str, value: str | None, at: Keys) -> Faults:
        try:
            yield from self.ranges(name, check_range(value or ANY_VERSION), at)
        except ValueError as error:
            yield "knowledge.invalid-range", at, str(error)


def faults(checks: RowChecks, value: Any) -> Faults:
    """Yield everything in one file that the whole of the knowledge belies."""
    check = _CHECKS.get(type(value))
    if check is not None:
        yield from check(checks, value)


def _owners(known: Knowledge, words: str, section: str, what: str, value: Any) -> Faults:
    """Check that the names in a list (the field *words*) are those of one entry alone."""
    entries = getattr(known, section)
    owners: dict[str, str] = {}
    for name, each in entries.items():
        for word in getattr(each, words):
            owners.setdefault(word, name)
    for name, each in getattr(value, section).items():
        for n, word in enumerate(getattr(each, words)):
            if owners[word] != name and entries[name] == each:
                message = f"the {what} '{shown(word)}' belongs to {owners[word]}"
                yield "knowledge.ambiguous-name", (section, name, words, n), message


def _components(checks: RowChecks, value: Components) -> Faults:
    hint = "the version of a module is the version of exactly one component"
    for fault in _owners(checks.known, "modules", "components", "module name", value):
        yield (*fault, hint)


def _versions(checks: RowChecks, value: Versions) -> Faults:
    for key, names in (
        ("releases", value.releases),
        ("existing", value.existing),
        ("builds", value.builds),
        ("source-trees", value.source_trees),
    ):
        for name in names:
            yield from checks.component(name, (key, name, KEY))
    distributions = package_names(checks.known.components)
    for name, releases in value.releases.items():
        for n, release in enumerate(releases):
            for required in release.requires:
                if required not in distributions:
                    at = ("releases", name, n, "requires", required, KEY)
                    yield "component.unknown", at, unknown("distribution", required, distributions)
    for channel, held in value.channels.items():
        for name in held.packages:
            yield from checks.component(name, ("channels", channel, "packages", name, KEY))


def _advisories(checks: RowChecks, value: Advisories) -> Faults:
    for n, row in enumerate(value.advisories):
        at = ("advisories", n)
        yield from checks.role(row.component, (*at, "component"))
        yield from checks.ranges(row.component, row.affected, (*at, "affected"))
        yield from checks.selections(row.beside, (*at, "beside"))
        yield from checks.row(row, at, row.component)


def _couplings(checks: RowChecks, value: Couplings) -> Faults:
    for n, row in enumerate(value.couplings):
        at = ("couplings", n)
        yield from checks.selections(row.given, (*at, "given"))
        yield from checks.selections(row.needs, (*at, "needs"))
        yield from checks.row(row, at)


def _toolchains(checks: RowChecks, value: Toolchains) -> Faults:
    for kind, each in value.kinds.items():
        for n, below in enumerate(each.on):
            if below not in checks.known.kinds:
                message = unknown("kind of toolchain", below, checks.known.kinds)
                yield "toolchain.unknown-kind", ("kinds", kind, "on", n), message
        if each.mpi:
            yield from checks.component(each.mpi, ("kinds", kind, "mpi"))
    for generation, held in value.generations.items():
        for name in held.components:
            yield from checks.component(name, ("generations", generation, "components", name, KEY))
    yield from _owners(checks.known, "compilers", "generations", "compiler", value)


def _flags(checks: RowChecks, value: Flags) -> Faults:
    for name, flag in value.flags.items():
        at = ("flags", name)
        yield from checks.component(flag.runtime, (*at, "runtime"))
        if flag.home_of is not None:
            yield from checks.component(flag.home_of, (*at, "home-of"))
        yield from checks.condition(flag.derived, (*at, "derived"))
        for n, choice in enumerate(flag.values):
            yield from checks.ranges(flag.runtime, choice.range, (*at, "values", n, "range"))
    for n, rule in enumerate(value.flag_rules):
        yield from checks.component(rule.runtime, ("rules", n, "runtime"))
        yield from checks.ranges(rule.runtime, rule.range, ("rules", n, "range"))
        yield from checks.row(rule, ("rules", n), rule.runtime)


_CHECKS: Mapping[type, Callable[[RowChecks, Any], Faults]] = {
    Components: _components,
    Versions: _versions,
    Advisories: _advisories,
    Couplings: _couplings,
    Toolchains: _toolchains,
    Flags: _flags,
}


Sheet = LoadedDocument[Any]
"""One file of knowledge; its value is one of the models of FILES."""

# Where rows have ids: the sections by what messages call them, and their keys.
_ROWS = {
    "symptoms": "symptoms",
    "log sources": "sources",
    "library names": "libraries",
    "advisories": "advisories",
    "couplings": "couplings",
    "flag rules": "rules",
}


def read_sheets(folder: Path) -> tuple[Sheet, ...]:
    """Read those files of knowledge that the folder has, each checked by itself."""
    files = {folder / f"{stem}.yaml": model for stem, model in FILES.items()}
    return tuple(read_document(path, model) for path, model in files.items() if path.exists())


def as_knowledge(sheets: Sequence[Sheet]) -> Knowledge:
    """Return what the files of one folder say together."""
    values = [each.value for each in sheets]
    sections = Knowledge.model_fields
    return Knowledge(
        **{n: getattr(v, n) for v in values for n in type(v).model_fields.keys() & sections}
    )


def problems(
    sheets: Sequence[Sheet], others: Sequence[Knowledge], merged: Knowledge
) -> list[Problem]:
    """Return what in the files does not agree with *merged*, the whole of the knowledge.

    *others*: knowledge that is part of the whole and was checked before.
    """
    problems = [*_duplicates(sheets, others)]
    checks = RowChecks(merged)
    for sheet in sheets:
        for problem_id, keys, message, *hints in faults(checks, sheet.value):
            in_key = keys[-1:] == (KEY,)
            place = key_place(sheet.root, keys[:-1]) if in_key else value_place(sheet.root, keys)
            problems.append(Problem(problem_id, message, place, tuple(hints)))
    return problems


def _duplicates(sheets: Sequence[Sheet], others: Sequence[Knowledge]) -> Iterator[Problem]:
    """Yield a problem for every id that two rows have.

    A row of another folder and of the same kind is replaced, which is what its id is for.
    """
    elsewhere = {row.id: kind for each in others for kind, row in _rows(each)}
    first: dict[str, tuple[str, Place]] = {}
    for sheet in sheets:
        count = dict.fromkeys(_ROWS, 0)
        for kind, row in _rows(sheet.value):
            place = value_place(sheet.root, (_ROWS[kind], count[kind], "id"))
            count[kind] += 1
            before, at = first.setdefault(row.id, (kind, place))
            taken = ""
            if at is not place and (before != kind or at.file == place.file):
                taken = f"it is used at {at}"
            elif elsewhere.get(row.id, kind) != kind:
                taken = f"it is used in the {elsewhere[row.id]}"
            if taken:
                message = f"duplicate id '{shown(row.id)}': {taken}"
                yield Problem("knowledge.duplicate-id", message, place, ("use another id",))


def _rows(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the rows of all the knowledge, or of one file, each with its kind."""
    for kind in _ROWS:
        for row in getattr(value, kind.replace(" ", "_"), ()):
            yield kind, row
