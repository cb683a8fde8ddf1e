"""Facts that logs state: releases of components, architecture, GPU, driver, network, paths."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from ..knowledge.conditions import FACTS, Condition, Value
from ..knowledge.names import cuda_series, package_names
from ..knowledge.ranges import matches
from ..knowledge.rows import Advisory, Knowledge, Row
from ..machine.modules.names import provided_by_name, stems
from ..resolve.facts import Facts
from ..resolve.verdicts import Match, StackFacts, match
from ..target_tools.names import normalize
from .index import SymptomIndex
from .search import Findings

_TEXTS = ("wheel", "requirement", "installed", "module")


@dataclass(frozen=True)
class LogFacts:
    """Facts in the order in which logs state them."""

    knowledge: Knowledge
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def versions(self) -> dict[str, str]:
        """The release of each component of which the logs state exactly one."""
        return {
            name: values[0]
            for name, values in self.values.items()
            if name in self.knowledge.components and len(values) == 1
        }

    @cached_property
    def stated(self) -> dict[str, Value]:
        """The facts of conditions that the logs state."""
        values: dict[str, Value] = {}
        for name, texts in self.values.items():
            if name in FACTS and FACTS[name].type == "set":
                values[name] = frozenset(texts)
            elif name in FACTS and len(texts) == 1:
                values[name] = texts[0]
        return values

    @cached_property
    def matches(self) -> dict[str, Match]:
        """The rows that apply to these releases, by id."""
        if not self.versions:
            return {}
        stack = StackFacts(self.versions, Facts(self.stated))
        return {row.row.id: row for row in match(self.knowledge, stack)}

    def lookup(self, name: str) -> Value | None:
        """Return a fact of a condition; ``nccl.version`` is the release of a component."""
        component, _, rest = name.partition(".")
        if rest == "version":
            return self.versions.get(component)
        return self.stated.get(name)

    def holds(self, condition: str) -> bool | None:
        """Return whether a condition holds; None: it depends on a fact that no log states."""
        return Condition(condition).evaluate(self.lookup)

    def refutes(self, row: Row) -> bool:
        """Return whether these releases or facts exclude a row."""
        if Condition(row.when).evaluate(self.lookup) is False:
            return True
        version = self.versions.get(row.component) if isinstance(row, Advisory) else None
        if version is None or not isinstance(row, Advisory):
            return False
        ranges = (row.affected,) if isinstance(row.affected, str) else row.affected
        return not any(matches(version, text) for text in ranges)

    def applies(self, row: str) -> bool:
        """Return whether a row applies for certain."""
        return row in self.matches and self.matches[row].verdict == "holds"


def read_facts(logs: Sequence[Findings], index: SymptomIndex) -> LogFacts:
    """Return the facts that the lines of known programs state."""
    values: dict[str, dict[str, None]] = {}
    for name, text in _facts(logs, index):
        values.setdefault(name, {})[text] = None
    return LogFacts(index.knowledge, {name: tuple(texts) for name, texts in values.items()})


def _facts(logs: Sequence[Findings], index: SymptomIndex) -> Iterator[tuple[str, str]]:
    names = package_names(index.knowledge.components)
    for findings in logs:
        for sign, hits in findings.hits.items():
            if "/facts/" not in sign:
                continue
            for hit in hits:
                for group, text in hit.groups.items():
                    yield from _fact(_NUMBER.sub("", group), text, names, index.knowledge)


def _fact(
    group: str, text: str, names: Mapping[str, str], knowledge: Knowledge
) -> Iterator[tuple[str, str]]:
    if group in _TEXTS:
        yield from _stated(group, text, names, knowledge)
    elif group == "link":
        yield "network", _NETWORKS.get(text.lower(), text.lower())
    elif group in FACTS:
        yield group, _ALIASES.get(text, text)
    else:
        yield group.replace("_", "-"), text


_NUMBER = re.compile(r"\d$")
_NETWORKS = {"ib": "infiniband", "roce": "ethernet", "cxi": "slingshot", "psm2": "omnipath"}
_ALIASES = {"powerpc64le": "ppc64le"}


def _stated(
    kind: str, text: str, names: Mapping[str, str], knowledge: Knowledge
) -> Iterator[tuple[str, str]]:
    """Yield what a wheel's file name, ``torch==2.5.1``, pip's last line or a module says."""
    if kind == "module":
        yield from provided_by_name(text, stems(knowledge.components)).items()
    elif kind == "wheel":
        try:
            name, version, _, tags = parse_wheel_filename(text)
        except InvalidWheelFilename:
            return
        yield from _package(name, str(version), names)
        for tag in sorted({tag.platform for tag in tags}):
            yield from (("arch", arch) for arch in _ARCHES if tag.endswith(f"_{arch}"))
    else:
        separator = "==" if kind == "requirement" else "-"
        yield from _packages(text.split(), separator, names)


_ARCHES = ("x86_64", "aarch64", "ppc64le")


def _packages(
    words: Iterable[str], separator: str, names: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    for word in words:
        name, _, version = word.rpartition(separator)
        yield from _package(name.partition("[")[0], version, names)


def _package(name: str, version: str, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    release, _, local = version.partition("+")
    component = names.get(normalize(name)) if name else None
    if component and release[:1].isdigit():
        yield component, release
    if local.startswith("cu") and local[2:].isdigit():
        yield "cuda", cuda_series(local[2:])
