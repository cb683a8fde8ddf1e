"""What was read of an environment: frozen values that the checks look at."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from ..model.plan import Lock
from ..model.validation import EnvironmentKind
from ..target_tools.elf import MACHINES, Library
from ..target_tools.files import real_in
from ..target_tools.names import normalize

Machine = tuple[int, int, bool]
"""e_machine, bits, and whether the byte order is little endian: as ``elf.Library`` has it."""

FolderKind = Literal["own", "module", "pythonpath", "user", "base", "added"]
"""``own``: of the environment. ``base``: of the Python that it is made with, which is searched
where ``include-system-site-packages`` says so. ``added``: by a .pth file. ``module``: on
PYTHONPATH, where the loaded modules are the environment."""

OWN: frozenset[FolderKind] = frozenset({"own", "module"})


@dataclass(frozen=True, eq=False)
class EnvironmentPython:
    """The Python of an environment. ``path``: as the environment has it, ``real``: what it is.

    ``version``: as pyvenv.cfg says it; ``series``: 3.11 of the environment's own folders;
    ``real_series``: of the program, by its name or its libpython. None: it is not said.
    ``home``: the folder of the base Python's program, as pyvenv.cfg says it.
    """

    path: Path
    real: Path | None
    version: str | None
    series: str | None
    real_series: str | None
    library: Library | None
    home: Path | None = None

    @property
    def machine(self) -> Machine | None:
        return self.library.machine if self.library else None


class RecordedFile(NamedTuple):
    """A file that a distribution installed. ``digest`` and ``size``: as RECORD writes them."""

    path: str
    digest: str
    size: str


# Where Debian's own packages lie; what pip installs beside them lies in lib/pythonX.Y.
DEBIAN = "/lib/python3/dist-packages"
_LEFT_OUT = re.compile(r"__pycache__/|\.py[co]$|^[^/]+\.data/")


def normal(folder: str, name: str) -> str:
    """Return the path of a file by its name in a folder; quick, for there are thousands."""
    plain = ".." not in name and not name.startswith("/")
    return f"{folder}/{name}" if plain else os.path.normpath(os.path.join(folder, name))  # noqa: PTH118


@dataclass(frozen=True, eq=False)
class InstalledDistribution:
    """An installed distribution, by its dist-info or egg-info: ``path``.

    ``recorded``: the rows of its RECORD, file -> (hash, size); None: it has none. ``problem``: why
    its metadata cannot be read; name and version are then those of its folder's name.
    """

    name: str
    version: str
    path: Path
    requires: tuple[str, ...] = ()
    requires_python: str | None = None
    tags: tuple[str, ...] = ()
    recorded: Mapping[str, tuple[str, str]] | None = None
    problem: str | None = None

    @cached_property
    def key(self) -> str:
        """The name as the index spells it."""
        return normalize(self.name)

    @property
    def record(self) -> Path:
        """What was written last when it was installed."""
        return self.path / "RECORD"

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @cached_property
    def files(self) -> tuple[RecordedFile, ...]:
        """The recorded files that installers leave as they are.

        Bytecode is written again when Python likes to, RECORD cannot hold its own hash, and what
        a wheel has in NAME-VERSION.data lies elsewhere: a conda package may keep that RECORD. What
        Debian packed has a RECORD of before its libraries were stripped and its scripts moved.
        """
        folder = str(self.path.parent)
        if folder.endswith(DEBIAN):
            return ()
        return tuple(
            RecordedFile(normal(folder, name), digest, size)
            for name, (digest, size) in (self.recorded or {}).items()
            if digest and not _LEFT_OUT.search(name)
        )


@dataclass(frozen=True, eq=False)
class InstalledCondaPackage:
    """A package that conda installed, by its record in conda-meta: ``path``.

    ``depends``: MatchSpecs. ``files``: those that are to stay as they are. ``channel``: where it
    came from, a URL without credentials or a name; None: nothing says it. ``subdir``: linux-64, ...
    """

    name: str
    version: str
    path: Path
    depends: tuple[str, ...]
    files: tuple[RecordedFile, ...]
    build: str | None = None
    channel: str | None = None
    subdir: str | None = None

    @property
    def record(self) -> Path:
        """What was written last when it was installed."""
        return self.path

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


Installed = InstalledDistribution | InstalledCondaPackage
"""What recorded its files."""


@dataclass(frozen=True, eq=False)
class PackageFolder:
    """A folder that Python searches for packages, with the distributions in it."""

    path: Path
    kind: FolderKind
    distributions: tuple[InstalledDistribution, ...]


@dataclass(frozen=True, eq=False)
class NativeLibrary:
    """An ELF file among the packages. ``module``: Python imports it by its name.

    ``tree``: every name that it and what it loads need -> the path where ld.so finds it.
    ``overruled``: those of them that LD_LIBRARY_PATH brings from elsewhere -> where RUNPATH has
    them. ``variant``: a module that a package chooses, such as MPI.mpich of mpi4py.
    """

    path: str
    library: Library
    module: bool
    tree: Mapping[str, str | None]
    overruled: Mapping[str, str] = field(default_factory=dict)

    @property
    def variant(self) -> bool:
        return not self.module and ".cpython-" in self.path.rpartition("/")[2]

    @cached_property
    def stem(self) -> str:
        """The path up to the first dot of the name, which all variants of a module share."""
        folder, _, file = self.path.rpartition("/")
        return f"{folder}/{file.partition('.')[0]}"


class TargetSite(NamedTuple):
    """A site at which the environment is to run."""

    name: str
    archs: tuple[str, ...]
    glibc: str | None


class Mount(NamedTuple):
    """A file system that is mounted. ``kind``: ext4, nfs4, lustre, ...; ``options``: as mounted."""

    place: str
    kind: str
    options: frozenset[str]


class LoadedModule(NamedTuple):
    """An environment module that is loaded, as LOADEDMODULES and _LMFILES_ say it."""

    name: str
    file: str | None


@dataclass(frozen=True, eq=False)
class Environment:
    """All that was read. ``folders``: in Python's order.

    ``unsearched``: its folders of packages for other series of Python.
    ``outer``: the extension modules of folders that are not its own, where Python imports them.
    ``modules``: those that are loaded in the shell, where they are to be looked at. ``target``:
    where it is to run; None: on this machine. ``root``: the folder of the system that it lies in,
    an image's say; "" for this one. ``glibc``: of the system that would run it; None: not known.
    ``away``: the architecture of the machines that it is for, where this is none of them: then
    their Python, and what that has, are not here.
    ``damaged``: what is named like a library and is none, with why. ``native``: whether this
    machine could run it, so that the machine's own libraries count. ``conda_damaged``: the records
    of conda that cannot be read, with why. ``isa``: the levels of an x86-64 processor that this
    machine's has, as ``elf.Library`` has them; None: it is none, or does not say. ``mounts``: the
    file systems of this machine. ``lock``: of an environment of a root.
    """

    prefix: Path
    kind: EnvironmentKind
    interpreter: EnvironmentPython
    folders: tuple[PackageFolder, ...]
    libraries: tuple[NativeLibrary, ...]
    damaged: Mapping[str, str]
    environ: Mapping[str, str]
    native: bool
    system_packages: bool
    conda: tuple[InstalledCondaPackage, ...] = ()
    conda_damaged: Mapping[str, str] = field(default_factory=dict)
    outer: tuple[NativeLibrary, ...] = ()
    modules: tuple[LoadedModule, ...] = ()
    target: TargetSite | None = None
    root: str = ""
    glibc: str | None = None
    away: str | None = None
    isa: int | None = None
    mounts: tuple[Mount, ...] = ()
    lock: Lock | None = None
    unsearched: tuple[Path, ...] = ()

    @cached_property
    def distributions(self) -> tuple[InstalledDistribution, ...]:
        """Those in the environment itself."""
        return tuple(
            each for folder in self.folders if folder.kind in OWN for each in folder.distributions
        )

    @cached_property
    def installed(self) -> tuple[Installed, ...]:
        """All that recorded files: conda packages, and distributions that none of them brought."""
        paths = {file.path for each in self.conda for file in each.files}
        own = (d for d in self.distributions if f"{d.path}/METADATA" not in paths)
        return (*self.conda, *own)

    @cached_property
    def states(self) -> Mapping[str, os.stat_result | None]:
        """What lies at the paths of all recorded files; None: nothing does, or nobody may look."""
        paths = (file.path for each in self.installed for file in each.files)
        return {path: state_of(self.real(path) if self.root else path) for path in paths}

    @cached_property
    def found(self) -> Mapping[str, tuple[PackageFolder, InstalledDistribution]]:
        """What Python finds first of each name, wherever it lies."""
        first: dict[str, tuple[PackageFolder, InstalledDistribution]] = {}
        for folder in self.folders:
            for each in folder.distributions:
                first.setdefault(each.key, (folder, each))
        return first

    @cached_property
    def brought(self) -> Mapping[str, str]:
        """The libraries that lie in the environment, by their names: name -> path.

        A package may load one by its path, before what needs it by its name.
        """
        machine = self.interpreter.machine
        fitting = [e for e in self.libraries if machine is None or e.library.machine == machine]
        named = {each.library.soname: each.path for each in fitting if each.library.soname}
        return {**named, **{os.path.basename(each.path): each.path for each in fitting}}  # noqa: PTH119 - thousands

    def loaded(self, native: NativeLibrary, name: str) -> str | None:
        """Return which file is loaded for a name that a library needs; None: none is found."""
        return native.tree.get(name) or self.brought.get(name)

    @cached_property
    def usable(self) -> frozenset[str]:
        """The modules of which every library is found, by ``NativeLibrary.stem``."""
        return frozenset(
            each.stem for each in self.libraries if all(self.loaded(each, n) for n in each.tree)
        )

    def name(self, path: str) -> str:
        """Return a path as a summary names it: relative to its folder of packages."""
        for folder in self.folders:
            if folder.kind in OWN and path.startswith(f"{folder.path}/"):
                return path[len(str(folder.path)) + 1 :]
        return self.short(path)

    def short(self, path: str | Path) -> str:
        """Return a path relative to the environment, where it lies in it: as evidence has it."""
        text, prefix = str(path), str(self.prefix).rstrip("/") + "/"
        return text.removeprefix(prefix).removeprefix(self.root)

    def real(self, path: str) -> str:
        """Return where a file lies, links followed as in its system."""
        try:
            return str(real_in(self.root, path.removeprefix(self.root)))
        except OSError:
            return f"{self.root}/dev/null"


def state_of(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 - thousands of them
    except (OSError, ValueError):
        return None


def arch_of(machine: Machine | None) -> str | None:
    """Return the architecture as recipes call it; None: it is not known."""
    if machine is None:
        return None
    name = MACHINES.get(machine[0], str(machine[0]))
    return "ppc64le" if name == "ppc64" and machine[2] else name
