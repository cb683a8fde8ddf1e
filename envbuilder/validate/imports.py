"""What happens when the packages of an environment are imported: all that is ever run of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ..inspect.facts import OWN, Environment
from ..inspect.observation import seen
from ..knowledge.components import Component
from ..machine.host import ask, first_line, is_file
from ..model.validation import Finding
from ..target_tools.names import normalize
from .checks.protocol import INFOS, Violation, told

# Seconds for one import: a framework on a busy shared file system needs a minute.
PATIENCE = 180.0
_PROGRAM = "import importlib, sys; importlib.import_module(sys.argv[1])"


def modules_of(environment: Environment, components: Mapping[str, Component]) -> tuple[str, ...]:
    """Return what is worth importing: packages with extension modules, and known components.

    Nothing where this machine cannot run its Python.
    """
    if environment.interpreter.real is None or not environment.native:
        return ()
    modules = (each.path for each in environment.libraries if each.module)
    found = {name for path in modules if (name := _top(environment, path))}
    there = {key for key, (folder, _) in environment.found.items() if folder.kind in OWN}
    for component in components.values():
        if component.python_import and component.pip and normalize(component.pip) in there:
            found.add(component.python_import)
    return tuple(sorted(found))


def _top(environment: Environment, path: str) -> str | None:
    """Return the module by which a program imports an extension: its package, or it itself.

    None: it lies in a folder of libraries, or in one that many distributions share.
    """
    for folder in environment.folders:
        start = f"{folder.path}/"
        if folder.kind in OWN and path.startswith(start):
            first, inside, _ = path.removeprefix(start).partition("/")
            package = not inside or is_file(folder.path / first / "__init__.py")
            name = first.partition(".")[0]
            return name if package and name.isidentifier() else None
    return None


def failures(environment: Environment, names: tuple[str, ...]) -> Iterator[Finding]:
    """Import each in a process of its own, in this shell; yield what does not end well.

    Nothing is written by it but what the packages themselves write when they are imported.
    """
    python = str(environment.interpreter.path)
    for name in names:
        command = (python, "-c", _PROGRAM, name)
        # In /, for what lies in the current folder can be imported too.
        done = ask(command, environment.environ, cwd=Path("/"), patience=PATIENCE)
        if done.trouble is not None:
            said = first_line(done.stderr) or done.trouble
            where = environment.short(environment.interpreter.path)
            yield told(
                INFOS["run.import-failed"],
                Violation(f"import {name} fails: {said}", (seen(where, f"import {name}", said),)),
            )
