"""Environments that were really made, and then broken in one way each.

The first is a virtualenv of this Python with distributions of the tests' own environment: what pip
installed there, file by file. The others are copies of it; what is not changed is a hard link.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from envbuilder.model.validation import Validation

SERIES = f"{sys.version_info.major}.{sys.version_info.minor}"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
# With extension modules: PyYAML and MarkupSafe; with requirements: Jinja2 and requests.
DISTRIBUTIONS = (
    *("PyYAML", "MarkupSafe", "Jinja2", "packaging"),
    *("requests", "urllib3", "idna", "certifi", "charset-normalizer"),
)

Validate = Callable[..., Validation]

TORCH = "2.13.0+cpu"
# As PyTorch's c10/core/Device.h declares it.
DEVICE = """
#include <string>
namespace c10 {
struct Device { Device(const std::string&); unsigned data; };
}
"""
TORCH_CODE = DEVICE + "c10::Device::Device(const std::string&) {}\n"
HOROVOD_CALL = DEVICE + 'extern "C" unsigned start() { return c10::Device("cpu").data; }\n'


@dataclass(frozen=True)
class Made:
    """An environment that a test may break."""

    prefix: Path

    @property
    def packages(self) -> Path:
        return self.prefix / "lib" / f"python{SERIES}" / "site-packages"

    def metadata(self, name: str) -> Path:
        """Return the dist-info folder of a distribution."""
        (found,) = self.packages.glob(f"{name}-*.dist-info")
        return found

    def extension(self) -> Path:
        """Return an extension module of MarkupSafe."""
        return next(self.packages.glob("markupsafe/*.so"))

    def write(self, path: Path, data: bytes | str) -> Path:
        """Write a file anew, so that no copy of the environment changes with it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def edit(self, path: Path, change: Callable[[bytes], bytes]) -> None:
        """Change a file, as an editor does: a moment after it was installed."""
        old = path.read_bytes()
        new = change(old)
        assert new != old, path
        self.write(path, new)
        later = path.stat().st_mtime + 100
        os.utime(path, (later, later))

    def say(self, name: str, file: str, text: str) -> None:
        """Write a file of a distribution's metadata as if it had been installed so."""
        folder = self.metadata(name)
        self.write(folder / file, text)
        rows = (folder / "RECORD").read_text().splitlines()
        start = f"{folder.name}/{file},"
        kept = [start + "," if row.startswith(start) else row for row in rows]
        self.write(folder / "RECORD", "\n".join(kept) + "\n")

    def install(self, name: str, version: str, *fields: str, record: str = "") -> Path:
        """Write the metadata of a distribution."""
        folder = self.packages / f"{name}-{version}.dist-info"
        text = "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *fields])
        self.write(folder / "METADATA", text + "\n\nText.\n")
        self.write(folder / "RECORD", record)
        return folder


def make(folder: Path) -> Made:
    """Make the first one."""
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(command, check=True)
    made = Made(folder)
    # Copies of it lie in other folders than this one names.
    (made.prefix / "bin" / "activate").unlink()
    for name in DISTRIBUTIONS:
        for file in metadata.files(name) or ():
            source = Path(str(file.locate()))
            target = made.packages / file
            if source.is_file() and not {"__pycache__", "bin"} & {*source.parts[-2:-1]}:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
    for record in made.packages.glob("*.dist-info/RECORD"):
        _leave_out_scripts(record)
    return made


def _leave_out_scripts(record: Path) -> None:
    """Forget the scripts of a distribution: they start the Python that they were made for."""
    rows = record.read_text().splitlines(keepends=True)
    times = record.stat()
    record.write_text("".join(row for row in rows if not row.startswith("../../../bin/")))
    os.utime(record, ns=(times.st_atime_ns, times.st_mtime_ns))


def base_python(folder: Path) -> Made:
    """Make the prefix of a base Python, with a link to this Python."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python3").symlink_to(Path(sys.executable).resolve())
    return Made(folder)


def copy(made: Made, folder: Path) -> Made:
    """Return a copy whose files are links to the same ones: ``write`` breaks them."""
    shutil.copytree(made.prefix, folder, symlinks=True, copy_function=os.link)
    return Made(folder)


def compile_c(target: Path, text: str = "", *options: str, soname: str | None = None) -> Path:
    """Compile a shared library of C text with gcc; what it is linked with it needs."""
    target.parent.mkdir(parents=True, exist_ok=True)
    named = [f"-Wl,-soname,{soname}"] if soname else []
    words = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", str(target), *named]
    subprocess.run([*words, "-Wl,--no-as-needed", *options], input=text, text=True, check=True)
    return target


def make_mpi(folder: Path, name: str, soname: str) -> Path:
    """Make a libmpi that says whose it is, as the real ones do; return it."""
    return compile_c(folder / soname, f'const char *who = "{name}";', soname=soname)


def module_with(made: Made, name: str, *libraries: Path) -> Path:
    """Compile an extension module that needs libraries and finds them where they are."""
    target = made.packages / f"{name}{SUFFIX}"
    paths = [f"-Wl,-rpath,{each.parent}" for each in libraries]
    return compile_c(target, "", *map(str, libraries), *paths)


def compile_release(target: Path, *versions: str) -> None:
    """Compile a library whose symbols have versions, as libstdc++ has: colour_1 of COLOUR_1, ..."""
    names = [(version, version.lower()) for version in versions]
    script = target.with_suffix(".map")
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text("".join(f"{version} {{ global: {name}; }};\n" for version, name in names))
    text = "".join(f"int {name}(void) {{ return 1; }}\n" for _, name in names)
    compile_c(target, text, f"-Wl,--version-script={script}", soname=target.name)


def module_using(made: Made, name: str, library: Path, symbol: str) -> Path:
    """Compile an extension module that calls a function of a library, and finds it there."""
    text = f"int {symbol}(void); int use(void) {{ return {symbol}(); }}"
    target = made.packages / f"{name}{SUFFIX}"
    return compile_c(target, text, str(library), f"-Wl,-rpath,{library.parent}")


def record(
    made: Made,
    name: str,
    files: Sequence[Path],
    depends: Sequence[str] = (),
    version: str = "1.0",
    build: str = "0",
) -> Path:
    """Write what conda writes of a package that it linked into the prefix."""
    paths: list[dict[str, Any]] = [
        {
            "_path": str(path.relative_to(made.prefix)),
            "path_type": "hardlink",
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "size_in_bytes": path.stat().st_size,
        }
        for path in files
    ]
    value = {"name": name, "version": version, "build": build, "depends": list(depends)}
    value["paths_data"] = {"paths_version": 1, "paths": paths}
    return made.write(
        made.prefix / "conda-meta" / f"{name}-{version}-{build}.json", json.dumps(value)
    )


def as_conda(made: Made) -> Made:
    """Make of an environment one in which conda brought PyYAML, and pip the rest."""
    (made.prefix / "pyvenv.cfg").unlink()
    info = made.metadata("pyyaml")
    files = [p for folder in (info, made.packages / "yaml") for p in folder.rglob("*")]
    abi = ["python_abi 1.* *_cp311", "__glibc >=2"]
    record(made, "pyyaml", [p for p in files if p.is_file()], abi)
    record(made, "python_abi", [], build="0_cp311")
    made.write(made.prefix / "conda-meta" / "history", "==> 2026-01-01 00:00:00 <==\n")
    return made


def compile_cxx(target: Path, text: str, *options: str | Path, abi: int = 1) -> Path:
    """Compile a library of C++ text in an ABI of libstdc++'s strings."""
    target.parent.mkdir(parents=True, exist_ok=True)
    words = ["g++", "-shared", "-fPIC", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", "-x", "c++", "-"]
    words += ["-x", "none", "-o", str(target), "-Wl,--no-as-needed", *map(str, options)]
    subprocess.run(words, input=text, text=True, check=True)
    return target


def install_torch(made: Made, version: str = TORCH, abi: int = 1) -> Path:
    """Install a framework of one function as torch; return its libc10."""
    folder = made.packages / "torch"
    made.write(folder / "__init__.py", "")
    made.write(folder / "version.py", f"__version__ = '{version}'\n")
    made.install("torch", version)
    library = folder / "lib" / "libc10.so"
    return compile_cxx(library, TORCH_CODE, f"-Wl,-soname,{library.name}", abi=abi)


def install_horovod(made: Made, library: Path, text: str = HOROVOD_CALL, *, abi: int = 1) -> Path:
    """Install a Horovod whose library for PyTorch needs a library; return its metadata.json."""
    made.install("horovod", "0.28.1")
    package = made.packages / "horovod"
    paths = [f"-Wl,-rpath,{library.parent}", "-Wl,-z,lazy"]
    compile_cxx(package / "torch" / f"mpi_lib_v2{SUFFIX}", text, library, *paths, abi=abi)
    return horovod_metadata(made, pytorch=TORCH)


def horovod_metadata(made: Made, **frameworks: str) -> Path:
    """Write horovod/metadata.json as Horovod's CMake does."""
    text = json.dumps({**frameworks, "dummy": "none"})
    return made.write(made.packages / "horovod" / "metadata.json", text)
