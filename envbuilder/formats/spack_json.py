"""Installed packages of Spack: what ``spack find --json`` writes, and spack.lock.

The records are those of ``Spec.to_node_dict`` in Spack's lib/spack/spack/spec.py; spack.lock has
them under ``concrete_specs``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from ..documents.source import Source
from ..documents.tree import Pairs
from ..documents.yaml_nodes import parse
from ..errors import DocumentError, Place, Problem
from ..knowledge.channels import SUBDIRS
from ..text import shown
from .environment_yml import EnvironmentFile
from .reading import MOST_VALUES, Reading, node_at, pairs_at
from .spack_yaml import spec_bounds

_LIST, _LOCK = "specs", "concrete_specs"
_BEGIN = f'{{"{_LIST}":'


def read(source: Source) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return the packages with their releases and compilers, and notes. Raises DocumentError."""
    reading = Reading("spack find --json writes such a file")
    software: dict[str, str] = {}
    places: dict[str, Place] = {}
    targets: dict[str, Place] = {}
    for record in _records(reading, source):
        place = _place(record.place, source)
        for holder in filter(None, (record, pairs_at(record, "compiler"))):
            name, version = reading.text(holder, "name"), reading.text(holder, "version")
            bounds = spec_bounds(f"@={version}") or f"=={version}"
            if name and software.setdefault(name, bounds) != bounds:
                text = f"{shown(name)} {shown(bounds)} is left out: {software[name]} is before it"
                reading.note(place, text)
            places.setdefault(name or "", place)
        targets.setdefault(_target(record) or "", place)
    reading.check()
    if places:
        text = "variants, dependencies, hashes and external prefixes are left out"
        reading.note(next(iter(places.values())), text)
    for target, place in targets.items():
        if target and target not in SUBDIRS:
            reading.note(place, f"the target {shown(target)} is left out")
    asked = EnvironmentFile(software=tuple(software.items()), only_pip=True, places=places)
    return asked, tuple(reading.notes)


def _records(reading: Reading, source: Source) -> Iterator[Pairs]:
    """Yield the record of each package."""
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
        yield from reading.mappings(node_at(root, _LIST), _LIST)
    for _, record in reading.pairs(pairs_at(root, _LOCK), _LOCK):
        if isinstance(record, Pairs):
            yield record


def _place(place: Place, source: Source) -> Place:
    is_shifted = place.line == 1 and source.text.lstrip().startswith("[")
    return place._replace(column=place.column - len(_BEGIN)) if is_shifted else place


def _target(record: Pairs) -> str | None:
    """Return the microarchitecture that a package is built for."""
    arch = pairs_at(record, "arch")
    target = node_at(arch, "target")
    holder, key = (target, "name") if isinstance(target, Pairs) else (arch, "target")
    return Reading("").text(holder, key, required=False) if holder else None
