"""Locks of Python's packages: pylock.toml and uv.lock.

https://packaging.python.org/en/latest/specifications/pylock-toml;
https://docs.astral.sh/uv/concepts/projects/layout, "The lockfile".
"""

from __future__ import annotations

from typing import NamedTuple

from ..documents.source import Source
from ..documents.tree import Pairs
from ..errors import Place
from ..target_tools.names import normalize
from ..text import shown
from .environment_yml import EnvironmentFile
from .markers import applies
from .reading import Reading, leaves, node_at
from .toml_nodes import load, nodes

_OF_FILE = ("lock-version", "created-by", "packages", "requires-python")
_OUTSIDE = ("vcs", "directory", "archive")
_OF_PACKAGE = ("name", "version", "marker", "index", "wheels", "sdist", *_OUTSIDE)
_FORKS, _OPTIONAL, _NEEDS = "resolution-markers", "optional-dependencies", "dependencies"
_OF_UV = ("version", "revision", "requires-python", "package", _FORKS)
_OF_UV_PACKAGE = ("name", "version", "source", _NEEDS, "metadata", "wheels", "sdist", _FORKS)


class _LockRow(NamedTuple):
    """A package of a lock. ``loss``: why it is left out; empty: it is not."""

    row: Pairs
    loss: str
    registry: str | None = None
    marker: str = ""


def read_pylock(source: Source) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return the packages of pylock.toml, and notes on what was left out. Raises DocumentError."""
    reading, tree = Reading("uv export and pip lock write such a file"), nodes(source, load(source))
    rows = list(reading.mappings(node_at(tree, "packages"), "packages"))
    reading.others(tree, _OF_FILE)
    reading.others_of(rows, _OF_PACKAGE, "packages")
    packages = []
    for row in rows:
        outside = next((key for key in _OUTSIDE if key in row.index), None)
        loss = (
            f"it is from {outside or 'no index'}" if outside or "version" not in row.index else ""
        )
        marker = reading.text(row, "marker", required=False) or ""
        packages.append(_LockRow(row, loss, reading.text(row, "index", required=False), marker))
    return _asked(reading, tree, packages)


def read_uv(source: Source) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return what the projects of uv.lock need on Linux, and notes on what was left out.

    The lock is for all systems: packages that only others need are left out. Raises DocumentError.
    """
    reading, tree = Reading("uv lock writes such a file"), nodes(source, load(source))
    rows = list(reading.mappings(node_at(tree, "package"), "package"))
    projects = [row for row in rows if node_at(node_at(row, "source"), "registry") is None]
    reading.others(tree, _OF_UV)
    reading.others_of(projects, _OF_UV_PACKAGE, "package")
    reading.others_of(rows, (*_OF_UV_PACKAGE, _OPTIONAL, "dev-dependencies"), "package")
    markers, packages = _needed(reading, rows, projects), []
    for row in rows:
        origin = ", ".join(leaf.text for leaf in leaves(node_at(row, "source") or row))
        loss = f"it is from {origin}" if row in projects else ""
        if not loss and id(row) not in markers:
            loss = "only an extra, a group or another system needs it"
        conditions = markers.get(id(row), {""})
        marker = "" if "" in conditions else " or ".join(f"({each})" for each in conditions)
        packages.append(_LockRow(row, loss, origin.rpartition(", ")[2], marker))
    return _asked(reading, tree, packages)


def _needed(reading: Reading, rows: list[Pairs], projects: list[Pairs]) -> dict[int, set[str]]:
    """Return the markers with which each package is needed, by its id; '' for always."""
    by_name: dict[str, list[Pairs]] = {}
    for row in rows:
        by_name.setdefault(normalize(reading.text(row, "name") or ""), []).append(row)
    needed: dict[int, set[str]] = {}
    todo = [(row, "") for row in projects]
    done: set[tuple[int, str]] = set()
    while todo:
        row, extra = todo.pop()
        if (id(row), extra) in done:
            continue
        done.add((id(row), extra))
        needs = node_at(node_at(row, _OPTIONAL), extra) if extra else node_at(row, _NEEDS)
        for need in reading.mappings(needs, _NEEDS):
            marker = reading.text(need, "marker", required=False) or ""
            version = reading.text(need, "version", required=False)
            extras = reading.texts(node_at(need, "extra"), "extra")
            for each in by_name.get(normalize(reading.text(need, "name") or ""), ()):
                own = reading.text(each, "version", required=False)
                if version in (None, own) and applies(marker) is not False:
                    needed.setdefault(id(each), set()).add(marker)
                    todo += [(each, name) for name in ("", *extras)]
    return needed


def _asked(
    reading: Reading, tree: Pairs, packages: list[_LockRow]
) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return what a lock asks for; note the other packages, the hashes and further indexes."""
    places: dict[str, Place] = {}
    indexes: dict[str, list[_LockRow]] = {}
    for package in packages:
        name = reading.text(package.row, "name")
        if package.loss:
            reading.note(package.row.place, f"{shown(f'{name} is left out: {package.loss}', 240)}")
            continue
        _check_files(reading, package.row, str(name))
        if package.registry:
            index = reading.clean(package.registry, package.row.place)
            indexes.setdefault(index, []).append(package)
        marker = f" ; {package.marker}" if package.marker else ""
        version = reading.text(package.row, "version")
        places[f"{name}=={version}{marker}"] = package.row.place
    for index, others in list(indexes.items())[1:]:
        names = ", ".join(str(reading.text(each.row, "name")) for each in others)
        text = f"{shown(names, 240)}: that the index is {shown(index)} is left out"
        reading.note(others[0].row.place, text)
    reading.check()
    options = [
        f"--{'extra-' if number else ''}index-url {url}" for number, url in enumerate(indexes)
    ]
    python = reading.text(tree, "requires-python", required=False)
    software = (("python", python),) if python else ()
    own = {"python": tree.index["requires-python"][0].place} if python else {}
    pip = (*options, *places)
    return EnvironmentFile(pip=pip, software=software, only_pip=True, places=own | places), tuple(
        reading.notes
    )


def _check_files(reading: Reading, row: Pairs, name: str) -> None:
    """Note the first hash, a package that is compiled, and one without a wheel for Linux."""
    files = [
        leaf
        for key in ("wheels", "sdist")
        for leaf in leaves(node_at(row, key) or Pairs(row.place, ()))
    ]
    wheels = [leaf.text for leaf in files if leaf.text.endswith(".whl")]
    hashed = next((leaf.place for leaf in files if leaf.text in ("hash", "hashes")), None)
    text = "the hashes are left out; a lock contains those of files"
    if hashed and not any(note.endswith(text) for note in reading.notes):
        reading.note(hashed, text)
    if not wheels:
        reading.note(row.place, f"{shown(name)} has no wheel: it is compiled")
    elif not any(wheel.endswith("-any.whl") or "linux" in wheel for wheel in wheels):
        reading.note(row.place, f"{shown(name)} has no wheel for Linux in the file")
