"""pixi.lock, versions 5 and 6: https://pixi.sh/latest/workspace/lockfile/."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..documents.source import Source
from ..documents.tree import Node, Pairs
from ..documents.yaml_nodes import parse
from ..text import shown
from .packages import CondaEntry, PackageList, PipEntry
from .reading import MOST_VALUES, Reading, node_at
from .writing import yaml_text

_AGAIN = "pixi lock writes such a file"
_VERSIONS = ("5", "6")
_KINDS = ("conda", "pypi")
_CONDA, _PYPI = _KINDS
DEFAULT = "default"


def read(
    source: Source, platform: str, environment: str = DEFAULT
) -> tuple[PackageList, tuple[str, ...]]:
    """Return the packages of an environment on a platform, and notes on what was left out.

    Raises DocumentError, also where the file has no such environment or platform.
    """
    root, problems = parse(source, MOST_VALUES)
    reading = Reading(_AGAIN, [*problems])
    version = reading.text(root, "version")
    if version not in (None, *_VERSIONS):
        known = " and ".join(_VERSIONS)
        place = root.index["version"][1].place
        message = f"pixi.lock has version {version}; envbuild reads versions {known}"
        reading.stop("package-list.unknown-version", place, message)
    chosen = _chosen(reading, root, environment, "environment", "environments")
    channels = tuple(
        reading.clean(url, each.place)
        for each in reading.mappings(node_at(chosen, "channels"), "channels")
        if (url := reading.text(each, "url"))
    )
    indexes = reading.texts(node_at(chosen, "indexes"), "indexes")
    named = _chosen(reading, chosen, platform, "platform", "packages", listed=True)
    for holder, taken, what in (
        (node_at(root, "environments"), environment, "environment"),
        (node_at(chosen, "packages"), platform, "platform"),
    ):
        for key, _ in reading.pairs(holder, what):
            if key.text != taken:
                reading.note(key.place, f"{what} {shown(key.text)} is left out")
    wanted = _locations(reading, named)
    conda: list[CondaEntry] = []
    pip: list[PipEntry] = []
    for kind, location, each in _rows(reading, root):
        if (kind, location) not in wanted:
            continue
        del wanted[kind, location]
        depends = "depends" if kind == _CONDA else "requires_dist"
        needs = reading.texts(node_at(each, depends), depends)
        if kind == _CONDA:
            size = reading.text(each, "size", required=False)
            entry = reading.conda(location, each.place, each, size, needs)
            conda += [entry] if entry else []
        else:
            file = reading.pip(each, location, each, needs)
            pip += [file] if file else []
    for (kind, location), node in wanted.items():
        message = f"{kind} {location} is missing in packages"
        reading.wrong("package-list.undescribed-package", node.place, message)
    reading.check()
    found = PackageList(
        platform, channels, tuple(conda), tuple(pip), _clean(reading, indexes, root)
    )
    return found.sorted(), tuple(reading.notes)


def _clean(reading: Reading, urls: tuple[str, ...], root: Pairs) -> tuple[str, ...]:
    return tuple(reading.clean(each, root.place) for each in urls)


def _chosen(
    reading: Reading, holder: Pairs, name: str, what: str, key: str, *, listed: bool = False
) -> Any:
    """Return what stands under a name below a key, or stop with the names that are there."""
    node = node_at(holder, key)
    found = node_at(node, name) if isinstance(node, Pairs) else None
    if not isinstance(node, Pairs):
        place = (node or holder).place
        reading.stop("package-list.missing-key", place, f"{key} must have a key for each {what}")
    if found is None or (not listed and not isinstance(found, Pairs)):
        there = ", ".join(node.index) or "none"
        message = f"the file has no {what} {name} (it has: {there})"
        reading.stop("package-list.unknown-entry", node.place, message)
    return found


def _locations(reading: Reading, named: Node) -> dict[tuple[str, str], Pairs]:
    """Return the packages that are named: (conda or pypi, URL or path) -> where."""
    found = {}
    for each in reading.mappings(named, "packages"):
        for kind in _KINDS:
            location = reading.text(each, kind, required=False)
            if location is not None:
                found[kind, location] = each
                break
        else:
            message = "a package needs the key conda or pypi"
            reading.wrong("package-list.missing-key", each.place, message)
    return found


def _rows(reading: Reading, root: Pairs) -> Iterator[tuple[str, str, Pairs]]:
    """Yield what packages are described: conda or pypi, URL or path, the description."""
    for each in reading.mappings(node_at(root, "packages"), "packages"):
        for kind in _KINDS:
            location = reading.text(each, kind, required=False)
            if location is None and reading.text(each, "kind", required=False) == kind:
                # Version 5.
                location = reading.text(each, "url", required=False) or reading.text(
                    each, "path", required=False
                )
            if location is not None:
                yield kind, location, each
                break


def write(packages: PackageList) -> str:
    """Return the file, version 6, with the one environment."""
    rows: list[dict[str, Any]] = [_conda_row(each) for each in packages.conda]
    rows += [_pip_row(each) for each in packages.pip]
    named = [{_CONDA: each.url} for each in packages.conda]
    named += [{_PYPI: each.url} for each in packages.pip]
    environment = {
        "channels": [{"url": each} for each in packages.channels],
        **({"indexes": list(packages.indexes)} if packages.indexes else {}),
        "packages": {packages.platform: named},
    }
    return yaml_text({"version": 6, "environments": {DEFAULT: environment}, "packages": rows})


def _conda_row(each: CondaEntry) -> dict[str, Any]:
    said = {
        "sha256": each.sha256,
        "md5": each.md5,
        "depends": list(each.depends),
        "size": each.size,
    }
    return {_CONDA: each.url, **{name: value for name, value in said.items() if value}}


def _pip_row(each: PipEntry) -> dict[str, Any]:
    said = {"sha256": each.sha256, "requires_dist": list(each.depends)}
    row = {_PYPI: each.url, "name": each.name, "version": each.version}
    return {**row, **{name: value for name, value in said.items() if value}}
