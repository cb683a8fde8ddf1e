"""The components that the machine itself has, outside modules and environments.

What a login shell finds there: GCC, CMake, an MPI, CUDA and NCCL. What a module, a virtualenv or a
conda environment has put on PATH is none of it: the build does not see those.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from ..model.site import SystemComponent
from ..target_tools.messages import one_line
from .host import (
    ENDING,
    EVERYTHING,
    LocalMachine,
    is_file,
    is_there,
    machine_arch,
    runs,
    text_of,
    together,
)
from .mpi import COMPONENTS, open_mpi_facts
from .mpi_programs import MpiInstallation, look
from .tools import GNU, NVCC

Facts = Mapping[str, bool | str]

_LAUNCHERS = ("mpirun", "mpiexec")
_HAVE_OMPI_INFO = ("openmpi", "spectrum-mpi")

_CMAKE = re.compile(r"cmake version (\d+(?:\.\d+)+)")

# CUDA_VERSION is 1000 * major + 10 * minor (cuda.h).
_CUDA_H = re.compile(r"^#define\s+CUDA_VERSION\s+(\d{1,9})\b", re.MULTILINE)
_NCCL_H = re.compile(r"^#define\s+NCCL_(MAJOR|MINOR|PATCH)\s+(\d+)", re.MULTILINE)

_CUDA_VARIABLES = ("CUDA_HOME", "CUDA_PATH")
_NCCL_VARIABLES = ("NCCL_HOME", "NCCL_ROOT", "NCCL_DIR")
_CUDA_FOLDER = "/usr/local/cuda"
# What holds everything is no module's own folder, whatever a modulefile says.
_SHARED_FOLDERS = frozenset(
    {
        "/opt",
        *(f"{base}{rest}" for base in ("", "/usr", "/usr/local") for rest in ("", "/bin", "/sbin")),
    }
)

# Programs that one look asks one after the other, at most.
_IN_A_ROW = 8


def system_components(
    host: LocalMachine,
    components: Collection[str] | None = None,
    module_folders: Iterable[str] = (),
) -> tuple[SystemComponent, ...]:
    """Return the components of the machine itself, sorted by name.

    *components*: canonical names of those that are of use; None: all that are known here. Asking
    an Open MPI for its facts costs more than all the others. *module_folders*: their programs are
    the modules'. Starts programs, writes nothing, never raises for what it finds.
    """
    own = _own(host, module_folders)
    looks: dict[tuple[str, ...], Callable[[LocalMachine], SystemComponent | None]] = {
        ("gcc",): partial(_tool, "gcc", "g++", GNU),
        ("cmake",): partial(_tool, "cmake", "cmake", _CMAKE),
        tuple(COMPONENTS.values()): partial(mpi_on_path, components),
        ("cuda",): _cuda,
        ("nccl",): _nccl,
    }
    of_use = [
        partial(look_for, own)
        for names, look_for in looks.items()
        if components is None or any(name in components for name in names)
    ]
    results = together(of_use, _IN_A_ROW * (host.patience + ENDING))
    return tuple(sorted(filter(None, results), key=lambda each: each.component))


def _own(host: LocalMachine, module_folders: Iterable[str]) -> LocalMachine:
    """Return the host without the folders that modules and environments put on PATH."""
    loaded = [value for name, value in host.environ.items() if name.startswith("EBROOT")]
    active = [host.environ.get(name, "") for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
    folders = {
        os.path.realpath(folder)
        for folder in (*module_folders, *loaded, *active)
        if folder.startswith("/") and folder.rstrip("/") not in _SHARED_FOLDERS
    }

    def is_own(path: str) -> bool:
        real = Path(os.path.realpath(path))
        inside = any(str(folder) in folders for folder in (real, *real.parents))
        return not inside and not is_file(real.parent / "pyvenv.cfg")

    kept = {
        name: value
        for name, value in host.environ.items()
        if name not in (*_CUDA_VARIABLES, *_NCCL_VARIABLES) or is_own(value)
    }
    path = ":".join(folder for folder in host.path.folders if is_own(folder))
    return replace(host, environ={**kept, "PATH": path})


def _component(component: str, version: str, locator: str, facts: Facts) -> SystemComponent | None:
    """Return the component; None where version or path has what no document admits."""
    every = dict(sorted({"arch": machine_arch(), **facts}.items()))
    try:
        return SystemComponent(component=component, version=version, locator=locator, facts=every)
    except ValidationError:
        return None


def _answering(
    host: LocalMachine, paths: Iterable[str], pattern: re.Pattern[str]
) -> tuple[str, str] | None:
    """Return the first of these programs that answers as *pattern* says, with its version."""
    for path in paths:
        answer = host.ask(path, "--version")
        match = pattern.search(answer.stdout)
        if match and answer.trouble is None:
            return path, match[1]
    return None


def _tool(
    component: str, program: str, pattern: re.Pattern[str], host: LocalMachine
) -> SystemComponent | None:
    found = _answering(host, host.every(program), pattern)
    return _component(component, found[1], found[0], {}) if found else None


def mpi_on_path(wanted: Collection[str] | None, host: LocalMachine) -> SystemComponent | None:
    """Return the MPI whose launcher a shell runs. One without a launcher starts no ranks."""
    launcher = next(filter(None, (_first_mpi(host, name) for name in _LAUNCHERS)), None)
    if launcher is None or launcher.implementation is None or launcher.version is None:
        return None
    component = COMPONENTS[launcher.implementation]
    if wanted is not None and component not in wanted:
        return None
    facts = _building(host, launcher)
    info = host.which("ompi_info")
    if info and launcher.implementation in _HAVE_OMPI_INFO:
        facts |= open_mpi_facts(host.ask(info, "--parsable", "--all", enough=EVERYTHING).stdout)
    return _component(component, launcher.version, launcher.path, facts)


def _first_mpi(host: LocalMachine, command: str) -> MpiInstallation | None:
    path = host.which(command)
    mpi = look(host, command, path) if path else None
    return mpi if mpi and mpi.version and mpi.implementation in COMPONENTS else None


def _building(host: LocalMachine, launcher: MpiInstallation) -> dict[str, bool | str]:
    """Return whether programs can be compiled with this MPI, and by which compiler.

    Its wrapper must be of the same MPI as its launcher, and find a compiler and the headers.
    """
    wrapper = _first_mpi(host, "mpicxx")
    answer = host.ask(wrapper.path, "-show") if wrapper and _same(wrapper, launcher) else None
    line = answer.stdout.split() if answer and answer.trouble is None else []
    if not line:
        return {"development": False}
    compiler = line[0] if runs(line[0]) else host.which(line[0])
    folders = [word[2:] for word in line if word.startswith("-I")]
    headers = any(is_file(Path(folder) / "mpi.h") for folder in (*folders, "/usr/include"))
    return {
        "development": compiler is not None and headers,
        "cxx": one_line(Path(line[0]).name),
    }


def _same(one: MpiInstallation, other: MpiInstallation) -> bool:
    return (one.implementation, one.version) == (other.implementation, other.version)


def _cuda(host: LocalMachine) -> SystemComponent | None:
    """Return the CUDA toolkit of the first nvcc that answers."""
    folders = [*_variables(host, _CUDA_VARIABLES), str(host.at(_CUDA_FOLDER))]
    beside = [path for folder in folders if runs(path := f"{folder}/bin/nvcc")]
    found = _answering(host, dict.fromkeys([*host.every("nvcc"), *beside]), NVCC)
    if found is None:
        return None
    path, version = found
    # The program may be a script that calls another one: the header decides.
    homes = [str(Path(os.path.realpath(path)).parent.parent), *folders]
    home = next((each for each in homes if _is_cuda(each, version)), None)
    return _component("cuda", version, path, {"home": home} if home else {})


def _is_cuda(home: str, version: str) -> bool:
    match = _CUDA_H.search(text_of(Path(home) / "include" / "cuda.h") or "")
    if match is None:
        return False
    number = int(match[1])
    return version.split(".")[:2] == [str(number // 1000), str(number % 1000 // 10)]


def _nccl(host: LocalMachine) -> SystemComponent | None:
    """Return the NCCL that programs can be compiled with: header and library in one folder."""
    homes = [
        *_variables(host, _NCCL_VARIABLES),
        *_variables(host, _CUDA_VARIABLES),
        *(str(host.at(folder)) for folder in (_CUDA_FOLDER, "/usr/local", "/usr")),
    ]
    for home in dict.fromkeys(homes):
        header = Path(home) / "include" / "nccl.h"
        parts = dict(_NCCL_H.findall(text_of(header) or ""))
        folders = list(_library_folders(home))
        if len(parts) == 3 and any(is_there(f"{each}/libnccl.so.2") for each in folders):
            version = ".".join(parts[name] for name in ("MAJOR", "MINOR", "PATCH"))
            static = any(is_there(f"{each}/libnccl_static.a") for each in folders)
            return _component(
                "nccl", version, str(header), {"home": home, "static_library": static}
            )
    return None


def _library_folders(home: str) -> Iterator[str]:
    yield from (f"{home}/lib64", f"{home}/lib")
    # Debian's multiarch folders, and those of CUDA for several targets.
    for pattern in ("lib/*-linux-gnu*", "targets/*/lib"):
        yield from (str(folder) for folder in sorted(Path(home).glob(pattern)))


def _variables(host: LocalMachine, names: Iterable[str]) -> list[str]:
    values = (host.environ.get(name, "").rstrip("/") for name in names)
    return [value for value in values if value.startswith("/")]
