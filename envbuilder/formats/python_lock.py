"""Locks of Python's packages: pylock.toml and uv.lock.

https://packaging.python.org/en/latest/specifications/pylock-toml;
https://docs.astral.sh/uv/concepts/projects/layout, "The lockfile".
"""

from __future__ import annotations

from collections.abc import Mapping

from ..documents.source import Source
from ..documents.tree import Items, Pairs
from ..errors import Place
from ..target_tools.names import normalize
from ..text import shown
from .environment_yml import EnvironmentFile
from .markers import applies
from .reading import Reading, leaves, node_at, pairs_at
from .toml_nodes import load, nodes

_OF_FILE = ("lock-version", "created-by", "packages", "requires-python")
_OF_PACKAGE = ("name", "version", "marker", "index", "wheels", "sdist", "hashes")
_OF_UV = ("version", "revision", "requires-python", "package", "resolution-markers")
_OF_UV_PACKAGE = ("name", "version", "source", "dependencies", "metadata", "wheels", "sdist")
_OPTIONAL = "optional-dependencies"
_OUTSIDE = ("vcs", "directory", "archive")


def read_pylock(source: Source) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return the packages of pylock.toml, and notes on what was left out. Raises DocumentError."""
    reading, tree = Reading("uv export and pip lock write such a file"), nodes(source, load(source))
    rows = list(reading.mappings(node_at(tree, "packages"), "packages"))
    reading.others(tree, _OF_FILE)
    reading.others_of(rows, (*_OF_PACKAGE, *_OUTSIDE), "packages")
    pip: dict[str, Place] = {}
    indexes: dict[str, list[str]] = {}
    for row in rows:
        name, version = reading.text(row, "name"), reading.text(row, "version", required=False)
        outside = next((key for key in _OUTSIDE if key in row.index), None)
        if outside or version is None:
            text = f"{shown(name or '')} is left out: it is from {outside or 'no index'}"
            reading.note(row.place, text)
            continue
        _check_files(reading, row, str(name))
        index = reading.text(row, "index", required=False)
        if index:
            indexes.setdefault(reading.clean(index, row.place), []).append(str(name))
        marker = reading.text(row, "marker", required=False)
        pip[f"{name}=={version}{f' ; {marker}' if marker else ''}"] = row.place
    _note_hashes(reading, rows)
    return _asked(reading, tree, pip, indexes)


def read_uv(source: Source) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return what the projects of uv.lock need on Linux, and notes on what was left out.

    The lock is for all systems: packages that only others need are left out. Raises DocumentError.
    """
    reading, tree = Reading("uv lock writes such a file"), nodes(source, load(source))
    rows = list(reading.mappings(node_at(tree, "package"), "package"))
    reading.others(tree, _OF_UV)
    projects = [row for row in rows if not _is_from_index(row)]
    packages = [row for row in rows if _is_from_index(row)]
    reading.others_of(projects, _OF_UV_PACKAGE, "package")
    reading.others_of(packages, (*_OF_UV_PACKAGE, _OPTIONAL, "resolution-markers"), "package")
    pip: dict[str, Place] = {}
    indexes: dict[str, list[str]] = {}
    markers = _reached(reading, rows, projects)
    for row in rows:
        name, version = reading.text(row, "name"), reading.text(row, "version", required=False)
        registry = reading.text(pairs_at(row, "source") or row, "registry", required=False)
        if row in projects:
            origin = ", ".join(leaf.text for leaf in leaves(node_at(row, "source") or row))
            reading.note(row.place, f"{shown(name or '')} is left out: it is from {shown(origin)}")
        elif id(row) not in markers:
            why = "only an extra, a group or another system needs it"
            reading.note(row.place, f"{shown(name or '')} {version} is left out: {why}")
        elif registry:
            _check_files(reading, row, str(name))
            indexes.setdefault(reading.clean(registry, row.place), []).append(str(name))
            conditions = markers[id(row)]
            either = " or ".join(f"({each})" for each in conditions if each)
            marker = f" ; {either}" if either and "" not in conditions else ""
            pip[f"{name}=={version}{marker}"] = row.place
    _note_hashes(reading, rows)
    return _asked(reading, tree, pip, indexes)


def _is_from_index(row: Pairs) -> bool:
    return "registry" in getattr(node_at(row, "source"), "index", ())


def _reached(reading: Reading, rows: list[Pairs], projects: list[Pairs]) -> dict[int, set[str]]:
    """Return the markers with which each package is needed, by its id; '' for always."""
    by_name: dict[str, list[Pairs]] = {}
    for row in rows:
        by_name.setdefault(normalize(reading.text(row, "name") or ""), []).append(row)
    reached: dict[int, set[str]] = {}
    todo = [(row, "") for row in projects]
    done: set[tuple[int, str]] = set()
    while todo:
        row, extra = todo.pop()
        if (id(row), extra) in done:
            continue
        done.add((id(row), extra))
        needs = node_at(node_at(row, _OPTIONAL), extra) if extra else node_at(row, "dependencies")
        for need in reading.mappings(needs, "dependencies"):
            marker = reading.text(need, "marker", required=False) or ""
            version = reading.text(need, "version", required=False)
            extras = reading.texts(node_at(need, "extra"), "extra")
            for each in by_name.get(normalize(reading.text(need, "name") or ""), ()):
                own = reading.text(each, "version", required=False)
                if version in (None, own) and applies(marker) is not False:
                    reached.setdefault(id(each), set()).add(marker)
                    todo += [(each, name) for name in ("", *extras)]
    return reached


def _check_files(reading: Reading, row: Pairs, name: str) -> None:
    """Note a package that is compiled, and one whose wheels are all for other systems."""
    wheels = node_at(row, "wheels")
    files = [leaf.text for leaf in leaves(wheels)] if wheels else []
    wheel_names = [text for text in files if text.endswith(".whl")]
    if not wheel_names:
        reading.note(row.place, f"{shown(name)} has no wheel: it is compiled")
    elif not any(text.endswith("-any.whl") or "linux" in text for text in wheel_names):
        reading.note(row.place, f"{shown(name)} has no wheel for Linux in the file")


def _note_hashes(reading: Reading, rows: list[Pairs]) -> None:
    """Note the first hash of a file."""
    for row in rows:
        for node in (node_at(row, "wheels"), node_at(row, "sdist")):
            files = node.items if isinstance(node, Items) else (node,)
            if node and any(
                {"hash", "hashes"} & getattr(each, "index", {}).keys() for each in files
            ):
                text = "the hashes are left out; a lock contains those of files"
                reading.note(node.place, text)
                return


def _asked(
    reading: Reading, tree: Pairs, pip: dict[str, Place], indexes: Mapping[str, list[str]]
) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return what a lock asks for; note which packages are from a further index."""
    reading.check()
    places = {line.partition("==")[0]: place for line, place in pip.items()}
    for index, names in list(indexes.items())[1:]:
        text = f"{shown(', '.join(names), 240)}: that the index is {shown(index)} is left out"
        reading.note(places[names[0]], text)
    options = [
        f"{'--extra-index-url' if number else '--index-url'} {index}"
        for number, index in enumerate(indexes)
    ]
    python = reading.text(tree, "requires-python", required=False)
    return EnvironmentFile(
        pip=(*options, *pip),
        software=(("python", python),) if python else (),
        only_pip=True,
        places={"python": tree.index["requires-python"][0].place, **pip} if python else pip,
    ), tuple(reading.notes)
