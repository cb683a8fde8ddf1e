"""Environments for the programs that build.sh calls: real libraries made by gcc, small packages.

A prefix is a real virtualenv without pip, so that its Python, its folders and ld.so are the real
ones. Frameworks, MPI and Horovod are as small as what the programs look at.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from envbuilder.model.plan import SourceBuild
from envbuilder.render.build import contents
from envbuilder.runtimes import RUNTIMES

TOOLS = Path(__file__).resolve().parents[2] / "envbuilder" / "target_tools"
# What a Horovod library exports, in the mangled names of its C++ classes.
MPI_CLASS = "_ZN7horovod6common12MPIAllreduce7ExecuteEv"
GLOO_CLASS = "_ZN7horovod6common13GlooAllreduce7ExecuteEv"
NCCL_CLASS = "_ZN7horovod6common13NCCLAllreduce7ExecuteEv"
CPU_OPERATIONS = "_ZN7horovod6common18ParseCPUOpsFromEnvEv"
FLAGS = {
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
    "HOROVOD_WITH_MPI": "1",
    "HOROVOD_CPU_OPERATIONS": "MPI",
}


def elftools_folder() -> Path:
    """Return the folder that pyelftools lies in, or skip."""
    spec = importlib.util.find_spec("elftools")
    if spec is None or spec.origin is None:
        pytest.skip("pyelftools is not installed")
    return Path(spec.origin).parent.parent


def compile_library(
    target: Path,
    source: str,
    *options: str,
    soname: str | None = None,
) -> Path:
    """Compile a shared library of C text."""
    target.parent.mkdir(parents=True, exist_ok=True)
    named = [f"-Wl,-soname,{soname}"] if soname else []
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", str(target)]
    # --no-as-needed: a NEEDED also for what the text does not call.
    words = [*command, *named, "-Wl,--no-as-needed", "-Wl,--enable-new-dtags", *options]
    subprocess.run(words, input=source, text=True, check=True)
    return target


def make_mpi(folder: Path, version: int = 1) -> Path:
    """Make an MPI: lib/libmpi.so.40 and the linker script that PyPI's wheels have for it."""
    source = f"int MPI_Init(void) {{ return {version}; }}"
    compile_library(folder / "lib" / "libmpi.so.40", source, soname="libmpi.so.40")
    (folder / "lib" / "libmpi.so").write_text("INPUT(libmpi.so.40)\n", encoding="utf-8")
    return folder


def row(path: Path, name: str) -> str:
    """Return a line of RECORD."""
    data = path.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return f"{name},sha256={digest},{len(data)}"


def install(packages: Path, name: str, version: str) -> None:
    """Write the metadata of a distribution whose files lie in the folder of its name."""
    files = sorted(path for path in (packages / name).rglob("*") if path.is_file())
    info = packages / f"{name}-{version}.dist-info"
    shutil.rmtree(info, ignore_errors=True)
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n", encoding="utf-8")
    rows = [row(path, path.relative_to(packages).as_posix()) for path in files]
    (info / "RECORD").write_text("\n".join(rows) + "\n", encoding="utf-8")


def site_packages(prefix: Path) -> Path:
    """Return the folder of packages of a virtualenv."""
    return next((prefix / "lib").glob("python3.*")) / "site-packages"


@dataclass(frozen=True)
class Ended:
    """A program that ended."""

    code: int
    out: str
    err: str


@dataclass
class Prefix:
    """A virtualenv with a framework, and an MPI that its mpicxx names.

    One class with many small methods: tests change it in many small ways.
    """

    path: Path
    mpi: Path
    build: dict[str, Any] = field(default_factory=dict)

    @property
    def packages(self) -> Path:
        return site_packages(self.path)

    @property
    def horovod(self) -> Path:
        return self.packages / "horovod"

    @property
    def library(self) -> Path:
        return self.horovod / "torch" / "mpi_lib_v2.cpython-linux.so"

    def write_builds(self, *more: Mapping[str, Any]) -> Path:
        """Write builds.json beside the prefix, as the builder does."""
        path = self.path.with_name(self.path.name + ".build") / "builds.json"
        path.parent.mkdir(exist_ok=True)
        described = [{**each, **stated_contents(each)} for each in (self.build, *more)]
        path.write_text(json.dumps(described), encoding="utf-8")
        return path

    def run(self, tool: str, *words: str | Path, env: Mapping[str, str] | None = None) -> Ended:
        """Run a tool with the prefix's Python in the environment of a build."""
        start = self.start(tool, *words, env=env)
        out, err = start.communicate(timeout=120)
        return Ended(start.returncode, out, err)

    def start(
        self, tool: str, *words: str | Path, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        steering = ("PYTHON", "HOROVOD_", "LD_", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS")
        environ = {n: v for n, v in os.environ.items() if not n.startswith(steering)}
        environ["PATH"] = f"{self.path}/bin:{self.mpi}/bin:{environ['PATH']}"
        environ |= {"PYTHONPATH": str(elftools_folder()), "PYTHONDONTWRITEBYTECODE": "1"}
        environ |= self.build["flags"] | dict(env or {})
        return subprocess.Popen(
            [str(self.path / "bin" / "python"), str(TOOLS), tool, *map(str, words)],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def verify(self, *more: Mapping[str, Any], env: Mapping[str, str] | None = None) -> Ended:
        builds = self.write_builds(*more)
        return self.run("verify", "--builds", builds, "--prefix", self.path, env=env)

    def cache(
        self, verb: str, cache: Path, *words: str | Path, env: Mapping[str, str] | None = None
    ) -> Ended:
        return self.run("wheel-cache", *self.cache_words(verb, cache), *words, env=env)

    def cache_words(self, verb: str, cache: Path) -> list[str | Path]:
        """Return the words of the tool wheel-cache."""
        if verb == "keep":
            return [verb, "--cache", cache]
        words = ["--component", self.build["component"], "--prefix", self.path]
        where = ["--cache", cache] if verb == "find" else []
        return [verb, "--builds", self.write_builds(), *words, *where]

    def store(self, cache: Path, wheel: Path) -> Ended:
        """Seal a wheel and keep it, as build.sh does in two steps."""
        sealed = self.cache("seal", cache, wheel)
        assert (sealed.code, sealed.out) == (0, "")
        kept = self.cache("keep", cache, wheel)
        return Ended(kept.code, kept.out, sealed.err + kept.err)

    def build_horovod(self, library: Path | None = None, **changes: Any) -> Path:
        """Compile a Horovod for torch and write its metadata; *changes*: see horovod_source."""
        options = changes.pop("options", self.link_options())
        self.horovod.mkdir(exist_ok=True)
        (self.horovod / "__init__.py").touch()
        source = horovod_source(**changes)
        made = compile_library(library or self.library, source, *options)
        self.install_horovod()
        return made

    def link_options(self, mpi: Path | None = None) -> list[str]:
        """Return how CMake links Horovod: by path, with rpaths of MPI and torch."""
        folders = [(mpi or self.mpi) / "lib", self.packages / "torch" / "lib"]
        rpath = f"-Wl,-rpath,{folders[0]}:{folders[1]}"
        return [rpath, str(folders[0] / "libmpi.so.40"), str(folders[1] / "libc10.so")]

    def install_horovod(self, metadata: Mapping[str, str] | None = None) -> None:
        found = {"pytorch": "2.13.0", "dummy": "none"} if metadata is None else metadata
        if found:
            (self.horovod / "metadata.json").write_text(json.dumps(found), encoding="utf-8")
        install(self.packages, "horovod", self.build["version"])


def horovod_source(
    classes: Sequence[str] = (MPI_CLASS, GLOO_CLASS),
    mpi: int = 1,
    gloo: int = 1,
    nccl: int = 0,
    cpu: int = 0,
    more: str = "",
) -> str:
    """Return C text of a library that answers as Horovod's do."""
    answers = {"mpi": mpi, "gloo": gloo, "nccl": nccl, "ddl": 0}
    functions = [f"int horovod_{name}_built(void) {{ return {n}; }}" for name, n in answers.items()]
    functions += [f"void {name}(void) {{}}" for name in classes]
    return "\n".join([*functions, f"int {CPU_OPERATIONS}(void) {{ return {cpu}; }}", more])


def make_prefix(path: Path, mpi: Path | None = None, python: str = sys.executable) -> Prefix:
    """Make a virtualenv with torch; *mpi*: of the site, else one is made in the prefix."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(path)], check=True)
    torch = site_packages(path) / "torch"
    abi = "int _ZN3c105ErrorC1ENSt7__cxx1112basic_stringE(void) { return 0; }"
    compile_library(torch / "lib" / "libc10.so", abi, soname="libc10.so")
    (torch / "__init__.py").write_text(
        "import ctypes, pathlib\n__version__ = '2.13.0'\n"
        "ctypes.CDLL(str(pathlib.Path(__file__).parent / 'lib' / 'libc10.so'))\n",
        encoding="utf-8",
    )
    install(site_packages(path), "torch", "2.13.0")
    origin = "pip" if mpi is None else "module"
    made = Prefix(path, make_mpi(path) if mpi is None else mpi, a_build(origin))
    write_mpicxx(made.mpi)
    return made


def as_built(folder: Path) -> Path:
    """Put a folder back as it was when this was asked first; return it.

    What is compiled names its place: a copy elsewhere would be none.
    """
    copy = folder.with_name(f"{folder.name}, as built")
    if copy.is_dir():
        shutil.rmtree(folder)
        shutil.copytree(copy, folder, symlinks=True)
    else:
        shutil.copytree(folder, copy, symlinks=True)
    return folder


def write_mpicxx(mpi: Path) -> None:
    """Write a compiler wrapper that answers as Open MPI's."""
    path = mpi / "bin" / "mpicxx"
    path.parent.mkdir(exist_ok=True)
    rpath = f"-Wl,-rpath -Wl,{mpi}/lib"
    path.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        f"-show) echo c++ -I{mpi}/include -L{mpi}/lib {rpath} -lmpi ;;\n"
        '--showme:version) echo "mpicxx: Open MPI 5.0.11 (Language: C++)" ;;\n'
        "esac\n",
        encoding="utf-8",
    )
    path.chmod(0o755)


def stated_contents(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an entry of builds.json states of the contents of the build."""
    names = ("component", "version", "flags")
    build = SourceBuild.model_construct(**{name: entry[name] for name in names})
    there = {"mpi": entry["mpi"] is not None, "module": "module" in entry}
    return contents(build, RUNTIMES, **there)


def a_build(origin: str) -> dict[str, Any]:
    """Return an entry of builds.json."""
    return {
        "component": "horovod",
        "version": "0.28.1",
        "sdist": "horovod-0.28.1.tar.gz",
        "sha256": "5" * 64,
        "flags": dict(FLAGS),
        "environment": {},
        "pip_options": [],
        "patches": [{"name": "torch-cxx17", "sha256": "7" * 64}],
        "frameworks": ["torch"],
        "homes": {},
        "mpi": {"component": "openmpi", "version": "5.0.11", "origin": origin, "locator": "x"},
        "nccl": None,
    }


def make_wheel(prefix: Prefix, folder: Path, extra: Mapping[str, str] | None = None) -> Path:
    """Pack the installed Horovod as a wheel, as ``pip wheel`` would have."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"horovod-{prefix.build['version']}.dist-info"
    wheel = folder / f"horovod-{prefix.build['version']}-py3-none-any.whl"
    files = [path for path in prefix.horovod.rglob("*") if path.is_file()]
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in sorted(files):
            archive.write(path, path.relative_to(prefix.packages).as_posix())
        for name, text in (extra or {}).items():
            archive.writestr(name, text)
        archive.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: horovod\nVersion: {prefix.build['version']}\n",
        )
        tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n"
        archive.writestr(f"{info}/WHEEL", tags)
        archive.writestr(f"{info}/RECORD", "")
    return wheel
