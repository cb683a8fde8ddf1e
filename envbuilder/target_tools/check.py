"""Check that every pinned distribution is the one that Python finds in this environment.

    python target_tools check --prefix PREFIX --modules FILE [--imported FILE] [--only NAME]...
        expected.json

Each pinned distribution must lie in the prefix with the pinned version, come first on Python's
path, and, where an import name is known, be imported from the prefix. A module's PYTHONPATH comes
before a virtualenv, so a copy elsewhere may shadow it: the error names the copy, what put its
folder on the path, and the module that did. FILE holds, for each loaded module, a line
"== NAME" and what ``module show`` prints. What was imported just before need not be again: the
other FILE holds as JSON, by import name, where it lies, and is removed. Exit code 1: something is
wrong.
"""

import argparse
import concurrent.futures
import importlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from . import distributions
from .distributions import Distribution
from .files import entries, is_below, read_json, real
from .names import normalize
from .processes import processors, run_tool


def lies_in(path: "str | Path", folder: "str | Path") -> bool:
    """Return whether a path is a folder or lies below it, links resolved."""
    return is_below(real(path), real(folder))


def cause(path: "str | Path", modules: "list[tuple[str, str]]") -> str:
    """Return which setting put the folder of *path* on Python's path."""
    for entry in filter(None, os.environ.get("PYTHONPATH", "").split(":")):
        if lies_in(path, entry):
            owners = [name for name, text in modules if prepends(text, entry)]
            by = f"set by module {', '.join(owners)}" if owners else "set by no loaded module"
            return f"{entry} is in PYTHONPATH, {by}"
    for folder in sys.path:
        for pth in (path for path in entries(folder) if path.name.endswith(".pth")):
            for line in pth.read_text(encoding="utf-8", errors="replace").splitlines():
                if adds(line) and lies_in(path, Path(folder) / line.strip()):
                    return f"{line.strip()} is added by {pth}"
    return "it is in the Python that the virtualenv was created with"


def adds(line: str) -> bool:
    """Return whether a line of a .pth file names a folder."""
    return bool(line.strip()) and not line.startswith(("#", "import ", "import\t"))


def prepends(text: str, entry: str) -> bool:
    """Return whether the output of ``module show`` adds this entry to PYTHONPATH."""
    # Lua: prepend_path("PYTHONPATH","/x"); Tcl: prepend-path PYTHONPATH /x or {/x}.
    value = r"[\s,\"'{:=]" + re.escape(entry.rstrip("/")) + r"/?(?=$|[\s\"'}:)])"
    return any("PYTHONPATH" in line and re.search(value, line) for line in text.splitlines())


def read_modules(path: "str | Path") -> "list[tuple[str, str]]":
    """Return (name, output of ``module show``) of each loaded module."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    parts = re.split(r"^== (\S+)\n", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2]))


def take(path: str) -> "dict[str, str]":
    """Read and remove the file of earlier imports; return {} if it does not exist."""
    file = Path(path)
    if not file.is_file():
        return {}
    imported: "dict[str, str]" = read_json(file)
    file.unlink()
    return imported


def imported_file(name: str) -> "tuple[str, None] | tuple[None, list[str]]":
    """Import in a separate process, as it may crash; return (file, None) or (None, error lines)."""
    printed, lines = run_tool(["check", "--import", name])
    return (None, lines or []) if printed is None else (json.loads(printed), None)


def print_file(name: str) -> None:
    """Import a module and print where it lies as JSON; whatever it prints goes to stderr."""
    with os.fdopen(os.dup(1), "w") as answer:
        os.dup2(2, 1)
        module = importlib.import_module(name)
        path = getattr(module, "__file__", None) or next(iter(module.__path__))
        answer.write(json.dumps(path))


def problem(
    pin: "dict[str, Any]",
    prefix: str,
    copies: "list[Distribution]",
    modules: "list[tuple[str, str]]",
    imported: "dict[str, str]",
) -> "list[str]":
    """Return the problems of one pinned distribution, as lines.

    imported: the file of each module that is known to import, by name.
    """
    label = f"{pin['name']} {pin['version'] or ''}".rstrip()
    mine = [copy for copy in copies if normalize(copy.name) == normalize(pin["name"])]
    inside = [copy for copy in mine if lies_in(copy.folder, prefix)]
    if not inside:
        elsewhere = [f"{copy.version} is in {copy.folder}" for copy in mine]
        return [f"{label} is not installed in {prefix}", *elsewhere]
    # conda's packages have versions of their own; which package it is, their hash says.
    if inside[0].version != (pin["version"] or inside[0].version):
        return [f"{label}: version {inside[0].version} is installed in {inside[0].folder}"]
    if mine[0] is not inside[0]:
        return shadowed(label, f"{mine[0].version} in {mine[0].folder}", mine[0].folder, modules)
    if not pin["import"]:
        return []
    path: "str | None" = imported.get(pin["import"])
    if path is None:
        path, lines = imported_file(pin["import"])
        if path is None:
            return [f"{label}: import {pin['import']} fails", *(lines or [])]
    if not lies_in(path, prefix):
        return shadowed(label, path, path, modules)
    return []


def shadowed(
    label: str, copy: str, path: "str | Path", modules: "list[tuple[str, str]]"
) -> "list[str]":
    """Return the lines that name the copy which comes first, and the reason."""
    return [
        f"{label} is shadowed: Python finds {copy}",
        cause(path, modules),
        "remove it from the path, or let the recipe use the package from there",
    ]


def main(arguments: "list[str]") -> int:
    """Check and report; return the exit code."""
    parser = argparse.ArgumentParser(
        description="Check that Python finds the pinned distributions in the prefix."
    )
    parser.add_argument("--prefix")
    parser.add_argument("--modules", help="output of module show for each loaded module")
    parser.add_argument("--only", action="append", help="check only these distributions")
    parser.add_argument("--imported", help="file with the modules that were imported before")
    parser.add_argument("--import", dest="name", help="import this module, print its file and exit")
    parser.add_argument("expected", nargs="?")
    options = parser.parse_args(arguments)
    if options.name:
        print_file(options.name)
        return 0
    expected = read_json(options.expected)
    pins = [pin for pin in expected if not options.only or pin["name"] in options.only]
    copies = [each for folder in sys.path for each in distributions.described(folder)]
    modules = read_modules(options.modules)
    imported = take(options.imported) if options.imported else {}
    # Each import has a process of its own, and these take their time: as many at once as there are
    # processors.
    with concurrent.futures.ThreadPoolExecutor(processors()) as pool:
        facts = (options.prefix, copies, modules, imported)
        found = [pool.submit(problem, pin, *facts) for pin in pins]
        problems = [each.result() for each in found]
    for lines in filter(None, problems):
        sys.stderr.write("error: " + "\n  ".join(lines) + "\n")
    right = problems.count([])
    sys.stdout.write(f"{right} of {len(pins)} distributions are as pinned\n")
    return 0 if right == len(pins) else 1
