"""The recipe that would make an environment again, from what was read of it; never a guess.

What nothing says, and what a recipe cannot say, is told in words beside it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, get_args

from ..host import names_in
from ..host.mpi import COMPONENTS
from ..model.base import fits
from ..model.horovod import HOROVOD
from ..model.knowledge import Component
from ..model.ranges import check_range
from ..model.recipe import Arch, CondaSpec, PipRequirement
from ..model.urls import ChannelName
from ..target_tools.distributions import INSIDE
from ..target_tools.files import is_below
from ..target_tools.names import normalize
from ..text import LONG, shown
from .checks.mpi import loaded_mpis
from .checks.shell import CUDA, NCCL, LibraryHome, release_of
from .checks.together import loaded
from .facts import CondaPackage, Distribution, Environment, PackageFolder, arch_of
from .horovod import horovod_build
from .origins import direct_origin
from .stack import Stack

# What a virtualenv gets from the Python that it is made with, pip anyway; conda's is a package.
_PIP = "pip"
_BUNDLED = "ensurepip/_bundled"
_LIBRARIES: Mapping[str, LibraryHome] = {"nccl": NCCL, "cuda": CUDA}
# A name that only a module of one of these would bring.
_OF_MODULES = re.compile(r"lib(mpi|mpich|mpi_ibm|nccl|cudart|cudnn)\.so\b")
_CONDA = "conda environment"


@dataclass(frozen=True)
class Subject:
    """What is described, and what is known beside it.

    ``modules``: the loaded ones, each with the components that it is. ``backend``: what makes such
    environments; None: nothing does. ``releases``: of a component that the index has. ``bundled``:
    the runtime that every environment gets; ``implied``: components that this needs.
    ``reads``: whether a release of Horovod has a build variable that a recipe states.
    ``channels``: the names of recorded ones, by their URLs.
    """

    environment: Environment
    stack: Stack
    components: Mapping[str, Component]
    backend: str | None
    bundled: str
    modules: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    releases: Mapping[str, frozenset[str]] = field(default_factory=dict)
    implied: tuple[str, ...] = ()
    reads: Callable[[str, str], bool] = lambda _flag, _release: True
    channels: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def own(self) -> list[Distribution]:
        """The distributions that pip put into the environment itself."""
        own = {id(d) for f in self.environment.folders if f.kind == "own" for d in f.distributions}
        return [
            each
            for each in self.environment.installed
            if isinstance(each, Distribution) and id(each) in own
        ]

    def component_of(self, key: str) -> str | None:
        """Return the component that a distribution is, by its name on the index."""
        return self._by_pip.get(key)

    @cached_property
    def _by_pip(self) -> dict[str, str]:
        return {
            normalize(pip): name
            for name, each in self.components.items()
            for pip in (*each.pip_variants, each.pip)
            if pip
        }


class Entry(NamedTuple):
    """One line of a recipe: its section, a key in that, and the value.

    The sections ``unknown`` and ``differs`` are for people: what is not in the recipe, and what
    ``create`` makes otherwise.
    """

    section: str
    key: str
    value: str = ""


@dataclass(frozen=True)
class Draft:
    """A recipe as JSON types, and what its reader is to know, a line each."""

    values: Mapping[str, Any]
    unknown: tuple[str, ...]
    differs: tuple[str, ...]


def recipe_draft(what: Subject, name: str, summary: str) -> Draft:
    """Return the recipe of an environment, with the nearest thing to each fact that it can say."""
    environment = what.environment
    arch = arch_of(environment.interpreter.machine)
    entries = [*_entries(what)]

    def section(name: str) -> dict[str, str]:
        return {each.key: each.value for each in entries if each.section == name}

    runtime: dict[str, Any] = section("runtime") or {"package": what.bundled}
    flags = section("flags")
    conda = what.backend is not None and environment.kind == _CONDA
    values = {
        "schema": 1,
        "name": name,
        "summary": summary,
        "arch": [arch] if arch in get_args(Arch) else [],
        "backend": what.backend or "virtualenv",
        "system-site-packages": environment.system_packages and not conda,
        "channels": [*section("channels")],
        "stack": {"python": "*", **section("stack")},
        "pip-names": section("pip-names"),
        "from-source": [*section("from-source")],
        "conda-packages": [*section("conda-packages")],
        "packages": [*section("packages")],
        "runtime": {**runtime, **({"flags": flags} if flags else {})},
    }
    return Draft(
        values={key: value for key, value in values.items() if value},
        unknown=tuple(section("unknown")),
        differs=tuple(section("differs")),
    )


def _entries(what: Subject) -> Iterator[Entry]:
    found: set[str] = set()
    parts = (_python, _conda, _distributions, _of_modules, _linked, _runtime, _outside, _missing)
    for part in parts:
        for each in part(what):
            # Who says it first says it from nearest by.
            if each.section != "stack" or each.key not in found:
                yield each
            found |= {each.key} if each.section == "stack" else set()
    named = found | {r for each in found if each in what.components for r in _roles(what, each)}
    for role in what.implied:
        if role not in named:
            yield Entry("differs", f"create adds {role}: the runtime that proves it needs one")


def _roles(what: Subject, component: str) -> tuple[str, ...]:
    return what.components[component].fulfils


def _exactly(version: str) -> str | None:
    """Return the range that admits just this version; None: it is none of PEP 440."""
    public = version.partition("+")[0]
    try:
        return check_range(f"=={public}")
    except ValueError:
        return None


def _line(component: str, version: str) -> Entry:
    wanted = _exactly(version)
    if wanted is None:
        said = f"{component} {shown(version)}: a version that no range of a recipe can name"
        return Entry("unknown", said)
    return Entry("stack", component, wanted)


def _python(what: Subject) -> Iterator[Entry]:
    """Yield the Python of a virtualenv; conda's is a package, a module's a module."""
    interpreter, there = what.environment.interpreter, what.stack.versions.get("python")
    if any(each.name == "python" for each in what.environment.conda):
        return
    module = next((m for m, those in what.modules.items() if those.get("python") == there), None)
    if there and module:
        yield Entry("stack", "python", module)
    elif interpreter.version:
        yield _line("python", interpreter.version)
    elif interpreter.series:
        yield Entry("stack", "python", f"=={interpreter.series}.*")
        yield Entry("unknown", f"the release of its Python: only the series {interpreter.series}")
    else:
        yield Entry("unknown", "its Python: neither pyvenv.cfg nor a folder of packages says it")
    if what.backend is None:
        yield Entry("differs", "it is no virtualenv: create makes one on its Python")


# ---------------------------------------------------------------- what conda and pip installed


def _conda(what: Subject) -> Iterator[Entry]:
    names = {each.conda: name for name, each in what.components.items() if each.conda}
    for each in what.environment.conda:
        component = names.get(each.name)
        yield from _channel(what, each)
        spec = " ".join(filter(None, (each.name, f"=={each.version}", each.build)))
        if fits(CondaSpec, spec):
            yield Entry("conda-packages", spec)
        elif component in (None, HOROVOD):
            yield Entry("unknown", f"the conda package {shown(spec, LONG)}")
        if component not in (None, HOROVOD):
            yield _line(component, each.version)
    channels = {url for each in what.environment.conda for url in [each.channel] if url}
    if len(channels) > 1:
        yield Entry("unknown", "the order of its channels: no record of a package says it")
    for path, why in what.environment.conda_damaged.items():
        yield Entry("unknown", f"the package of {shown(path, LONG)}: {shown(why, LONG)}")


def _channel(what: Subject, each: CondaPackage) -> Iterator[Entry]:
    channel = what.channels.get(each.channel or "", each.channel or "")
    if fits(ChannelName, channel):
        yield Entry("channels", channel)
    else:
        yield Entry("unknown", f"the channel of {shown(each.name)}: {shown(channel) or 'not said'}")


def _distributions(what: Subject) -> Iterator[Entry]:
    brought = _of_python(what.environment)
    for each in what.own:
        component = what.component_of(each.key)
        if each.key == normalize(what.bundled) or component == HOROVOD:
            continue  # the runtime
        if f"{each.key}-{each.version}" in brought:
            continue
        if each.key == _PIP:
            yield Entry("differs", f"it has {each}: create takes the one of its Python")
            continue
        origin = direct_origin(each)
        if each.problem is not None:
            yield Entry("unknown", shown(f"{each}: {each.problem}", LONG))
        elif origin is not None:
            yield Entry("unknown", shown(f"{each}: it is from {origin}", LONG))
        elif component is None or what.components[component].build_only:
            # A plan takes tools of builds for itself alone.
            yield from _package(each)
        else:
            yield from _component(what, component, each)


def _of_python(environment: Environment) -> frozenset[str]:
    """Return what ``python -m venv`` installs of its own: pip, and setuptools before 3.12."""
    python = environment.interpreter
    if python.real is None or python.series is None:
        return frozenset()
    lib = python.real.parent.parent / "lib" / f"python{python.series}"
    wheels = (name.split("-") for name in names_in(lib / _BUNDLED) if name.endswith(".whl"))
    return frozenset(f"{normalize(each[0])}-{each[1]}" for each in wheels if len(each) > 1)


def _package(each: Distribution) -> Iterator[Entry]:
    text = f"{each.name}=={each.version}"
    if fits(PipRequirement, text):
        yield Entry("packages", text)
        yield from _local(each)
    else:
        yield Entry("unknown", f"{shown(str(each), LONG)}: no name and version that pip takes")
    if _built_here(each):
        yield Entry("unknown", f"from what {each} was built: its wheel is for this kind of machine")


def _component(what: Subject, component: str, each: Distribution) -> Iterator[Entry]:
    known = what.components[component]
    yield _line(component, each.version)
    yield from _local(each)
    if known.pip and normalize(known.pip) != each.key:
        yield Entry("pip-names", component, each.name)
    if _built_here(each) and known.from_source:
        yield Entry("from-source", component)
    public = each.version.partition("+")[0]
    if public not in what.releases.get(component, {public}):
        said = f"{component} {public} is no release that the knowledge of envbuild has"
        yield Entry("unknown", f"{said}: knowledge/versions.yaml of a folder of yours can add it")


def _local(each: Distribution) -> Iterator[Entry]:
    if "+" in each.version:
        yield Entry("unknown", f"which index has {each}: pip-indexes of the recipe names it")


def _built_here(each: Distribution) -> bool:
    """Whether a wheel is for no machine but such a one: the index takes none for linux_x86_64."""
    return any(tag.rpartition("-")[2].startswith("linux_") for tag in each.tags)


# ---------------------------------------------------------------- what lies outside


def _stands_on(name: str, each: Component) -> bool:
    """Whether an environment stands on a component; what is below that comes along with it."""
    named = bool(each.fulfils or each.gpu or each.python_import or each.collectives)
    return named or name in ("python", "cudnn", HOROVOD)


def _of_modules(what: Subject) -> Iterator[Entry]:
    """Yield what loaded modules bring, as just these modules."""
    for module, provided in what.modules.items():
        for name, version in provided.items():
            known = what.components.get(name)
            if known is None or name == HOROVOD or not _stands_on(name, known):
                continue
            there = what.stack.versions.get(name)
            if there == version:
                yield Entry("stack", name, module)
            elif there is not None:
                said = f"{module} is loaded, and what is used is {name} {there}"
                yield Entry("differs", f"{said}: the recipe asks for that")
    files = {each.name: each.file for each in what.environment.modules}
    for name, file in files.items():
        if file is not None and not os.path.lexists(file):
            yield Entry("unknown", f"what the module {shown(name)} brings: its file is gone")


def _linked(what: Subject) -> Iterator[Entry]:
    """Yield the MPI, NCCL and CUDA that extension modules load from outside the environment."""
    environment, versions = what.environment, what.stack.versions
    mpis = {o.mpi.path: o.mpi for those in loaded_mpis(environment).values() for o in those}
    for path, mpi in mpis.items():
        name = COMPONENTS.get(mpi.name)
        if name and name in versions:
            yield _line(name, versions[name])
        elif name and not _inside(environment, path):
            yield Entry("stack", name, "*")
            yield Entry("unknown", f"the release of {mpi} in {path}: nothing beside it says it")
    for component, home in _LIBRARIES.items():
        every = [one for those in loaded(environment, home.library).values() for one in those]
        outside = [one for one in every if not _inside(environment, one.path)]
        for one in outside[:1]:
            release = release_of(home, one.path)
            if release:
                short = ".".join(map(str, release))
                exact = len(release) > 2
                yield Entry("stack", component, f"=={short}" if exact else f"=={short}.*")
            else:
                yield Entry("unknown", f"the release of {component} in {one.path}")


def _inside(environment: Environment, path: str) -> bool:
    prefix = os.path.realpath(environment.prefix)
    return bool(is_below(os.path.realpath(path), prefix))


def _outside(what: Subject) -> Iterator[Entry]:
    """Yield the components among packages of other folders that the environment stands on."""
    required = {normalize(_name(text)) for each in what.own for text in each.requires}
    for key, (folder, each) in what.environment.found.items():
        component = what.component_of(key)
        if component in (None, HOROVOD) or folder.kind == "own":
            continue
        if folder.kind == "module" or key in required or component in what.implied:
            yield _line(component, each.version)


def _name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    return found[0] if found else ""


def _missing(what: Subject) -> Iterator[Entry]:
    environment = what.environment
    for native in environment.libraries:
        for name in native.tree if native.module else ():
            if _OF_MODULES.match(name) and environment.loaded(native, name) is None:
                where = environment.name(native.path)
                yield Entry("unknown", f"what brings {name}, which {where} needs")
    loaded_here = environment.environ.get("LOADEDMODULES")
    if loaded_here and not environment.modules:
        said = f"whether it stands on the modules of this shell, {shown(loaded_here, LONG)}"
        yield Entry("unknown", f"{said}: --loaded counts them to it")


# ---------------------------------------------------------------- the runtime


def _runtime(what: Subject) -> Iterator[Entry]:
    found = what.environment.found.get(HOROVOD)
    if found is None:
        return
    folder, each = found
    if folder.kind == "own" and (origin := direct_origin(each)):
        yield Entry("unknown", shown(f"whose sources {each} is of: {origin}", LONG))
    yield Entry("runtime", "package", HOROVOD)
    if folder.kind == "module":
        yield Entry("runtime", "origin", "module")
    wanted = _exactly(each.version)
    yield Entry("runtime", "version", wanted or "*")
    yield from _flags(what, folder, each)


def _flags(what: Subject, folder: PackageFolder, each: Distribution) -> Iterator[Entry]:
    recorded = what.stack.flags
    built = None if recorded else horovod_build(what.environment, folder)
    if recorded is None and built is None:
        said = f"with which variables {each} was built: neither {INSIDE} nor a library says it"
        yield Entry("unknown", said)
    flags = recorded or (built.flags if built else {})
    for name, value in flags.items():
        if what.reads(name, each.version):
            yield Entry("flags", name, value)
    for text in built.unknown if built else ():
        yield Entry("unknown", text)
