"""The lines of a recipe for what lies outside of an environment: modules, libraries, Pythons."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from ..base import ModuleName, fits
from ..inspect.facts import Environment
from ..inspect.library_homes import CUDA, NCCL, LibraryHome, release_of
from ..inspect.loaded import loaded, loaded_mpis
from ..knowledge.components import Component
from ..machine.host import LocalMachine
from ..machine.mpi import COMPONENTS
from ..target_tools.files import is_below, open_regular
from ..target_tools.names import normalize
from ..text import LONG, shown
from .lines import RecipeInput, RecipeLine, line

_LIBRARIES: Mapping[str, LibraryHome] = {"nccl": NCCL, "cuda": CUDA}
# A name that only a module of one of these would bring.
_OF_MODULES = re.compile(r"lib(mpi|mpich|mpi_ibm|nccl|cudart|cudnn)\.so\b")

_LARGEST_MODULEFILE = 256 * 1024


def _stands_on(name: str, each: Component) -> bool:
    """Whether an environment stands on a component; what is below that comes along with it."""
    named = bool(each.fulfils or each.gpu or each.python_import or each.collectives)
    return named or name in ("python", "cudnn")


def of_modules(what: RecipeInput) -> Iterator[RecipeLine]:
    """Yield what loaded modules bring, as just these modules."""
    for module, provided in what.modules.items():
        for name, version in provided.items():
            known = what.components.get(name)
            if known is None or what.is_runtime(name) or not _stands_on(name, known):
                continue
            there = what.stack.versions.get(name)
            if there == version:
                yield RecipeLine("stack", name, module)
            elif there is not None:
                said = f"{module} is loaded, but {name} {there} is used"
                yield RecipeLine("differs", f"{said}: the recipe requires the latter")
    files = {each.name: each.file for each in what.environment.modules}
    for name, file in files.items():
        if file is not None and not os.path.lexists(file):
            yield RecipeLine(
                "unknown", f"the contents of module {shown(name)}: its file is missing"
            )


def linked(what: RecipeInput) -> Iterator[RecipeLine]:
    """Yield the MPI, NCCL and CUDA that extension modules load from outside the environment."""
    environment, versions = what.environment, what.stack.versions
    mpis = {o.mpi.path: o.mpi for those in loaded_mpis(environment).values() for o in those}
    for path, mpi in mpis.items():
        name = COMPONENTS.get(mpi.name)
        module = None if _inside(environment, path) else module_of(what, path)
        if name and name in versions and module:
            yield RecipeLine("stack", name, module)
            yield stated(module, name, versions[name])
        elif name and name in versions:
            yield line(name, versions[name])
        elif name and not _inside(environment, path):
            yield RecipeLine("stack", name, "*")
            yield RecipeLine(
                "unknown", f"the release of {mpi} in {path}: no file next to it states it"
            )
    for component, home in _LIBRARIES.items():
        every = [one for those in loaded(environment, home.library).values() for one in those]
        outside = [one for one in every if not _inside(environment, one.path)]
        for one in outside[:1]:
            release, module = release_of(home, one.path), module_of(what, one.path)
            short = ".".join(map(str, release or ()))
            if release and module:
                yield RecipeLine("stack", component, module)
                yield stated(module, component, short)
            elif release:
                exact = len(release) > 2
                yield RecipeLine("stack", component, f"=={short}" if exact else f"=={short}.*")
            else:
                yield RecipeLine("unknown", f"the release of {component} in {one.path}")


def module_of(what: RecipeInput, path: str) -> str | None:
    """Return the loaded module that brings a file, where its name does not say what it brings.

    It is the one whose modulefile names the folder above that of the file.
    """
    root = os.path.dirname(os.path.dirname(os.path.realpath(path)))  # noqa: PTH120
    plain = os.path.dirname(os.path.dirname(path))  # noqa: PTH120
    for each in what.environment.modules:
        if what.modules.get(each.name) or each.file is None or not fits(ModuleName, each.name):
            continue
        try:
            with open_regular(each.file) as stream:
                text = stream.read(_LARGEST_MODULEFILE).decode("utf-8", "replace")
        except OSError:
            continue
        if any(_names(text, folder) for folder in {root, plain} if folder.count("/") > 1):
            return each.name
    return None


def _names(text: str, folder: str) -> bool:
    return re.search(re.escape(folder) + r"(?![\w.+-])", text) is not None


def stated(module: str, component: str, version: str, python: str | None = None) -> RecipeLine:
    """Return what a site states of a module whose name does not say what it brings."""
    more = f", python: {python}" if python else ""
    said = f'modules: [{{name: {module}, provides: {{{component}: "{version}"}}{more}}}]'
    return RecipeLine("site", said)


def elsewhere(environment: Environment) -> Iterator[RecipeLine]:
    """Yield the Python of a virtualenv where a plan does not look for one."""
    python = environment.interpreter
    host = LocalMachine(environment.environ)
    found = (host.which(name) for name in ("python3", "python", f"python{python.series}"))
    if python.real and str(python.real) not in {os.path.realpath(each) for each in found if each}:
        yield RecipeLine("site", f"pythons: [{shown(str(python.real), LONG)}]")


def _inside(environment: Environment, path: str) -> bool:
    prefix = os.path.realpath(environment.prefix)
    return bool(is_below(os.path.realpath(path), prefix))


def outside(what: RecipeInput) -> Iterator[RecipeLine]:
    """Yield the components among packages of other folders that the environment stands on."""
    required = {normalize(_name(text)) for each in what.own for text in each.requires}
    for key, (folder, each) in what.environment.found.items():
        component = what.component_of(key)
        if component is None or what.is_runtime(component) or folder.kind == "own":
            continue
        if folder.kind == "module" or key in required or component in what.implied:
            yield line(component, each.version)


def _name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    return found[0] if found else ""


def missing(what: RecipeInput) -> Iterator[RecipeLine]:
    environment = what.environment
    for native in environment.libraries:
        for name in native.tree if native.module else ():
            if _OF_MODULES.match(name) and environment.loaded(native, name) is None:
                where = environment.name(native.path)
                yield RecipeLine(
                    "unknown", f"the package that provides {name}, which {where} needs"
                )
    loaded_here = environment.environ.get("LOADEDMODULES")
    if loaded_here and not environment.modules:
        said = f"whether it uses the modules of this shell, {shown(loaded_here, LONG)}"
        yield RecipeLine("unknown", f"{said}: --loaded includes them")
