"""Which part of envbuilder may import which: the table, and a reader of imports.

A *unit* is what a row of the table is about: a module or a package of ``envbuilder``, at any
depth; a file belongs to the longest unit that its name begins with.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent

# Values and small helpers that every layer may import; what each of them stands on.
_GROUND: Mapping[str, frozenset[str]] = {
    "": frozenset(),
    "data": frozenset(),
    "errors": frozenset({"target_tools"}),
    "files": frozenset({"errors", "target_tools"}),
    "redaction": frozenset({"target_tools"}),
    "secret_queries": frozenset({"redaction", "target_tools"}),
    "text": frozenset(),
    "model": frozenset({"errors", "secret_queries", "target_tools", "text"}),
    "process": frozenset({"errors", "target_tools"}),
    "sources": frozenset({"errors"}),
    "host": frozenset({"errors", "model", "process", "target_tools"}),
}
GROUND = frozenset(_GROUND)

# What runs inside a target, with a Python that has nothing of envbuilder beside it.
INSIDE = frozenset({"target_tools"})
# What a plan puts beside it: a build tool, and what the smoke test is to try; and what links conda
# packages, where the Python has it that runs that one tool.
_PLANNED = frozenset({"conda_package_streaming", "elftools", "mpi4py", "rattler"})

# Each stage, and the stages below it that it may use.
STAGES: Mapping[str, frozenset[str]] = {
    "channels": frozenset(),
    "documents": frozenset(),
    "formats": frozenset({"documents"}),
    "interpreters": frozenset(),
    "module_system": frozenset(),
    "diagnosis": frozenset(),
    "hang": frozenset(),
    "doctor": frozenset({"interpreters", "module_system"}),
    "inspect": frozenset(),
    "resolve": frozenset(),
    "planning": frozenset(),
    "locking": frozenset(),
    "render": frozenset(),
    "build": frozenset(),
    "emulation": frozenset(),
    "images": frozenset(),
    "record": frozenset(),
    "bundle_archive": frozenset(),
    "blob_signatures": frozenset(),
    "root": frozenset(),
}

# The variation points: one dict of entries each. Only commands look an entry up.
ROOMS = frozenset(
    {"backends", "launchers", "pipelines", "render.forms", "runtimes", "schedulers", "targets"}
)
# What an entry may import beside its own room: values only.
_VALUES = frozenset({"", "errors", "model", "text"})
# More, for the rooms whose entries are no plain values: forms are rendered, targets write files.
_ROOMS_MORE: Mapping[str, frozenset[str]] = {
    "render.forms": frozenset({"formats", "render"}),
    "targets": frozenset({"files"}) | INSIDE,
    "runtimes": INSIDE,
}

# The layers that the user sees.
_TOP: Mapping[str, frozenset[str]] = {
    "report": GROUND,
    "views": GROUND,
    "commands": GROUND | frozenset(STAGES) | ROOMS | INSIDE,
    # Completion of a name must be quick: it asks the catalogue itself.
    "cli": GROUND | {"commands", "documents", "report", "root", "views"},
    "__main__": frozenset({"", "cli"}),
}


def allowed(unit: str) -> frozenset[str]:
    """Return the units that the files of *unit* may import, beside their own."""
    if unit in INSIDE:
        return frozenset()
    if unit in GROUND:
        return _GROUND[unit]
    if unit in STAGES:
        return GROUND | STAGES[unit] | INSIDE
    if unit in ROOMS:
        return _VALUES | _ROOMS_MORE.get(unit, frozenset())
    return _TOP[unit]


UNITS = frozenset({*GROUND, *INSIDE, *STAGES, *ROOMS, *_TOP})

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


def unit_of(module: str) -> str | None:
    """Return the unit that a module or a name in it belongs to; None: envbuilder has none such."""
    words = module.split(".")[1:]
    for length in range(len(words), 0, -1):
        unit = ".".join(words[:length])
        if unit in UNITS:
            return unit
    return None if len(words) > 0 else ""


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


def violations(files: Sources) -> list[str]:
    """Return every import of envbuilder's files that the table forbids, with its file."""
    found = []
    for path, text in files.items():
        own = unit_of(module_name(path))
        if own is None:
            found.append(f"{path}: belongs to no unit of tests/layers.py")
            continue
        for name in imports(path, text):
            if own in INSIDE and not _is_there(name, path, files):
                found.append(f"{path}: {own} imports {name}, which a target does not have")
            if name.partition(".")[0] != "envbuilder":
                continue
            unit = _unit_imported(name, files)
            if unit is None:
                found.append(f"{path}: imports {name}, which is in no unit")
            elif unit != own and unit not in allowed(own):
                found.append(f"{path}: {own or 'envbuilder'} may not import {name}")
    return found


def _unit_imported(name: str, files: Sources) -> str | None:
    """Return the unit of an imported name; what is no module is a name in envbuilder itself."""
    unit = unit_of(name)
    words = name.split(".")
    if unit is None and len(words) == 2:
        stem = "/".join(words)
        return None if f"{stem}.py" in files or f"{stem}/__init__.py" in files else ""
    return unit


def _is_there(name: str, path: str, files: Sources) -> bool:
    """Return whether a Python inside a target has a module: its own, a neighbour, or a planned one.

    A program that is started by its path finds its neighbours by their bare names.
    """
    top = name.partition(".")[0]
    folder = path.rpartition("/")[0]
    inside = name.startswith(f"envbuilder.{unit_of(module_name(path))}.")
    beside = f"{folder}/{top}.py" in files or f"{folder}/{top}/__init__.py" in files
    return inside or beside or top in sys.stdlib_module_names or top in _PLANNED


def circles(files: Sources) -> list[str]:
    """Return the units that import each other, each pair once: ``doctor <-> interpreters``."""
    reached: dict[str, set[str]] = {}
    for path, text in files.items():
        own = unit_of(module_name(path)) or ""
        ours = (name for name in imports(path, text) if name.startswith("envbuilder."))
        units = {unit for name in ours if (unit := unit_of(name))}
        reached.setdefault(own, set()).update(units - {own})
    changed = True
    while changed:
        changed = False
        for units in reached.values():
            further = set().union(*(reached.get(unit, set()) for unit in units)) - units
            if further:
                units |= further
                changed = True
    return sorted(
        f"{one} <-> {other}"
        for one, units in reached.items()
        for other in units
        if one < other and one in reached.get(other, set())
    )
