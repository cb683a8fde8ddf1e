"""Check that every pinned distribution is the one that Python finds in this environment.

    python check.py --prefix PREFIX --modules FILE [--imported FILE] [--only NAME]... expected.json

Each pinned distribution must lie in the prefix with the pinned version, come first on Python's
path, and, where an import name is known, be imported from the prefix. A module's PYTHONPATH comes
before a virtualenv, so a copy elsewhere may shadow it: the error names the copy, what put its
folder on the path, and the module that did. FILE holds, for each loaded module, a line
"== NAME" and what ``module show`` prints. What was imported just before need not be again: the
other FILE holds as JSON, by import name, where it lies, and is removed. Exit code 1: something is
wrong. Runs on Python 3.6.
"""

import argparse
import concurrent.futures
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

METADATA = ("METADATA", "PKG-INFO", "")
SHOWN_LINES = 8


class Copy(NamedTuple):
    """A distribution that some folder on the path holds the metadata of."""

    name: str
    version: str
    folder: Path


def normal(name):
    """Return a distribution name as PEP 503 spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def is_below(path, folder):
    """Return whether a path is a folder or lies below it, links resolved."""
    path, folder = Path(path).resolve(), Path(folder).resolve()
    return path == folder or folder in path.parents


def entries(folder, *endings):
    """Return what a folder on the path holds with these endings, by name; none if it is absent."""
    folder = Path(folder)
    found = folder.iterdir() if folder.is_dir() else []
    return sorted(path for path in found if path.name.endswith(endings))


def copies_on_path():
    """Return every distribution on the path, in the order in which Python looks."""
    found = []
    for folder in sys.path:
        for entry in entries(folder, ".dist-info", ".egg-info"):
            found.extend(read_copy(Path(folder), entry))
    return found


def read_copy(folder, entry):
    """Return the distribution that an entry describes, none if it is broken."""
    for path in (entry / name for name in METADATA):
        if path.is_file():
            head = path.read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
            fields = dict(re.findall(r"^(Name|Version):[ \t]*(\S+)", head, re.MULTILINE))
            if len(fields) == 2:
                return [Copy(normal(fields["Name"]), fields["Version"], folder)]
    return []


def cause(path, modules):
    """Return what made Python look where *path* is."""
    for entry in filter(None, os.environ.get("PYTHONPATH", "").split(":")):
        if is_below(path, entry):
            owners = [name for name, text in modules if prepends(text, entry)]
            by = f"set by module {', '.join(owners)}" if owners else "set by no loaded module"
            return f"{entry} is in PYTHONPATH, {by}"
    for folder in sys.path:
        for pth in entries(folder, ".pth"):
            for line in pth.read_text(encoding="utf-8", errors="replace").splitlines():
                if adds(line) and is_below(path, Path(folder) / line.strip()):
                    return f"{line.strip()} is added by {pth}"
    return "it belongs to the Python that the virtualenv was made with"


def adds(line):
    """Return whether a line of a .pth file names a folder."""
    return bool(line.strip()) and not line.startswith(("#", "import ", "import\t"))


def prepends(text, entry):
    """Return whether what ``module show`` says puts this entry into PYTHONPATH."""
    # Lua: prepend_path("PYTHONPATH","/x"); Tcl: prepend-path PYTHONPATH /x or {/x}.
    value = r"[\s,\"'{:=]" + re.escape(entry.rstrip("/")) + r"/?(?=$|[\s\"'}:)])"
    return any("PYTHONPATH" in line and re.search(value, line) for line in text.splitlines())


def read_modules(path):
    """Return (name, what ``module show`` says) of each loaded module."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    parts = re.split(r"^== (\S+)\n", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2]))  # noqa: B905 - strict is new in 3.10


def take(path):
    """Return what was imported just before, none if the file is not there; it counts once."""
    path = Path(path)
    if not path.is_file():
        return {}
    imported = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    return imported


def imported_file(name):
    """Import in a process of its own, as one may crash; return (file, None) or (None, why not)."""
    child = subprocess.run(  # noqa: UP022 - capture_output is new in 3.7
        [sys.executable, __file__, "--import", name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
    )
    if child.returncode == 0:
        return json.loads(child.stdout.decode("utf-8")), None
    said = child.stderr.decode("utf-8", "replace").strip().splitlines()[-SHOWN_LINES:]
    if child.returncode < 0:
        said.append(f"its process was ended by signal {-child.returncode}")
    return None, said


def print_file(name):
    """Import a module and print where it lies as JSON; whatever it prints goes to stderr."""
    with os.fdopen(os.dup(1), "w") as answer:
        os.dup2(2, 1)
        module = importlib.import_module(name)
        path = getattr(module, "__file__", None) or next(iter(module.__path__))
        answer.write(json.dumps(path))


def problem(pin, prefix, copies, modules, imported):
    """Return what is wrong with one pinned distribution, as lines; none if it is right.

    imported: the file of each module that is known to import, by name.
    """
    label = f"{pin['name']} {pin['version']}"
    mine = [copy for copy in copies if copy.name == normal(pin["name"])]
    inside = [copy for copy in mine if is_below(copy.folder, prefix)]
    if not inside:
        elsewhere = [f"{copy.version} lies in {copy.folder}" for copy in mine]
        return [f"{label} is not installed in {prefix}", *elsewhere]
    if inside[0].version != pin["version"]:
        return [f"{label}: version {inside[0].version} is installed in {inside[0].folder}"]
    if mine[0] is not inside[0]:
        return shadowed(label, f"{mine[0].version} in {mine[0].folder}", mine[0].folder, modules)
    if not pin["import"]:
        return []
    path, said = imported.get(pin["import"]), None
    if path is None:
        path, said = imported_file(pin["import"])
    if path is None:
        return [f"{label}: import {pin['import']} fails", *said]
    if not is_below(path, prefix):
        return shadowed(label, path, path, modules)
    return []


def shadowed(label, copy, path, modules):
    """Return the lines that say which copy is in front, and why."""
    return [
        f"{label} is shadowed: Python finds {copy}",
        cause(path, modules),
        "leave that out, or let the recipe take this package from there",
    ]


def main(arguments):
    """Check and report; return the exit code."""
    parser = argparse.ArgumentParser(description="Check the pinned distributions.")
    parser.add_argument("--prefix")
    parser.add_argument("--modules", help="what module show says of each loaded module")
    parser.add_argument("--only", action="append", help="these distributions, if they are pinned")
    parser.add_argument("--imported", help="what was imported just before, if the file is there")
    parser.add_argument("--import", dest="name", help="only import this and print its file")
    parser.add_argument("expected", nargs="?")
    options = parser.parse_args(arguments)
    # The folder of this program is no place to import from.
    del sys.path[0]
    if options.name:
        print_file(options.name)
        return 0
    expected = json.loads(Path(options.expected).read_text(encoding="utf-8"))
    pins = [pin for pin in expected if not options.only or pin["name"] in options.only]
    copies = copies_on_path()
    modules = read_modules(options.modules)
    imported = take(options.imported) if options.imported else {}
    # Each import has a process of its own, and these take their time: as many at once as there are
    # processors.
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        told = (options.prefix, copies, modules, imported)
        found = [pool.submit(problem, pin, *told) for pin in pins]
        problems = [each.result() for each in found]
    for lines in filter(None, problems):
        sys.stderr.write("error: " + "\n  ".join(lines) + "\n")
    right = problems.count([])
    sys.stdout.write(f"{right} of {len(pins)} distributions are as pinned\n")
    return 0 if right == len(pins) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
