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
from ..host import (
    LINE_LENGTH,
    clean,
    first_line,
    is_folder,
    open_mpi_facts,
    quiet_environment,
    runs,
    together,
)
from ..model.knowledge import Component
from ..model.module_names import stem, stems
from ..model.site import PlainVersion, StatedModule
from ..process import run
from .modulefile_effects import Effects
from .shell import PATIENCE
from .site_modules import SYSTEM_FOLDERS, SiteModules

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
class _ProbeResult:
    """What was found out about one module."""

    provides: dict[str, str] = field(default_factory=dict)
    facts: dict[str, bool | str] = field(default_factory=dict)
    python: str | None = None
    trouble: str | None = None


def probe(site_modules: SiteModules, components: Mapping[str, Component]) -> SiteModules:
    """Return the modules with versions, interpreters and facts that the modules' programs state.

    Modules that bring no Python, no MPI and no Python packages are not loaded. One that does not
    load is named in the notes and stays as it was.
    """
    those = [each for each in site_modules.modules if _worth(site_modules.effects[each.name])]
    jobs = [partial(_look, site_modules, each, components) for each in those]
    answers = together(jobs, 4 * PATIENCE * max(1, len(jobs)))
    results = {each.name: one for each, one in zip(those, answers, strict=True) if one is not None}
    notes = [
        f"module {name} could not be probed: {one.trouble}"
        for name, one in results.items()
        if one.trouble is not None
    ]
    modules = tuple(
        _with(each, results[each.name], components) if each.name in results else each
        for each in site_modules.modules
    )
    return replace(site_modules, modules=modules, notes=(*site_modules.notes, *notes))


_SYSTEM_PACKAGES = ("/usr/lib", "/usr/local/lib")


def _program(effects: Effects, name: str, systems: bool = False) -> str | None:
    """Return the program *name* in the folders that the module itself puts on PATH.

    ``systems``: the system's folders count too.
    """
    folders = (folder.rstrip("/") for folder in effects.folders("PATH"))
    places = (f"{folder}/{name}" for folder in folders if systems or folder not in SYSTEM_FOLDERS)
    return next((path for path in places if runs(path)), None)


def _worth(effects: Effects) -> bool:
    programs = ("python3", "ompi_info", "mpichversion", "mpicxx")
    if any(_program(effects, name, systems=True) for name in programs):
        return True
    return any(is_folder(folder) for folder in effects.folders("PYTHONPATH"))


def _look(
    site_modules: SiteModules, module: StatedModule, components: Mapping[str, Component]
) -> _ProbeResult:
    before = module.parents[0] if module.parents else ()
    code, out, err = site_modules.shell.bash(_LOAD, *before, module.name)
    if code != 0:
        reason = first_line(err) or "it did not load"
        return _ProbeResult(trouble="no answer in time" if code < 0 else reason)
    environ = dict(entry.split("=", 1) for entry in out.split("\0") if "=" in entry)
    effects, result = site_modules.effects[module.name], _ProbeResult()
    named = stems(components).get(stem(module.name))
    _look_at_python(effects, environ, result, named == "python")
    is_mpi = named is not None and "mpi" in components[named].fulfils
    _look_at_mpi(effects, environ, result, is_mpi)
    own = (each for each in effects.folders("PYTHONPATH") if not each.startswith(_SYSTEM_PACKAGES))
    folders = [Path(folder) for folder in own]
    if result.python is not None:
        folders += sorted(Path(result.python).parent.parent.glob("lib*/python3*/site-packages"))
    for folder in folders:
        result.provides |= _packages(folder, components)
    return result


def _say(environ: Mapping[str, str], *command: str) -> str:
    """Return what a program prints, empty where it fails or is for another machine."""
    try:
        done = run(command, env=quiet_environment(environ), timeout=PATIENCE)
    except (EnvbuildError, OSError):
        return ""
    return f"{done.stdout}\n{done.stderr}" if done.ok else ""


def _look_at_python(
    effects: Effects, environ: Mapping[str, str], result: _ProbeResult, systems: bool
) -> None:
    python = _program(effects, "python3", systems)
    match = _PYTHON.search(_say(environ, python, "-V")) if python else None
    if match is not None:
        result.python = python
        result.provides["python"] = match[1]


def _look_at_mpi(
    effects: Effects, environ: Mapping[str, str], result: _ProbeResult, systems: bool
) -> None:
    info = _program(effects, "ompi_info", systems)
    if info is not None:
        text = _say(environ, info, "--parsable", "--all")
        spectrum, open_mpi = (pattern.search(text) for pattern in (_SPECTRUM, _OPEN_MPI))
        # Spectrum MPI is made from Open MPI's code and says that version too.
        if spectrum is not None:
            result.provides["spectrum-mpi"] = spectrum[1]
        elif open_mpi is not None:
            result.provides["openmpi"] = open_mpi[1]
        result.facts |= open_mpi_facts(text)
    mpich = _program(effects, "mpichversion", systems)
    match = _MPICH.search(_say(environ, mpich)) if mpich else None
    if match is not None:
        result.provides["mpich"] = match[1]
    wrapper = _program(effects, "mpicxx", systems)
    shown = _say(environ, wrapper, "-show").split() if wrapper else []
    if shown:
        # The compiler behind the wrapper: IBM's xlC_r is not what builds for Python's extensions.
        result.facts["cxx"] = clean(Path(shown[0]).name, LINE_LENGTH)


def _packages(folder: Path, components: Mapping[str, Component]) -> dict[str, str]:
    """Return the components whose metadata lie in a folder of Python packages."""
    names = {_folded(each.pip): name for name, each in components.items() if each.pip}
    try:
        entries = sorted(path.name for path in folder.iterdir())
    except OSError:
        return {}
    versions = {}
    for entry in entries:
        match = _METADATA.match(entry)
        component = names.get(_folded(match[1])) if match else None
        if match is not None and component is not None:
            versions[component] = match[2]
    return versions


def _folded(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _with(
    module: StatedModule, result: _ProbeResult, components: Mapping[str, Component]
) -> StatedModule:
    """Return the module with what was found. What its name says stays said."""
    provides = {name: text for name, text in result.provides.items() if _is_version(text)}
    named = stems(components).get(stem(module.name))
    version = module.name.rpartition("/")[2].split("-", 1)[0]
    if provides and named is not None and named not in provides and _is_version(version):
        provides[named] = version
    return module.model_copy(
        update={
            "provides": dict(sorted({**module.provides, **provides}.items())),
            "facts": dict(sorted({**module.facts, **result.facts}.items())),
            "python": result.python or module.python,
        }
    )


def _is_version(text: str) -> bool:
    try:
        _VERSION.validate_python(text)
    except ValidationError:
        return False
    return True
