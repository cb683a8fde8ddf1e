"""Installed packages of Spack: what ``spack find --json`` writes, and spack.lock.

The records are those of ``Spec.to_node_dict`` in Spack's lib/spack/spack/spec.py; spack.lock has
them under ``concrete_specs``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from ..documents.source import Source
from ..documents.tree import Pairs, Scalar
from ..documents.yaml_nodes import parse
from ..errors import DocumentError, Place, Problem
from ..knowledge.channels import SUBDIRS
from ..text import shown
from .environment_yml import EnvironmentFile
from .reading import MOST_VALUES, Reading, leaves, node_at, pairs_at
from .spack_yaml import spec_bounds

_LIST, _LOCK = "specs", "concrete_specs"
# Types of dependencies, and the languages of compilers; what has none is only for building.
_RUNS = frozenset({"link", "run", "c", "cxx", "fortran"})
_BEGIN = f'{{"{_LIST}":'


def read(source: Source) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return the packages with their releases and compilers, and notes. Raises DocumentError.

    Of spack.lock the roots, and what they need to run; and the compilers, also those of builds.
    """
    reading = Reading("spack find --json writes such a file")
    software: dict[str, str] = {}
    places: dict[str, Place] = {}
    systems: dict[str, Place] = {}
    records, roots = _records(reading, source)
    for record in _needed(reading, records, roots) if roots else records.values():
        place = _place(record.place, source)
        if pairs_at(record, "external"):
            text = f"that {reading.text(record, 'name')} is software of the machine is left out"
            reading.note(place, text)
        for holder in filter(None, (record, pairs_at(record, "compiler"))):
            name, version = reading.text(holder, "name"), reading.text(holder, "version")
            bounds = spec_bounds(f"@={version}") or f"=={version}"
            if name and software.setdefault(name, bounds) != bounds:
                text = f"{shown(name)} {shown(bounds)} is left out: {software[name]} is before it"
                reading.note(place, text)
            places.setdefault(name or "", place)
        for value in _systems(record):
            systems.setdefault(value, place)
    reading.check()
    if places:
        text = "variants, dependencies, hashes and external prefixes are left out"
        reading.note(next(iter(places.values())), text)
    for value, place in systems.items():
        if value not in SUBDIRS:
            reading.note(place, f"the target or system {shown(value)} is left out")
    asked = EnvironmentFile(software=tuple(software.items()), only_pip=True, places=places)
    return asked, tuple(reading.notes)


def _records(reading: Reading, source: Source) -> tuple[dict[str, Pairs], list[Pairs]]:
    """Return the record of each package by its hash or number, and the roots of a lock."""
    try:
        is_list = isinstance(json.loads(source.text), list)
    except (ValueError, RecursionError) as error:
        place = Place(source.file, getattr(error, "lineno", 1), getattr(error, "colno", 1))
        problem = Problem("package-list.not-json", "not JSON", place, (reading.again,))
        raise DocumentError((problem,)) from error
    # JSON is YAML, whose reader knows the lines; it reads mappings alone.
    text = f"{_BEGIN}{source.text}}}" if is_list else source.text
    root, problems = parse(source._replace(text=text), MOST_VALUES)
    reading.problems += problems
    if is_list:
        rows = reading.mappings(node_at(root, _LIST), _LIST)
        return {str(number): row for number, row in enumerate(rows)}, []
    records = reading.pairs(pairs_at(root, _LOCK), _LOCK)
    roots = reading.mappings(node_at(root, "roots"), "roots")
    return {key.text: row for key, row in records if isinstance(row, Pairs)}, list(roots)


def _needed(reading: Reading, records: dict[str, Pairs], roots: list[Pairs]) -> Iterator[Pairs]:
    """Yield the roots of a lock, compilers, and what they need to run; note the others."""
    todo, needed = [reading.text(root, "hash") or "" for root in roots], set[str]()
    while todo:
        record_hash = todo.pop()
        rows = node_at(records.get(record_hash), "dependencies")
        # A list, or a mapping by name.
        values = [value for _, value in rows.pairs] if isinstance(rows, Pairs) else ()
        for row in getattr(rows, "items", values) if record_hash not in needed else ():
            if {each.text for each in leaves(row)} & _RUNS:
                todo.append(reading.text(row, "hash") or "")
        needed.add(record_hash)
    specs = ", ".join(str(reading.text(root, "spec")) for root in roots)
    text = f"only {shown(specs, 240)} are asked for; the other packages are dependencies"
    reading.note(roots[0].place, text)
    for record_hash, record in records.items():
        if record_hash in needed:
            yield record
        else:
            name, version = reading.text(record, "name"), reading.text(record, "version")
            reading.note(record.place, f"{name} =={version} is left out: only builds need it")


def _place(place: Place, source: Source) -> Place:
    is_shifted = place.line == 1 and source.text.lstrip().startswith("[")
    return place._replace(column=place.column - len(_BEGIN)) if is_shifted else place


def _systems(record: Pairs) -> Iterator[str]:
    """Yield the operating system and the microarchitecture that a package is built for."""
    arch = pairs_at(record, "arch")
    target = node_at(arch, "target")
    for node in (node_at(arch, "platform_os"), node_at(target, "name") or target):
        if isinstance(node, Scalar):
            yield node.text
