"""A conda channel that the tests make: real packages, in a folder, with its index.

The Python is the one that the tests run on, as far as it can be moved; numpy, mpi4py and MPICH come
from the wheels of the package index. What else there is, is small and made up, to show one thing.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from envbuilder.knowledge.artifacts import CondaArchive

# As conda-build writes it where the prefix will be: as long as a prefix may become.
PLACEHOLDER = "/placeholder".ljust(255, "_")
SUBDIRS = {"x86_64": "linux-64", "aarch64": "linux-aarch64", "ppc64le": "linux-ppc64le"}
SERIES = ".".join(map(str, sys.version_info[:2]))
# Of the standard library, what no environment of a test needs: 150 MB.
_LEFT_OUT = {"test", "tests", "idlelib", "lib2to3", "tkinter", "turtledemo", "site-packages"}
_LEFT_OUT |= {"pydoc_data"}
# Of a wheel's folder .data, what lies among its modules once it is installed.
_LIBRARIES = ("purelib", "platlib")


@dataclass(frozen=True)
class File:
    """A file of a package. *mode*: ``text`` or ``binary`` where it holds the placeholder."""

    content: bytes
    executable: bool = False
    mode: str | None = None
    link: str | None = None


@dataclass(frozen=True)
class Package:
    """A package: what its info/index.json says, and its files by their paths in the prefix."""

    name: str
    version: str
    files: Mapping[str, File] = field(default_factory=dict)
    depends: Sequence[str] = ()
    constrains: Sequence[str] = ()
    build: str = "0"
    build_number: int = 0
    subdir: str = "linux-64"
    noarch: str | None = None
    # More files of info/, such as link.json.
    info: Mapping[str, str] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        return f"{self.name}-{self.version}-{self.build}"


def write_package(folder: Path, package: Package) -> Path:
    """Write a package into its subdir of a channel's folder."""
    from conda_package_streaming.create import conda_builder

    target = folder / package.subdir
    target.mkdir(parents=True, exist_ok=True)
    index = {
        "name": package.name,
        "version": package.version,
        "build": package.build,
        "build_number": package.build_number,
        "depends": list(package.depends),
        "constrains": list(package.constrains),
        "subdir": package.subdir,
        **({"noarch": package.noarch} if package.noarch else {}),
        "license": "tests",
    }
    paths = [_path(name, each) for name, each in sorted(package.files.items())]
    texts = {
        "info/index.json": json.dumps(index),
        "info/paths.json": json.dumps({"paths": paths, "paths_version": 1}),
        **{f"info/{name}": text for name, text in package.info.items()},
    }
    with conda_builder(package.stem, target, compression_level=1) as archive:
        for name, text in texts.items():
            _add(archive, name, File(text.encode()))
        for name, each in sorted(package.files.items()):
            _add(archive, name, each)
    return target / f"{package.stem}.conda"


def _path(name: str, each: File) -> dict[str, Any]:
    said: dict[str, Any] = {
        "_path": name,
        "path_type": "softlink" if each.link else "hardlink",
        "sha256": sha256(each.content).hexdigest(),
        "size_in_bytes": len(each.content),
    }
    if each.mode:
        said |= {"file_mode": each.mode, "prefix_placeholder": PLACEHOLDER}
    return said


def _add(archive: tarfile.TarFile, name: str, each: File) -> None:
    info = tarfile.TarInfo(name)
    info.mode = 0o755 if each.executable else 0o644
    if each.link:
        info.type, info.linkname = tarfile.SYMTYPE, each.link
        archive.addfile(info)
        return
    info.size = len(each.content)
    archive.addfile(info, io.BytesIO(each.content))


def write_index(folder: Path) -> None:
    """Write the repodata of a channel, in a process of its own: rattler's may crash at its end."""
    code = (
        "import asyncio, os, sys; from rattler.index import index_fs; "
        "asyncio.run(index_fs(sys.argv[1], write_shards=False)); os._exit(0)"
    )
    (folder / "noarch").mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True)


def write_channel(folder: Path, packages: Sequence[Package]) -> Path:
    """Write a whole channel; return its folder."""
    for each in packages:
        write_package(folder, each)
    write_index(folder)
    return folder


def change_record(channel: Path, file: str, **said: object) -> None:
    """Let a channel say something else of a package than that says itself; all of its index."""
    (path,) = (each.parent / "repodata.json" for each in channel.glob(f"*/{file}"))
    index = json.loads(path.read_text(encoding="utf-8"))
    index["packages.conda"][file] |= said
    for other in path.parent.glob("repodata*"):
        other.unlink()
    path.write_text(json.dumps(index), encoding="utf-8")


def from_wheel(
    wheel: Path,
    *,
    depends: Sequence[str],
    name: str,
    noarch: bool = False,
    series: str = SERIES,
) -> Package:
    """Return a package of what a wheel holds, as conda-build makes it of one."""
    version = wheel.name.split("-")[1]
    site = "site-packages" if noarch else f"lib/python{series}/site-packages"
    return Package(
        name=name,
        version=version,
        files=dict(_of_wheel(wheel, site)),
        depends=depends,
        build="pyh0" if noarch else f"py{series.replace('.', '')}_0",
        subdir="noarch" if noarch else "linux-64",
        noarch="python" if noarch else None,
        info={"link.json": json.dumps(_link(wheel))} if noarch else {},
    )


def _link(wheel: Path) -> dict[str, Any]:
    with zipfile.ZipFile(wheel) as archive:
        names = [each for each in archive.namelist() if each.endswith("info/entry_points.txt")]
        lines = archive.read(names[0]).decode().splitlines() if names else []
    points = [each.replace(" ", "").replace("=", " = ") for each in lines if "=" in each]
    return {"noarch": {"type": "python", "entry_points": points}, "package_metadata_version": 1}


def _of_wheel(wheel: Path, site: str) -> Iterator[tuple[str, File]]:
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            _, data, rest = info.filename.partition(".data/")
            kind, _, below = rest.partition("/")
            if data and kind == "data":
                target = below
            else:
                target = f"{site}/{below if data and kind in _LIBRARIES else info.filename}"
            executable = bool(info.external_attr >> 16 & 0o111)
            yield target, File(archive.read(info), executable)


def movable_python(base: Path = Path(sys.base_prefix)) -> Package:
    """Return a package of a Python, that of the tests unless another is named.

    It finds its library beside itself, as conda's does, and its files name the prefix where they
    named the folder that it was built for. Another one has its headers too, to compile for it.
    """
    asks = "import platform; print(platform.python_version())"
    done = subprocess.run([base / "bin" / "python3", "-c", asks], capture_output=True, check=True)
    version = done.stdout.decode().strip()
    files = dict(_of_python(base, version.rpartition(".")[0]))
    if base != Path(sys.base_prefix):
        headers = (path for path in sorted((base / "include").rglob("*")) if path.is_file())
        files |= {str(each.relative_to(base)): File(each.read_bytes()) for each in headers}
    return Package(name="python", version=version, files=files, build="h0_0_cpython")


def _of_python(base: Path, series: str) -> Iterator[tuple[str, File]]:
    program, library = base / "bin" / f"python{series}", base / "lib" / f"python{series}"
    yield f"bin/python{series}", _moved(program, base)
    for name in ("python", "python3"):
        yield f"bin/{name}", File(b"", link=f"python{series}")
    for path in sorted((base / "lib").glob("libpython*.so*")):
        if path.is_symlink():
            yield f"lib/{path.name}", File(b"", link=str(path.readlink()))
        else:
            yield f"lib/{path.name}", _moved(path, base)
    for folder, folders, names in os.walk(library):
        folders[:] = sorted(
            each for each in folders if each not in _LEFT_OUT and not each.startswith("config-")
        )
        for name in sorted(names):
            path = Path(folder, name)
            # Bytecode of what names the prefix, or was compiled to leave something out.
            if path.suffix == ".pyc" and ("_sysconfigdata" in name or ".opt-" in name):
                continue
            yield str(path.relative_to(base)), _moved(path, base)


def _moved(path: Path, base: Path) -> File:
    content = path.read_bytes()
    executable = os.access(path, os.X_OK)
    if content.startswith(b"\x7fELF"):
        own = f"{base}/lib\0".encode()
        return File(content.replace(own, b"$ORIGIN/../lib\0".ljust(len(own), b"\0")), executable)
    if path.suffix == ".pyc":
        # Good for its source whatever the time of that: 16 bytes say so (PEP 552).
        return File(content[:4] + b"\1\0\0\0" + bytes(8) + content[16:])
    if path.name.startswith("_sysconfigdata"):
        # What is compiled for it is compiled quickly: mpi4py takes minutes otherwise.
        content = content.replace(b" -g ", b" ").replace(b"-O3", b"-O1")
        return File(content.replace(str(base).encode(), PLACEHOLDER.encode()), mode="text")
    return File(content, executable)


def locked(folder: Path) -> tuple[CondaArchive, ...]:
    """Return every package of a channel's folder as a lock has it."""
    return tuple(
        CondaArchive(
            name=said["name"],
            version=said["version"],
            build=said["build"],
            url=path.as_uri(),
            sha256=said["sha256"],
            md5=said["md5"],
            size=said["size"],
            channel=folder.as_uri(),
            subdir=said["subdir"],
            depends=tuple(said["depends"]),
        )
        for path, said in sorted(_indexed(folder))
    )


def _indexed(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for repodata in folder.glob("*/repodata.json"):
        for name, said in json.loads(repodata.read_text())["packages.conda"].items():
            yield repodata.with_name(name), said
