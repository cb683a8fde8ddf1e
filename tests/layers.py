"""Reads the imports of the sources. pyproject.toml states the layers, for import-linter."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent

# What runs inside a target, with a Python that has nothing of envbuilder beside it.
INSIDE = "envbuilder/target_tools/"
# What a plan puts beside it: a build tool, and what the smoke test tries; and what links conda
# packages, where the Python has it that runs that one tool.
_PLANNED = frozenset({"conda_package_streaming", "elftools", "mpi4py", "rattler"})

# The variation points: one dict of entries each.
ROOMS = (
    "envbuilder/build/backends/",
    "envbuilder/workflow/targets/",
    "envbuilder/ci/providers/",
    "envbuilder/launching/launchers/",
    "envbuilder/launching/schedulers/",
    "envbuilder/render/forms/",
    "envbuilder/runtimes/",
)

Sources = Mapping[str, str]


def sources(folder: str) -> dict[str, str]:
    """Return the Python files below a folder of the checkout: path -> text."""
    return {
        str(path.relative_to(CHECKOUT)): path.read_text(encoding="utf-8")
        for path in sorted((CHECKOUT / folder).rglob("*.py"))
    }


def module_name(path: str) -> str:
    """Return the dotted name of a file, that of a package for its ``__init__.py``."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@cache
def imports(path: str, text: str) -> tuple[str, ...]:
    """Return the full dotted name of everything that a file imports, wherever in it.

    ``from ..model import plan`` in ``envbuilder/render/job.py`` is ``envbuilder.model.plan``; a
    constant name that is handed to ``import_module`` or ``__import__`` counts as well.
    """
    return tuple(_imports(path, text))


def _imports(path: str, text: str) -> Iterator[str]:
    own = module_name(path)
    package = own if path.endswith("__init__.py") else own.rpartition(".")[0]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            start = ".".join(above) if node.level else ""
            base = ".".join(filter(None, (start, node.module)))
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and _imports_by_name(node):
            name = node.args[0]
            assert isinstance(name, ast.Constant)
            yield str(name.value)


def _imports_by_name(node: ast.Call) -> bool:
    function = ast.unparse(node.func).rpartition(".")[2]
    constant = bool(node.args) and isinstance(node.args[0], ast.Constant)
    return function in {"import_module", "__import__"} and constant


def lacking(files: Sources) -> list[str]:
    """Return every import of the programs inside a target that a target does not have."""
    return [
        f"{path}: {name}"
        for path, text in files.items()
        if path.startswith(INSIDE)
        for name in imports(path, text)
        if not _is_there(name, path, files)
    ]


def _is_there(name: str, path: str, files: Sources) -> bool:
    """Return whether a Python inside a target has a module: its own, a neighbour, or a planned one.

    A program that is started by its path finds its neighbours by their bare names.
    """
    top = name.partition(".")[0]
    folder = path.rpartition("/")[0]
    inside = name.startswith("envbuilder.target_tools.")
    beside = f"{folder}/{top}.py" in files or f"{folder}/{top}/__init__.py" in files
    return inside or beside or top in sys.stdlib_module_names or top in _PLANNED
