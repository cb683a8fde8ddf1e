"""What native libraries say, and what they bring with them, once they are loaded for real.

    python target_tools load-libraries FRAMEWORK|- NAMES LIBRARY...

loads the libraries after the framework (- for none) and prints JSON: the framework's ``version``,
``answers`` of Horovod's own functions, the shared libraries that are ``mapped`` then. Last it
imports the modules of NAMES, with commas between them, and prints as ``files`` where those lie that
can be imported.
"""

import contextlib
import ctypes
import importlib
import json
import os
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping

from .horovod_build import CLASSES, CPU_OPERATIONS_FUNCTION
from .proc import mapped_libraries
from .processes import run_tool

SECONDS = 300


def child_environment(environ: "Mapping[str, str]", tools: Path) -> "dict[str, str]":
    """Return the environment to load in: without flags of builds and the folder of their tools."""
    folders = filter(None, environ.get("PYTHONPATH", "").split(":"))
    path = [folder for folder in folders if Path(folder).resolve() != tools]
    # HOROVOD_CPU_OPERATIONS means something else, and overrides, when a library runs.
    kept = {n: v for n, v in environ.items() if not n.startswith(("HOROVOD_", "PYTHONPATH"))}
    return dict(kept, **({"PYTHONPATH": ":".join(path)} if path else {}))


def loaded(
    framework: "str | None", paths: "Iterable[Path | str]", tools: Path, names: "Iterable[str]" = ()
) -> "dict[str, Any]":
    """Load libraries in a process and return their answers, or {"error": lines}.

    *tools*: folder to remove from PYTHONPATH. *names*: modules to import too, because importing the
    framework takes most of the time.
    """
    words = ["load-libraries", framework or "-", ",".join(names), *map(str, paths)]
    printed, lines = run_tool(words, child_environment(os.environ, tools), SECONDS)
    return {"error": lines} if printed is None else json.loads(printed)


def answers_of(library: ctypes.CDLL) -> "dict[str, int]":
    """Call the functions of a Horovod library that need no initialisation."""
    found: "dict[str, int]" = {}
    for name in CLASSES:
        function = getattr(library, f"horovod_{name}_built", None)
        if function is not None:
            # Some return a bool, of which only the lowest byte counts.
            found[name] = function() if name == "nccl" else function() & 0xFF
    operations = getattr(library, CPU_OPERATIONS_FUNCTION, None)
    if operations is not None:
        found["cpu_operations"] = operations()
    return found


def files_of(names: "Iterable[str]") -> "Iterator[tuple[str, str]]":
    """Yield (name, file) of each module that can be imported; why one cannot, others tell."""
    for name in names:
        with contextlib.suppress(Exception):
            path = getattr(importlib.import_module(name), "__file__", None)
            if path:
                yield name, path


def main(arguments: "list[str]") -> int:
    """Load and print; return the exit code."""
    framework, names, paths = arguments[0], arguments[1].split(","), arguments[2:]
    with os.fdopen(os.dup(1), "w") as answer:
        os.dup2(2, 1)  # what frameworks print must not get into the answer
        module = None if framework == "-" else importlib.import_module(framework)
        answers: "dict[str, int]" = {}
        for path in paths:
            answers.update(answers_of(ctypes.CDLL(path)))
        found = {
            "version": getattr(module, "__version__", None),
            "answers": answers,
            "mapped": mapped_libraries(),
            "files": dict(files_of(filter(None, names))),
        }
        answer.write(json.dumps(found))
    return 0
