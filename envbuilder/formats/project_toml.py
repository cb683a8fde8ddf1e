"""TOML files of projects: pyproject.toml, pylock.toml and pixi.toml.

https://packaging.python.org/en/latest/specifications/pyproject-toml and pylock-toml;
https://pixi.sh/latest/reference/pixi_manifest.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from ..documents.source import Source
from ..documents.tree import Items, Node, Pairs, Scalar
from ..errors import DocumentError, Place, Problem
from ..knowledge.ranges import ANY_VERSION
from ..text import shown
from . import poetry_dependencies
from .environment_yml import EnvironmentFile
from .reading import Reading, node_at, place_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_KEY = re.compile(r"\s*([\w.\"'-]+)\s*=")
_HEADER = re.compile(r"\[\[?\s*([^\]]+?)\s*\]")
_OF_PYPI = "pypi-dependencies"
# Tools that format and test a project; the keys that say nothing of what is installed.
_CHECKS = frozenset(
    {"black", "codespell", "coverage", "flake8", "isort", "mypy", "pylint", "pyright", "pytest"}
    | {"bandit", "cibuildwheel", "commitizen", "interrogate", "ruff", "towncrier", "ty", "yapf"}
)
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
    tree = _tree(source, root)
    reading.others(tree, ("project", "tool"))
    reading.others(node_at(tree, "project"), _ABOUT | {"dependencies", "requires-python"})
    poetry = _table(_table(root.get("tool")).get("poetry"))
    python, name = project.get("requires-python"), project.get("name", poetry.get("name"))
    own: dict[str, Place] = {}
    if not lines and "dependencies" in poetry:
        own, bounds = poetry_dependencies.read(reading, poetry["dependencies"], source)
        python = python or bounds
        places |= own
    for tool, settings in reading.pairs(node_at(tree, "tool"), "tool"):
        is_read = own and tool.text == "poetry"
        known = _ABOUT | {"dependencies"} if is_read else _ABOUT
        if tool.text not in _CHECKS:
            reading.others(settings, known, f"tool.{tool.text}.")
    return EnvironmentFile(
        name=name if isinstance(name, str) else None,
        pip=(*lines, *own),
        software=(("python", python),) if isinstance(python, str) else (),
        only_pip=True,
        places=places,
    ), tuple(sorted(reading.notes))


def read_pixi(source: Source) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return the packages of the default environment, and notes. Raises DocumentError."""
    reading, root = Reading("pixi init writes such a file"), _load(source)
    tree, head = _tree(source, root), "workspace" if "workspace" in root else "project"
    workspace = _table(root.get(head))
    reading.others(tree, (head, "dependencies", _OF_PYPI))
    reading.others(node_at(tree, head), _ABOUT | {"channels"})
    conda = node_at(tree, "dependencies")
    specs = {
        spec: key.place
        for key, value in reading.pairs(conda, "dependencies")
        if (spec := _pixi_spec(reading, key.text, value))
    }
    pip, _ = poetry_dependencies.read(reading, root.get(_OF_PYPI), source)
    rows = workspace.get("channels")
    channels = [
        reading.clean(str(_table(each).get("channel", each)), tree.place)
        for each in (rows if isinstance(rows, list) else ())
    ]
    reading.check()
    name = workspace.get("name")
    return EnvironmentFile(
        name=name if isinstance(name, str) else None,
        channels=tuple(channels),
        specs=tuple(specs),
        pip=tuple(pip),
        places={**specs, **pip},
    ), tuple(reading.notes)


def _pixi_spec(reading: Reading, name: str, value: Node) -> str | None:
    """Return a dependency as a MatchSpec; None, and a note, for what is no package of a channel."""
    if isinstance(value, Scalar):
        return f"{name} {value.text}" if value.text != ANY_VERSION else name
    if not isinstance(value, Pairs) or {"git", "path", "url"} & value.index.keys():
        reading.leave_out(name, value, value.place)
        return None
    reading.others(value, ("version", "build", "channel"), f"{name}: ")
    version = reading.text(value, "version", required=False) or ANY_VERSION
    build = reading.text(value, "build", required=False)
    channel = reading.text(value, "channel", required=False)
    spec = name if version == ANY_VERSION else f"{name} {version}"
    spec = f'{name}[version="{version}",build="{build}"]' if build else spec
    return f"{channel}::{spec}" if channel else spec


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


def _tree(source: Source, root: dict[str, Any]) -> Node:
    """Return the tables as nodes: what stands in one value has the place of its key."""
    places: dict[str, Place] = {}
    header = ""
    for number, line in enumerate(source.text.splitlines(), start=1):
        if table := _HEADER.match(line):
            header = _path("", table[1])
            for end in re.finditer(r"\.|$", header):
                places.setdefault(header[: end.start()], Place(source.file, number, 1))
        elif key := _KEY.match(line):
            places.setdefault(_path(header, key[1]), Place(source.file, number, key.start(1) + 1))

    def node(value: object, path: str, place: Place) -> Node:
        place = places.get(path, place)
        if isinstance(value, list):
            return Items(place, tuple(node(each, path, place) for each in value))
        if not isinstance(value, dict):
            return Scalar(place, str(value), plain=False)
        below = {key: _path(path, key) for key in value}
        return Pairs(
            place,
            tuple(
                (Scalar(places.get(at, place), key, plain=False), node(value[key], at, place))
                for key, at in below.items()
            ),
        )

    return node(root, "", Place(source.file, 1, 1))


def _path(above: str, key: str) -> str:
    return f"{above}.{key}".lstrip(".").translate(str.maketrans("", "", "\"' "))


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
