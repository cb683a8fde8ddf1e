"""Shells with real module systems, and a site whose modules wrap what this machine has."""

from __future__ import annotations

import ctypes.util
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from integration_tools import Done, clean_environ, run

from envbuilder.machine.local_site import local_site

DATA = Path(__file__).with_name("site")

# How a shell starts without the user's files.
SHELLS: Mapping[str, tuple[str, ...]] = {
    "bash": ("bash", "--noprofile", "--norc"),
    "zsh": ("zsh", "-f"),
    "tcsh": ("tcsh", "-f"),
}

# What the module systems themselves keep in the environment, and the shell's last command.
BOOKKEEPING = ("_ModuleTable", "__LMOD_", "LMOD_", "__MODULES_", "_LMFILES_", "LOADEDMODULES")

MPI_PROGRAMS = ("mpi", "ompi", "opal", "orte", "osh", "shmem", "hydra", "prte")

# As root, Open MPI wants this said.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

# The program of somebody who uses an environment: each rank says what came out, where from, and
# which libmpi it runs on.
MY_ALLREDUCE = """\
import sys

import distributed_dl_training.numpy as hvd
import numpy as np

hvd.init()
total = hvd.allreduce(np.arange(4, dtype="float64") + hvd.rank(), op=hvd.Sum)
maps = open("/proc/self/maps").read().split()
mpi = sorted({path for path in maps if path.rpartition("/")[2].startswith("libmpi.so")})
sys.stdout.write(f"rank {hvd.rank()} of {hvd.size()}: {total.tolist()} {np.__file__} {mpi}\\n")
"""
SUMS = "[1.0, 3.0, 5.0, 7.0]"


def lmod_init(shell: str) -> str:
    """Return the file with which *shell* gets Lmod's module command; skip if there is none."""
    site = local_site(clean_environ())
    if site.module_system != "lmod" or site.module_init is None:
        pytest.skip("needs Lmod")
    return str(Path(site.module_init).with_name(shell))


def modulecmd() -> str:
    """Return modulecmd.tcl of Environment Modules; skip if nobody says where it is."""
    path = os.environ.get("ENVBUILD_MODULECMD")
    if not path:
        pytest.skip("needs Environment Modules: ENVBUILD_MODULECMD names its modulecmd.tcl")
    return path


def start_lines(system: str, shell: str) -> list[str]:
    """Return the lines that start a module system in a shell, with no tree in use."""
    if system == "lmod":
        start = f"source {lmod_init(shell)}"
    elif shell == "tcsh":
        start = f"eval `tclsh {modulecmd()} tcsh autoinit`"
    else:
        start = f"eval \"$(tclsh '{modulecmd()}' {shell} autoinit)\""
    return [start, "unsetenv MODULEPATH" if shell == "tcsh" else "unset MODULEPATH"]


def new_shell(
    shell: str, lines: list[str], folder: Path, env: Mapping[str, str] | None = None
) -> Done:
    """Run *lines* in a shell that inherits nothing but a search path and *env*."""
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    script = folder / f"script.{shell}"
    script.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    inherited = dict.fromkeys(os.environ)
    # Lmod takes out what PATH lists twice, so that would not come back.
    path = ":".join(dict.fromkeys(os.environ["PATH"].split(":")))
    mine = {"HOME": str(folder), "PATH": path, "LANG": "C.UTF-8", **(env or {})}
    return run([*SHELLS[shell], script], env={**inherited, **mine}, cwd=folder)


def in_lmod(
    shell: str, lines: list[str], folder: Path, env: Mapping[str, str] | None = None
) -> Done:
    """Run *lines* in a new shell in which Lmod was started and nothing is loaded."""
    return new_shell(shell, [f"source {lmod_init(shell)}", *lines], folder, env)


def snapshot(path: Path) -> dict[str, str]:
    """Return the environment that ``env -0`` wrote, without what the module system keeps."""
    entries = path.read_text(encoding="utf-8", errors="surrogateescape").split("\0")
    every = dict(entry.split("=", 1) for entry in entries if entry)
    return {
        name: value
        for name, value in every.items()
        if not name.startswith(BOOKKEEPING) and name != "_"
    }


def path_without_mpi(folder: Path) -> str:
    """Return a PATH in which every program of this machine is, but none of an MPI."""
    folder.mkdir()
    for place in os.environ["PATH"].split(":"):
        for program in Path(place).glob("*"):
            link = folder / program.name
            if not program.name.startswith(MPI_PROGRAMS) and not link.is_symlink():
                link.symlink_to(program)
    assert shutil.which("mpiexec", path=str(folder)) is None
    return str(folder)


@dataclass(frozen=True)
class OpenMpi:
    """This machine's own Open MPI: its version, launcher and library."""

    version: str
    mpiexec: Path
    library: Path

    def link(self, folder: Path) -> Path:
        """Make *folder* look like an installation of it; return it."""
        (folder / "bin").mkdir(parents=True)
        (folder / "lib").mkdir()
        for name in ("mpiexec", "mpirun"):
            (folder / "bin" / name).symlink_to(self.mpiexec)
        for name in ("libmpi.so", "libmpi.so.40"):
            (folder / "lib" / name).symlink_to(self.library)
        return folder


def machine_openmpi() -> OpenMpi:
    """Return this machine's Open MPI; skip if it has none."""
    mpiexec = shutil.which("mpiexec.openmpi") or shutil.which("mpiexec")
    if mpiexec is None or ctypes.util.find_library("mpi") is None:
        pytest.skip("needs Open MPI on this machine (Debian: openmpi-bin)")
    version = re.search(r"\((?:OpenRTE|Open MPI)\) (\d[\d.]*)", run([mpiexec, "--version"]).out)
    question = "import ctypes; ctypes.CDLL('libmpi.so.40'); print(open('/proc/self/maps').read())"
    maps = run([sys.executable, "-c", question]).out.split()
    library = next((word for word in maps if "/libmpi.so.40" in word), None)
    if version is None or library is None:
        pytest.skip("needs Open MPI 4 or 5 on this machine: mpiexec is another MPI's")
    return OpenMpi(version[1], Path(mpiexec), Path(library))


@dataclass(frozen=True)
class Cluster:
    """A site of its own: its document, its module tree, and how a shell reaches that."""

    folder: Path
    document: Path
    tree: Path
    openmpi: OpenMpi
    python: str

    def module(self, name: str) -> str:
        """Return the full name of one of the two modules that hold the MPI and Python."""
        version = {"OpenMPI": f"{self.openmpi.version}-GCC", "Python": f"{self.python}-GCCcore"}
        return f"{name}/{version[name]}-12.2.0"

    @property
    def everything(self) -> set[str]:
        """The modules that the environments of this site load, with what those load."""
        own = {self.module("Python"), self.module("OpenMPI")}
        return {*own, "GCC/12.2.0", "GCCcore/12.2.0"}

    def recipe(self, name: str, **stack: str) -> Path:
        """Write the recipe under a name, with further components in its stack."""
        values = {"NAME": name, "OPENMPI": self.module("OpenMPI")}
        text = _filled((DATA / "recipe.yaml").read_text(encoding="utf-8"), values)
        more = "".join(f'  {component}: "{wanted}"\n' for component, wanted in stack.items())
        path = self.folder / f"{name}.yaml"
        path.write_text(text.replace("smoke:\n", f"{more}smoke:\n"), encoding="utf-8")
        return path

    def stating(self, name: str, *modules: str) -> Path:
        """Write the document of a site of this name that states further modules; return it."""
        text = self.document.read_text(encoding="utf-8").replace(
            "name: cluster\n", f"name: {name}\n"
        )
        path = self.folder / f"{name}.yaml"
        path.write_text(text + "".join(f"  - {module}\n" for module in modules), encoding="utf-8")
        return path


def make_cluster(folder: Path, dialect: str, init: str) -> Cluster:
    """Fill in the templates of a site: the module tree, the software it names, the document."""
    openmpi = machine_openmpi()
    series = f"{sys.version_info.major}.{sys.version_info.minor}"
    values = {
        "APPS": str(folder / "apps"),
        "TREE": str(folder / "modules"),
        "INIT": init,
        "SYSTEM": {"lua": "lmod", "tcl": "tcl"}[dialect],
        "OPENMPI": openmpi.version,
        "PYTHON": f"{series}.{sys.version_info.micro}",
        "PYTHON_PREFIX": sys.base_prefix,
        "SERIES": series,
    }
    openmpi.link(folder / "apps" / "OpenMPI" / f"{openmpi.version}-GCC-12.2.0")
    for template in (DATA / dialect).rglob("*"):
        if template.is_file():
            name = _filled(str(template.relative_to(DATA / dialect)), values)
            target = folder / "modules" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_filled(template.read_text(encoding="utf-8"), values))
    document = folder / "cluster.yaml"
    document.write_text(_filled((DATA / "site.yaml").read_text(encoding="utf-8"), values))
    return Cluster(folder, document, folder / "modules", openmpi, values["PYTHON"])


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text
