"""TOML files of Python's projects: pyproject.toml and pylock.toml.

https://packaging.python.org/en/latest/specifications/pyproject-toml and pylock-toml.
"""

from __future__ import annotations

import sys
from typing import Any

from ..documents.source import Source
from ..errors import DocumentError, Place, Problem
from ..text import shown
from .environment_yml import EnvironmentFile
from .reading import Reading

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# What builds, formats and tests a project, and what is only of its author.
_NO_DEPENDENCIES = frozenset({"build-system", "project", "tool"})
_OF_THE_PROJECT = frozenset({"optional-dependencies", "dynamic"})


def read_project(source: Source) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return a project's dependencies, and notes on what was left out. Raises DocumentError."""
    reading, root = Reading("packaging.python.org describes the file"), _load(source)
    project = _table(root.get("project"))
    lines = _texts(project.get("dependencies"))
    places = {line: _place(source, line.partition(";")[0].strip()) for line in lines}
    for table in root.keys() - _NO_DEPENDENCIES:
        reading.note(_place(source, f"[{table}"), f"{shown(table)} is left out: name its packages")
    for key in _OF_THE_PROJECT & project.keys():
        header = f"[project.{key}" if isinstance(project[key], dict) else f"{key} ="
        reading.note(_place(source, header), f"{shown(key)} is left out")
    for tool, settings in _table(root.get("tool")).items():
        for key in _table(settings):
            if "dependenc" in key:
                place = _place(source, f"[tool.{tool}.{key}", f"[[tool.{tool}.{key}", key)
                reading.note(place, f"{shown(f'tool.{tool}.{key}')} is left out: a table of a tool")
    python, name = project.get("requires-python"), project.get("name")
    return EnvironmentFile(
        name=name if isinstance(name, str) else None,
        pip=tuple(lines),
        software=(("python", python),) if isinstance(python, str) else (),
        only_pip=True,
        places=places,
    ), tuple(sorted(reading.notes))


def read_lock(source: Source) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return the packages of a lock, and notes on what was left out. Raises DocumentError."""
    reading, root = Reading("uv export and pip lock write such a file"), _load(source)
    pip: dict[str, Place] = {}
    indexes: list[str] = []
    packages = root["packages"] if isinstance(root.get("packages"), list) else []
    for package in map(_table, packages):
        name, version = str(package.get("name")), package.get("version")
        place = _place(source, f'name = "{name}"')
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


def _place(source: Source, *texts: str) -> Place:
    """Return the first line that contains a text; the TOML reader states no lines."""
    for text in texts:
        for number, line in enumerate(source.text.splitlines(), start=1):
            if text and text in line:
                return Place(source.file, number, line.index(text) + 1)
    return Place(source.file, 1, 1)
