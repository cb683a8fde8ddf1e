"""The probe: loads modules of a site for real and asks the programs that they bring.

It only reads. What a module does by itself counts for it, not what comes with the modules that it
loads: those are probed as themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from ...base import fits
from ...knowledge.components import Component
from ...knowledge.terms import PlainVersion
from ...model.site import StatedModule
from ...target_tools.messages import one_line
from ...target_tools.names import normalize
from ..host import EVERYTHING, ask, first_line, is_folder, names_in, together
from ..mpi import COMPONENTS, identify, open_mpi_facts
from .modulefile_effects import Effects
from .names import stem, stems, version_part
from .shell import PATIENCE
from .site_modules import SiteModules, program

_LOAD = """
for name in "$@"; do
  module load "$name"
  case ":$LOADEDMODULES:" in *":$name:"*) ;; *) exit 74 ;; esac
done
env -0
"""

_PYTHON = re.compile(r"Python (\d[\w.+]*)")
# NAME-VERSION.dist-info, NAME-VERSION-py3.7.egg-info; hyphens of the name are written "_".
_METADATA = re.compile(r"^([^-]+)-(\d[^-]*)(?:-.*)?\.(?:dist|egg)-info$")


def probe(site_modules: SiteModules, components: Mapping[str, Component]) -> SiteModules:
    """Return the modules with versions, interpreters and facts that the modules' programs state.

    Modules that bring no Python, no MPI and no Python packages are not loaded. One that does not
    load is named in the notes and stays as it was.
    """
    modules = list(site_modules.modules)
    those = [n for n, effects in enumerate(site_modules.effects) if _worth(effects)]
    jobs = [partial(_look, site_modules, n, components) for n in those]
    answers = together(jobs, 4 * PATIENCE * max(1, len(jobs)))
    notes = list(site_modules.notes)
    for n, answer in zip(those, answers, strict=True):
        if isinstance(answer, str):
            notes.append(f"module {modules[n].name} could not be probed: {answer}")
        elif answer is not None:
            modules[n] = answer
    return replace(site_modules, modules=tuple(modules), notes=tuple(notes))


_SYSTEM_PACKAGES = ("/usr/lib", "/usr/local/lib")


def _worth(effects: Effects) -> bool:
    programs = ("python3", "ompi_info", "mpichversion", "mpicxx")
    if any(program(effects, name, systems=True) for name in programs):
        return True
    return any(is_folder(folder) for folder in effects.folders("PYTHONPATH"))


def _look(
    site_modules: SiteModules, place: int, components: Mapping[str, Component]
) -> StatedModule | str:
    """Load the module at *place*; return it with what was found, or why it does not load."""
    module, effects = site_modules.modules[place], site_modules.effects[place]
    before = module.parents[0] if module.parents else ()
    done = site_modules.shell.bash(_LOAD, *before, module.name)
    if not done.ok:
        reason = first_line(done.stderr) or "it did not load"
        return "no answer in time" if done.code is None else reason
    environ = dict(entry.split("=", 1) for entry in done.stdout.split("\0") if "=" in entry)
    named = stems(components).get(stem(module.name))
    python = program(effects, "python3", systems=named == "python")
    match = _PYTHON.search(_say(environ, python, "-V"))
    provides = {"python": match[1]} if match else {}
    is_mpi = named is not None and "mpi" in components[named].fulfils
    mpis, facts = _mpis(effects, environ, systems=is_mpi)
    own = (each for each in effects.folders("PYTHONPATH") if not each.startswith(_SYSTEM_PACKAGES))
    folders = [Path(folder) for folder in own]
    if python and match:
        folders += sorted(Path(python).parent.parent.glob("lib*/python3*/site-packages"))
    for found in (mpis, *(_packages(folder, components) for folder in folders)):
        provides |= {
            name: version for name, version in found.items() if fits(PlainVersion, version)
        }
    # What its name says stays said.
    version = version_part(module.name).split("-", 1)[0]
    if provides and named is not None and named not in provides and fits(PlainVersion, version):
        provides[named] = version
    return module.model_copy(
        update={
            "provides": dict(sorted({**module.provides, **provides}.items())),
            "facts": dict(sorted({**module.facts, **facts}.items())),
            "python": python if match else module.python,
        }
    )


def _say(environ: Mapping[str, str], path: str | None, *words: str) -> str:
    """Return what a program prints, empty where it fails or is for another machine."""
    if path is None:
        return ""
    answer = ask((path, *words), environ, patience=PATIENCE, enough=EVERYTHING)
    return answer.text if answer.trouble is None else ""


def _mpis(
    effects: Effects, environ: Mapping[str, str], *, systems: bool
) -> tuple[dict[str, str], dict[str, bool | str]]:
    """Return the versions of the MPIs that a module brings, and what conditions ask of them."""
    versions: dict[str, str] = {}
    facts: dict[str, bool | str] = {}
    for name, words in (("ompi_info", ("--parsable", "--all")), ("mpichversion", ())):
        text = _say(environ, program(effects, name, systems=systems), *words)
        mpi, version = identify(name, text)
        if mpi in COMPONENTS and version is not None:
            versions[COMPONENTS[mpi]] = version
        facts |= open_mpi_facts(text)
    shown = _say(environ, program(effects, "mpicxx", systems=systems), "-show").split()
    if shown:
        # The compiler behind the wrapper: IBM's xlC_r is not what builds for Python's extensions.
        facts["cxx"] = one_line(Path(shown[0]).name)
    return versions, facts


def _packages(folder: Path, components: Mapping[str, Component]) -> dict[str, str]:
    """Return the components whose metadata lie in a folder of Python packages."""
    names = {normalize(each.pip): name for name, each in components.items() if each.pip}
    matches = [match for entry in names_in(folder) if (match := _METADATA.match(entry))]
    found = {names.get(normalize(match[1])): match[2] for match in matches}
    return {component: version for component, version in found.items() if component}
