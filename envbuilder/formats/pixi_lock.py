"""pixi.lock, versions 5 to 7: https://pixi.sh/latest/workspace/lockfile/."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from ..documents.source import Source
from ..documents.tree import Node, Pairs
from ..documents.yaml_nodes import parse
from ..text import shown
from .package_rows import conda_entry, pip_entry
from .packages import CondaEntry, PackageList, PipEntry
from .reading import MOST_VALUES, Reading, node_at
from .writing import yaml_text

_AGAIN = "pixi lock writes such a file"
_VERSIONS = ("5", "6", "7")
_KINDS = ("conda", "pypi")
_CONDA, _PYPI = _KINDS
DEFAULT = "default"
_KEYS = ("version", "platforms", "environments", "packages")
_OF_ENVIRONMENT = ("channels", "indexes", "packages")
# Keys of rattler_lock's models of versions 5 to 7: those that are read, that the URL repeats, or
# that describe the package.
_OF_PACKAGE = frozenset(
    {"conda", "pypi", "kind", "url", "path", "sha256", "md5", "size", "depends", "requires_dist"}
    | {"name", "version", "build", "build_number", "subdir", "noarch", "arch", "platform"}
    | {"channel", "file_name", "legacy_bz2_md5", "legacy_bz2_size"}
    | {"license", "license_family", "purls", "timestamp"}
)
_SOURCE = "conda_source"
_SCHEMES = ("http://", "https://", "file://")


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
    environment = _only(reading, root, environment, platform)
    chosen = _chosen(reading, root, environment, "environment", "environments")
    channels = tuple(
        reading.clean(url, each.place)
        for each in reading.mappings(node_at(chosen, "channels"), "channels")
        if (url := reading.text(each, "url"))
    )
    indexes = reading.texts(node_at(chosen, "indexes"), "indexes")
    key = _platform_key(reading, root, chosen, platform)
    reading.others(root, _KEYS)
    reading.others(chosen, _OF_ENVIRONMENT)
    for each in reading.mappings(node_at(chosen, "channels"), "channels"):
        reading.others(each, ("url",), "channel: ")
    named = _chosen(reading, chosen, key, "platform", "packages", listed=True)
    _note_others(reading, node_at(root, "environments"), environment, "environment")
    _note_others(reading, node_at(chosen, "packages"), key, "platform")
    wanted = _locations(reading, named)
    rows = [row for row in _rows(reading, root) if row[:2] in wanted]
    reading.others_of((row for _, _, row in rows), _OF_PACKAGE, "packages")
    entries = [*_described(reading, rows, wanted), *_undescribed(reading, wanted)]
    conda = tuple(each for each in entries if isinstance(each, CondaEntry))
    pip = tuple(each for each in entries if isinstance(each, PipEntry))
    indexes = tuple(reading.clean(each, root.place) for each in indexes)
    reading.check()
    return PackageList(platform, channels, conda, pip, indexes).sorted(), tuple(reading.notes)


def _described(
    reading: Reading, rows: list[tuple[str, str, Pairs]], wanted: dict[tuple[str, str], Pairs]
) -> Iterator[CondaEntry | PipEntry]:
    """Yield the packages that are described, and take them out of *wanted*."""
    for kind, location, row in rows:
        node = wanted.pop((kind, location), None)
        depends = "depends" if kind == _CONDA else "requires_dist"
        needs = reading.texts(node_at(row, depends), depends)
        entry: CondaEntry | PipEntry | None = None
        if node and kind == _CONDA:
            size = reading.text(row, "size", required=False)
            entry = conda_entry(reading, location, row.place, row, size, needs)
        elif node and location.startswith(_SCHEMES):
            entry = pip_entry(reading, row, location, row, needs)
        elif node:
            reading.note(node.place, f"{shown(location)} is left out: not a file of an index")
        if entry:
            yield entry


def _note_others(reading: Reading, holder: Node | None, chosen: str, what: str) -> None:
    for name, _ in reading.pairs(holder, what):
        if name.text != chosen:
            reading.note(name.place, f"{what} {shown(name.text)} is left out")


def _only(reading: Reading, root: Pairs, environment: str, platform: str) -> str:
    """Return the environment, or the first one with packages where it has none of a platform."""
    environments = node_at(root, "environments")
    names = [
        name
        for name, value in reading.pairs(environments, "environments")
        if node_at(node_at(value, "packages"), _platform_key(reading, root, value, platform))
    ]
    if environment in (name.text for name in names) or not names:
        return environment
    reading.note(names[0].place, f"using the environment {shown(names[0].text)}")
    return names[0].text


def _platform_key(reading: Reading, root: Pairs, chosen: Node, platform: str) -> str:
    """Return the key of a platform; from version 7 on platforms have names of their own."""
    keys = [key.text for key, _ in reading.pairs(node_at(chosen, "packages"), "packages")]
    if platform in keys:
        return platform
    for each in reading.mappings(node_at(root, "platforms"), "platforms"):
        name = reading.text(each, "name")
        if name in keys and reading.text(each, "subdir", required=False) == platform:
            return str(name)
    return platform


def _undescribed(
    reading: Reading, wanted: dict[tuple[str, str], Pairs]
) -> Iterator[CondaEntry | PipEntry]:
    """Yield the packages that are listed and not described, by their names; note what they lack."""
    # lazy import: few files list wheels without describing them
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    for (kind, url), node in wanted.items():
        try:
            wheel = kind == _PYPI and parse_wheel_filename(unquote(url.rpartition("/")[2]))
        except InvalidWheelFilename:
            reading.note(node.place, f"{shown(url)} is left out: not a wheel of an index")
            continue
        reading.note(node.place, f"{shown(url)} is not described: it has no hash here")
        if wheel:
            yield PipEntry(
                wheel[0], str(wheel[1]), reading.clean(url, node.place), place=node.place
            )
        elif entry := conda_entry(reading, url, node.place):
            yield entry


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
            source = reading.text(each, _SOURCE, required=False)
            text = f"{source} is left out: a package that pixi builds" if source else "no package"
            reading.note(each.place, shown(text, 240))
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
