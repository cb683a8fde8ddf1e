"""TOML files of projects: pyproject.toml and pixi.toml.

https://packaging.python.org/en/latest/specifications/pyproject-toml;
https://pixi.sh/latest/reference/pixi_manifest.
"""

from __future__ import annotations

from typing import Any

from ..documents.source import Source
from ..documents.tree import Node, Pairs, Scalar
from ..errors import Place
from ..knowledge.ranges import ANY_VERSION
from ..text import shown
from . import poetry_dependencies
from .environment_yml import EnvironmentFile
from .reading import Reading, leaves, node_at, place_of
from .toml_nodes import load, nodes

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
    reading, root = Reading("packaging.python.org describes the file"), load(source)
    project = _table(root.get("project"))
    lines = _texts(project.get("dependencies"))
    places = {line: place_of(source, line.partition(";")[0].strip()) for line in lines}
    tree = nodes(source, root)
    reading.others(tree, ("project", "tool"))
    reading.others(node_at(tree, "project"), _ABOUT | {"dependencies", "requires-python"})
    tools, pixi = _table(root.get("tool")), EnvironmentFile()
    poetry = _table(tools.get("poetry"))
    python = project.get("requires-python")
    name = node_at(node_at(tree, "project"), "name")
    name = name or node_at(node_at(node_at(tree, "tool"), "poetry"), "name")
    if isinstance(name, Scalar):
        reading.note(name.place, f"the project {shown(name.text)} itself is left out")
    own: dict[str, Place] = {}
    if not lines and "dependencies" in poetry:
        own, bounds = poetry_dependencies.read(reading, poetry["dependencies"], source)
        python = python or bounds
        places |= own
    for tool, settings in reading.pairs(node_at(tree, "tool"), "tool"):
        is_read = own and tool.text == "poetry"
        known = _ABOUT | {"dependencies"} if is_read else _ABOUT
        if tool.text == "pixi":
            pixi = _pixi(reading, source, _table(tools["pixi"]), settings, "tool.pixi.")
        elif tool.text not in _CHECKS:
            reading.others(settings, known, f"tool.{tool.text}.")
    return EnvironmentFile(
        name=name.text if isinstance(name, Scalar) else None,
        channels=pixi.channels,
        specs=pixi.specs,
        pip=tuple(dict.fromkeys((*lines, *own, *pixi.pip))),
        software=(("python", python),) if isinstance(python, str) else (),
        only_pip=not pixi.channels,
        places={"python": place_of(source, "requires-python"), **pixi.places, **places},
    ), tuple(sorted(reading.notes))


def read_pixi(source: Source) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return the packages of the default environment, and notes. Raises DocumentError."""
    reading, root = Reading("pixi init writes such a file"), load(source)
    asked = _pixi(reading, source, root, nodes(source, root), "")
    reading.check()
    return asked, tuple(reading.notes)


def _pixi(
    reading: Reading, source: Source, root: dict[str, Any], tree: Node | None, label: str
) -> EnvironmentFile:
    """Return what the tables of pixi ask for. *label*: their prefix in pyproject.toml."""
    head = "workspace" if "workspace" in root else "project"
    workspace = _table(root.get(head))
    reading.others(tree, (head, "dependencies", _OF_PYPI), label)
    reading.others(node_at(tree, head), _ABOUT | {"channels"}, label)
    conda = node_at(tree, "dependencies")
    specs = {
        spec: key.place
        for key, value in reading.pairs(conda, "dependencies")
        if (spec := _pixi_spec(reading, key.text, value))
    }
    pip, _ = poetry_dependencies.read(reading, root.get(_OF_PYPI), source)
    channels = []
    for channel in reading.items(node_at(node_at(tree, head), "channels"), "channels"):
        url = node_at(channel, "channel") or channel
        reading.others(channel, ("channel",), "channel: ")
        channels += [reading.clean(leaf.text, leaf.place) for leaf in leaves(url)]
    name = workspace.get("name")
    return EnvironmentFile(
        name=name if isinstance(name, str) else None,
        channels=tuple(channels),
        specs=tuple(specs),
        pip=tuple(pip),
        places={**specs, **pip},
    )


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


def _texts(value: object) -> list[str]:
    return (
        list(dict.fromkeys(each for each in value if isinstance(each, str)))
        if isinstance(value, list)
        else []
    )


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
