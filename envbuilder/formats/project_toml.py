"""TOML files of Python's projects: pyproject.toml and pylock.toml.

https://packaging.python.org/en/latest/specifications/pyproject-toml and pylock-toml.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from ..documents.source import Source
from ..errors import DocumentError, Place, Problem
from ..text import shown
from . import poetry_dependencies
from .environment_yml import EnvironmentFile
from .reading import Reading, place_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# What builds, formats and tests a project, and what is only of its author.
_NO_DEPENDENCIES = frozenset({"build-system", "project", "tool"})
_EXTRAS = "optional-dependencies"
_OF_THE_PROJECT = frozenset({_EXTRAS, "dynamic"})
# Tools whose settings say what is installed, and the keys that say nothing of it.
_MANAGERS = frozenset({"conda-lock", "hatch", "pdm", "pixi", "poetry", "rye", "uv"})
_ABOUT = frozenset(
    {
        *("name", "version", "description", "authors", "maintainers", "readme", "license"),
        *("homepage", "repository", "documentation", "keywords", "classifiers", "urls"),
        *("packages", "include", "exclude", "scripts", "plugins", "build", "package"),
        *("package-mode", "requires-poetry"),
    }
)


def read_project(source: Source) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return a project's dependencies, and notes on what was left out. Raises DocumentError."""
    reading, root = Reading("packaging.python.org describes the file"), _load(source)
    project = _table(root.get("project"))
    lines = _texts(project.get("dependencies"))
    places = {line: place_of(source, line.partition(";")[0].strip()) for line in lines}
    for table in root.keys() - _NO_DEPENDENCIES:
        text = f"{shown(table)} is left out: name its packages"
        reading.note(place_of(source, f"[{table}"), text)
    for key in _OF_THE_PROJECT & project.keys():
        header = f"[project.{key}" if isinstance(project[key], dict) else f"{key} ="
        reading.note(place_of(source, header), f"{shown(key)} is left out")
    for groups in (project.get(_EXTRAS), root.get("dependency-groups")):
        for group, members in _table(groups).items():
            packages = shown(", ".join(_texts(members)) or "no package", 240)
            place = place_of(source, f"{group} =", f"{group}=")
            reading.note(place, f"{shown(group)} is left out: {packages}")
    poetry = _table(_table(root.get("tool")).get("poetry"))
    python, name = project.get("requires-python"), project.get("name", poetry.get("name"))
    own: dict[str, Place] = {}
    if not lines and "dependencies" in poetry:
        own, bounds = poetry_dependencies.read(reading, poetry["dependencies"], source)
        python = python or bounds
        places |= own
    for text, place in _settings_of_managers(source, _table(root.get("tool")), is_read=bool(own)):
        reading.note(place, text)
    return EnvironmentFile(
        name=name if isinstance(name, str) else None,
        pip=(*lines, *own),
        software=(("python", python),) if isinstance(python, str) else (),
        only_pip=True,
        places=places,
    ), tuple(sorted(reading.notes))


def _settings_of_managers(
    source: Source, tools: dict[str, Any], *, is_read: bool
) -> Iterator[tuple[str, Place]]:
    """Yield a note for each table of a manager of packages. *is_read*: Poetry's are read."""
    for tool, settings in tools.items():
        for key, value in _table(settings).items():
            path = f"tool.{tool}.{key}"
            if path == "tool.poetry.dependencies" and is_read:
                continue
            if "dependenc" in key or (tool in _MANAGERS and key not in _ABOUT):
                tables = (f"[{path}", f"[[{path}")
                place = place_of(source, *tables, f"{key} =", f"{key}=", key)
                names = _names_in(value)
                words = f": {shown(', '.join(names), 240)}" if names else ""
                yield f"{shown(path)} is left out{words}", place


def _names_in(value: object) -> list[str]:
    """Return the names in a table, or those that the tables of a list have."""
    if isinstance(value, dict):
        groups = [_table(_table(group).get("dependencies")) for group in value.values()]
        return [*value, *(name for group in groups for name in group)]
    rows = value if isinstance(value, list) else []
    return [str(each.get("name")) for each in rows if isinstance(each, dict) and "name" in each]


def read_lock(source: Source) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return the packages of a lock, and notes on what was left out. Raises DocumentError."""
    reading, root = Reading("uv export and pip lock write such a file"), _load(source)
    pip: dict[str, Place] = {}
    hashes = place_of(source, "hashes =", "hashes=", "hashes")
    if "hashes" in source.text:
        reading.note(hashes, "the hashes are left out; a lock contains those of files")
    indexes: list[str] = []
    packages = root["packages"] if isinstance(root.get("packages"), list) else []
    for package in map(_table, packages):
        name, version = str(package.get("name")), package.get("version")
        place = place_of(source, f'name = "{name}"')
        outside = next((key for key in ("vcs", "directory", "archive") if key in package), None)
        if outside or version is None:
            reading.note(place, f"{shown(name)} is left out: it is from {outside or 'no index'}")
            continue
        if "wheels" not in package:
            reading.note(place, f"{shown(name)} has no wheel: it is compiled")
        if isinstance(package.get("index"), str):
            indexes.append(reading.clean(package["index"], place))
        marker = f" ; {package['marker']}" if package.get("marker") else ""
        pip[f"{name}=={version}{marker}"] = place
    reading.check()
    options = [
        f"{'--extra-index-url' if number else '--index-url'} {index}"
        for number, index in enumerate(dict.fromkeys(indexes))
    ]
    python = root.get("requires-python")
    return EnvironmentFile(
        pip=(*options, *pip),
        software=(("python", python),) if isinstance(python, str) else (),
        only_pip=True,
        places=pip,
    ), tuple(reading.notes)


def _load(source: Source) -> dict[str, Any]:
    try:
        root: dict[str, Any] = tomllib.loads(source.text)
    except (ValueError, RecursionError) as error:  # also of numbers with thousands of digits
        place = Place(source.file, getattr(error, "lineno", 1), getattr(error, "colno", 1))
        problem = Problem("package-list.not-toml", f"not TOML: {shown(str(error))}", place)
        raise DocumentError((problem,)) from error
    return root


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    return (
        list(dict.fromkeys(each for each in value if isinstance(each, str)))
        if isinstance(value, list)
        else []
    )
