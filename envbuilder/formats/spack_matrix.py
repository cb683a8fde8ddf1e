"""The specs of a spack.yaml, with its definitions and matrices expanded.

https://spack.readthedocs.io, "Spec Matrices", "Spec List References" and "SpecLists as
Constraints".
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..documents.tree import Node, Pairs, Scalar
from ..errors import Place
from ..text import counted, shown
from .reading import Reading, node_at

MAX_SPECS = 10_000
"""Specs of one list: a file whose lists double each other would fill the memory."""

# A list by its name: $compilers; as a constraint on other specs: $%compilers, $^mpis.
_REFERENCE = re.compile(r"\$(?P<sigil>[%^]?)(?P<name>\w[\w-]*)")
# A name with its version, and each constraint with its mark: hdf5@1.10, %gcc@7, ^mpich, +mpi.
_PART = re.compile(r"[%^+~]?[^\s%^+~]+")
_RANGE = re.compile(r"@.*[:,]")
_NAME = re.compile(r"\w")


class SpecText(NamedTuple):
    """A spec as it is written, or as a matrix makes it, and where."""

    text: str
    place: Place


@dataclass(frozen=True)
class _SpecLists:
    """The lists of a file by their names; a list may refer to those before it."""

    reading: Reading
    lists: dict[str, list[SpecText]] = field(default_factory=dict)

    def define(self, definition: Pairs) -> None:
        """Add a definition; note one with a condition, which is Python of Spack."""
        if "when" in definition.index:
            self.reading.leave_out("a definition with when", definition, definition.place)
            return
        for key, value in definition.pairs:
            self.lists.setdefault(key.text, []).extend(self.expand(value, key.text))

    def expand(self, node: Node | None, label: str) -> list[SpecText]:
        """Return the specs of a list; note references to no list, and items of other kinds."""
        specs: list[SpecText] = []
        for item in self.reading.items(node, label):
            if isinstance(item, Pairs) and "matrix" in item.index:
                specs += self._matrix(item)
            elif isinstance(item, Scalar):
                specs += self._spec(item)
            elif isinstance(item, Pairs) and "specs" in item.index:
                # A group of specs; an older release has no groups.
                self.reading.others(item, ("specs",), "group: ")
                specs += self.expand(node_at(item, "specs"), label)
            else:
                self.reading.leave_out("an item of specs", item, item.place)
        if len(specs) > MAX_SPECS:
            message = f"{label} has more than {MAX_SPECS} specs"
            self.reading.stop("package-list.too-many-specs", item.place, message)
        return specs

    def _spec(self, item: Scalar) -> list[SpecText]:
        text = item.text.strip()
        reference = _REFERENCE.fullmatch(text)
        if reference is None:
            return [SpecText(text, item.place)]
        if reference["name"] not in self.lists:
            self.reading.note(item.place, f"{shown(text)} is left out: no such definition")
        sigil = reference["sigil"]
        return [
            each._replace(text=sigil + each.text) for each in self.lists.get(reference["name"], ())
        ]

    def _matrix(self, item: Pairs) -> list[SpecText]:
        """Return the first combination of each package; note the others, which are other stacks."""
        matrix = node_at(item, "matrix")
        rows = [self.expand(row, "matrix") for row in self.reading.items(matrix, "matrix")]
        if math.prod(map(len, rows)) > MAX_SPECS:
            message = f"the matrix has more than {MAX_SPECS} specs"
            self.reading.stop("package-list.too-many-specs", item.place, message)
        excluded = self._excluded(item)
        specs: dict[str, SpecText] = {}
        repeated: dict[str, None] = {}
        for combination in itertools.product(*rows):
            spec = _combined(combination)
            parts = _PART.findall(spec.text)
            if any(_satisfies(parts, each) for each in excluded):
                continue
            name = parts[0].partition("@")[0]
            if specs.setdefault(name, spec) is not spec:
                repeated[name] = None
        text = f"the matrix becomes {counted(len(specs), 'spec')} of one stack"
        if repeated:
            text += f", with the first combination of {shown(', '.join(repeated), 240)}"
        self.reading.note(item.place, text)
        return list(specs.values())

    def _excluded(self, item: Pairs) -> list[list[str]]:
        """Return the parts of each exclusion; note those that only Spack can decide."""
        excluded = []
        for each in self.expand(node_at(item, "exclude"), "exclude"):
            parts = _PART.findall(each.text)
            if any(_RANGE.search(part) for part in parts):
                self.reading.note(
                    each.place, f"the exclusion {shown(each.text)} is left out: a range"
                )
            else:
                excluded.append(parts)
        return excluded


def expand(reading: Reading, environment: Pairs) -> list[SpecText]:
    """Return the specs of an environment, its lists and matrices expanded."""
    lists = _SpecLists(reading)
    for definition in reading.mappings(node_at(environment, "definitions"), "definitions"):
        lists.define(definition)
    return lists.expand(node_at(environment, "specs"), "specs")


def _combined(parts: Sequence[SpecText]) -> SpecText:
    """Return one spec of a combination: the package first, its constraints behind it."""
    named = sorted(parts, key=lambda part: not _NAME.match(part.text))
    return SpecText(" ".join(part.text for part in named), named[0].place)


def _satisfies(parts: Sequence[str], exclusion: Sequence[str]) -> bool:
    """Return whether a spec has each part of an exclusion: of %gcc also %gcc@4.9.3."""
    return all(
        any(part == each or part.startswith((f"{each}@", f"{each}.")) for part in parts)
        for each in exclusion
    )
