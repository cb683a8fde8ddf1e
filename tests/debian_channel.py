"""Conda packages for ppc64le of what a Debian of that architecture has.

The Debian is a folder, as mmdebstrap makes it. Its Python is made to be one that may lie in any
prefix; libraries that its packages need are those of the Debian that they run on.
"""

from __future__ import annotations

import importlib.util
import marshal
import re
import struct
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from .conda_channel import PLACEHOLDER, File, Package

SERIES, SUBDIR = "3.11", "linux-ppc64le"
BUILT_FOR = "python >=3.11,<3.12.0a0"
SITE = f"lib/python{SERIES}/site-packages"
TRIPLET = "powerpc64le-linux-gnu"
_THERE = "usr/lib/python3/dist-packages"


def files_below(folder: Path, target: str) -> Iterator[tuple[str, File]]:
    """Yield the files of a folder of the Debian, without bytecode, for a folder of a prefix."""
    for path in sorted(folder.rglob("*")):
        name = f"{target}/{path.relative_to(folder)}"
        if path.is_symlink() or not path.is_file() or "__pycache__" in path.parts:
            continue
        yield name, File(path.read_bytes())


def with_bytecode(files: Mapping[str, File]) -> dict[str, File]:
    """Return the files with the bytecode of their sources, as conda's packages have it.

    It is this Python's, which must be of the same series, and good for its source whatever the time
    of that: flags 1 (PEP 552). Emulated it takes minutes to make.
    """
    found = dict(files)
    for name, each in files.items():
        if name.endswith(".py") and not each.mode:
            try:
                code = compile(each.content, name, "exec", dont_inherit=True)
            except (SyntaxError, ValueError):
                continue  # A template, or for another Python.
            path = PurePosixPath(name)
            target = path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc"
            head = importlib.util.MAGIC_NUMBER + struct.pack("<L", 1)
            head += importlib.util.source_hash(each.content)
            found[str(target)] = File(head + marshal.dumps(code))
    return found


def python_of(debian: Path) -> Package:
    """Return the Debian's Python as one that may lie in any prefix, its headers if they are there.

    Debian installs below dist-packages of the machine's own folders: its sysconfig is replaced by
    that of the tests' Python, which is built from Python's own sources. Its site is frozen in the
    program, and told where packages lie.
    """
    library, own = debian / "usr/lib" / f"python{SERIES}", Path(sys.base_prefix)
    files = dict(files_below(library, f"lib/python{SERIES}"))
    source = own / "lib" / f"python{SERIES}" / "sysconfig.py"
    files[f"lib/python{SERIES}/{source.name}"] = File(source.read_bytes())
    files[f"lib/python{SERIES}/dist-packages/conda.pth"] = File(b"../site-packages\n")
    (data,) = library.glob("_sysconfigdata__powerpc64le*.py")
    text = data.read_text(encoding="utf-8").replace("'/usr", f"'{PLACEHOLDER}")
    # What is compiled for it is compiled quickly.
    text = re.sub("(?<=[ '])-g ", "", text)
    for name in (data.name, f"_sysconfigdata__linux_{TRIPLET}.py"):
        files[f"lib/python{SERIES}/{name}"] = File(text.encode(), mode="text")
    # The second one tells setuptools of ways to install that this sysconfig does not know.
    for name in ("EXTERNALLY-MANAGED", "_distutils_system_mod.py"):
        del files[f"lib/python{SERIES}/{name}"]
    headers = f"include/python{SERIES}"
    files |= dict(files_below(debian / "usr" / headers, headers))
    # The first one there only names the second one.
    files |= dict(files_below(debian / "usr/include" / TRIPLET / f"python{SERIES}", headers))
    program = debian / "usr/bin" / f"python{SERIES}"
    files[f"bin/python{SERIES}"] = File(program.read_bytes(), executable=True)
    files |= {f"bin/{each}": File(b"", link=f"python{SERIES}") for each in ("python", "python3")}
    content = with_bytecode(files)
    return Package("python", "3.11.2", content, build="h0_0_cpython", subdir=SUBDIR)


def module_of(debian: Path, name: str, *depends: str, of: tuple[str, ...] = ()) -> Package:
    """Return a Python package of the Debian. *of*: of which of its packages, if of several."""
    files, version = {}, ""
    for each in of or (f"python3-{name}",):
        (listed,) = (debian / "var/lib/dpkg/info").glob(f"{each}[.:]*list")
        for line in listed.read_text(encoding="utf-8").splitlines():
            path, rest = debian / line.lstrip("/"), line.partition(f"{_THERE}/")[2]
            # A link may name a place of the Debian, as if that were the root.
            if rest and path.is_file() and not path.is_symlink():
                files[f"{SITE}/{rest}"] = File(path.read_bytes())
                metadata = rest.partition("/")[0]
                if metadata.endswith((".egg-info", ".dist-info")):
                    version = version or metadata.rpartition(".")[0].rpartition("-")[2]
    content = with_bytecode(files)
    return Package(name, version, content, (BUILT_FOR, *depends), build="py311_0", subdir=SUBDIR)
