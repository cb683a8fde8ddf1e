"""The probe: loads modules of a site for real and asks the programs that they bring.

It only reads. What a module does by itself counts for it, not what comes with the modules that it
loads: those are probed as themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ..errors import EnvbuildError
from ..model.knowledge import Component
from ..model.site import PlainVersion, StatedModule
from ..process import run
from .asking import LINE_LENGTH, clean, first_line, quiet_environment, together
from .effects import Effects
from .host import is_folder, runs
from .interpreters import Detected
from .module_shell import PATIENCE
from .mpi import open_mpi_facts
from .site_snapshot import Taken

_VERSION: TypeAdapter[str] = TypeAdapter(PlainVersion)

_LOAD = """
for name in "$@"; do
  module load "$name"
  case ":$LOADEDMODULES:" in *":$name:"*) ;; *) exit 74 ;; esac
done
env -0
"""

_PYTHON = re.compile(r"Python (\d[\w.+]*)")
_OPEN_MPI = re.compile(r"^ompi:version:full:(\d[\w.+-]*)", re.MULTILINE)
_SPECTRUM = re.compile(r"(?:Spectrum MPI|spectrum_mpi:version:full:) ?v?:?\s*(\d[\w.+-]*)")
_MPICH = re.compile(r"MPICH Version:\s*(\d[\w.+-]*)")
# NAME-VERSION.dist-info, NAME-VERSION-py3.7.egg-info; hyphens of the name are written "_".
_METADATA = re.compile(r"^([^-]+)-(\d[^-]*)(?:-.*)?\.(?:dist|egg)-info$")


@dataclass
class _Found:
    """What was found out about one module."""

    provides: dict[str, str] = field(default_factory=dict)
    facts: dict[str, bool | str] = field(default_factory=dict)
    python: str | None = None
    trouble: str | None = None


def probe(taken: Taken, components: Mapping[str, Component]) -> Detected:
    """Return the snapshot with versions, interpreters and facts that the modules' programs state.

    Modules that bring no Python, no MPI and no Python packages are not loaded. One that does not
    load is named in the notes and stays as it was.
    """
    snapshot = taken.detected.snapshot
    those = [each for each in snapshot.modules if _worth(taken.effects[each.name])]
    jobs = [partial(_look, taken, each, components) for each in those]
    answers = together(jobs, 4 * PATIENCE * max(1, len(jobs)))
    found = {each.name: one for each, one in zip(those, answers, strict=True) if one is not None}
    notes = [
        f"module {name} could not be probed: {one.trouble}"
        for name, one in found.items()
        if one.trouble is not None
    ]
    modules = tuple(
        _with(each, found[each.name], components) if each.name in found else each
        for each in snapshot.modules
    )
    probed = snapshot.model_copy(update={"modules": modules})
    return replace(taken.detected, snapshot=probed, notes=(*taken.detected.notes, *notes))


def _program(effects: Effects, name: str) -> str | None:
    """Return the program *name* in the folders that the module itself puts on PATH."""
    places = (f"{folder.rstrip('/')}/{name}" for folder in effects.folders("PATH"))
    return next((path for path in places if runs(path)), None)


def _worth(effects: Effects) -> bool:
    programs = ("python3", "ompi_info", "mpichversion", "mpicxx")
    if any(_program(effects, name) for name in programs):
        return True
    return any(is_folder(folder) for folder in effects.folders("PYTHONPATH"))


def _look(taken: Taken, module: StatedModule, components: Mapping[str, Component]) -> _Found:
    before = module.parents[0] if module.parents else ()
    code, out, err = taken.shell.bash(_LOAD, *before, module.name)
    if code != 0:
        said = first_line(err) or "it did not load"
        return _Found(trouble="no answer in time" if code < 0 else said)
    environ = dict(entry.split("=", 1) for entry in out.split("\0") if "=" in entry)
    effects, found = taken.effects[module.name], _Found()
    _look_at_python(effects, environ, found)
    _look_at_mpi(effects, environ, found)
    folders = [Path(folder) for folder in effects.folders("PYTHONPATH")]
    if found.python is not None:
        folders += sorted(Path(found.python).parent.parent.glob("lib*/python3*/site-packages"))
    for folder in folders:
        found.provides |= _packages(folder, components)
    return found


def _say(environ: Mapping[str, str], *command: str) -> str:
    """Return what a program prints, empty where it fails or is for another machine."""
    try:
        done = run(command, env=quiet_environment(environ), timeout=PATIENCE)
    except (EnvbuildError, OSError):
        return ""
    return f"{done.stdout}\n{done.stderr}" if done.ok else ""


def _look_at_python(effects: Effects, environ: Mapping[str, str], found: _Found) -> None:
    python = _program(effects, "python3")
    match = _PYTHON.search(_say(environ, python, "-V")) if python else None
    if match is not None:
        found.python = python
        found.provides["python"] = match[1]


def _look_at_mpi(effects: Effects, environ: Mapping[str, str], found: _Found) -> None:
    info = _program(effects, "ompi_info")
    if info is not None:
        text = _say(environ, info, "--parsable", "--all")
        spectrum, open_mpi = (pattern.search(text) for pattern in (_SPECTRUM, _OPEN_MPI))
        # Spectrum MPI is made from Open MPI's code and says that version too.
        if spectrum is not None:
            found.provides["spectrum-mpi"] = spectrum[1]
        elif open_mpi is not None:
            found.provides["openmpi"] = open_mpi[1]
        found.facts |= open_mpi_facts(text)
    mpich = _program(effects, "mpichversion")
    match = _MPICH.search(_say(environ, mpich)) if mpich else None
    if match is not None:
        found.provides["mpich"] = match[1]
    wrapper = _program(effects, "mpicxx")
    shown = _say(environ, wrapper, "-show").split() if wrapper else []
    if shown:
        # The compiler behind the wrapper: IBM's xlC_r is not what builds for Python's extensions.
        found.facts["cxx"] = clean(Path(shown[0]).name, LINE_LENGTH)


def _packages(folder: Path, components: Mapping[str, Component]) -> dict[str, str]:
    """Return the components whose metadata lie in a folder of Python packages."""
    names = {_folded(known.pip): name for name, known in components.items() if known.pip}
    try:
        entries = sorted(path.name for path in folder.iterdir())
    except OSError:
        return {}
    found = {}
    for entry in entries:
        match = _METADATA.match(entry)
        component = names.get(_folded(match[1])) if match else None
        if match is not None and component is not None:
            found[component] = match[2]
    return found


def _folded(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _with(module: StatedModule, found: _Found, components: Mapping[str, Component]) -> StatedModule:
    """Return the module with what was found. What its name says stays said."""
    provides = {name: text for name, text in found.provides.items() if _is_version(text)}
    key, _, rest = module.name.rpartition("/")
    named = next((name for name, known in components.items() if key in known.modules), None)
    version = rest.split("-", 1)[0]
    if provides and named is not None and named not in provides and _is_version(version):
        provides[named] = version
    return module.model_copy(
        update={
            "provides": dict(sorted({**module.provides, **provides}.items())),
            "facts": dict(sorted({**module.facts, **found.facts}.items())),
            "python": found.python or module.python,
        }
    )


def _is_version(text: str) -> bool:
    try:
        _VERSION.validate_python(text)
    except ValidationError:
        return False
    return True
