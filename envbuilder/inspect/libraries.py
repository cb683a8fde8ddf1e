"""The ELF files among the packages, and what ld.so would load with each of them."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path

from ..target_tools.elf import ElfError, Library, read_library
from ..target_tools.files import is_elf, open_regular, real_in
from ..target_tools.ld_so import DEFAULT_FOLDERS, Search
from .facts import Machine, NativeLibrary

# What Python imports by its name: importlib.machinery.EXTENSION_SUFFIXES behind one word. A file
# such as MPI.mpich.cpython-311-x86_64-linux-gnu.so is loaded by a package that chooses it.
# A plain libNAME.so is a library, or text for the linker.
MODULE = re.compile(r"([^.]+\.(cpython-[^.]+|pypy[^.]+|abi3)|(?!lib)[^.]+)\.so")
# Its banner: GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.
_GLIBC = re.compile(rb"GNU C Library [^\n]{0,200}version (\d+\.\d+)")
_LONGEST_NAME = 255
_LARGEST_GLIBC = 64 * 1024 * 1024


def here() -> Machine:
    """Return the machine of this process."""
    machine: Machine = read_library(str(Path(sys.executable).resolve())).machine
    return machine


def is_module(path: str) -> bool:
    """Return whether Python imports a file by its name."""
    return MODULE.fullmatch(os.path.basename(path)) is not None  # noqa: PTH119 - thousands of them


def is_extension(path: str) -> bool:
    """Return whether a file is a module, or a variant of one that a package chooses."""
    name = os.path.basename(path)  # noqa: PTH119 - thousands of them
    return ".cpython-" in name or MODULE.fullmatch(name) is not None


def read_all(
    paths: Iterable[str], packaged: Collection[str], root: str = ""
) -> tuple[dict[str, Library], dict[str, str]]:
    """Return the libraries of some files, and why the others are none.

    Damaged is what begins as ELF files do, and any module of *packaged*, those of packages.
    Text that is named like a library, a linker script say, is left out, unless it was a link.
    *root*: the folder of the system that they lie in.
    """
    found: dict[str, Library] = {}
    damaged: dict[str, str] = {}
    modules = {path for path in packaged if is_module(path)}
    for path in paths:
        try:
            found[path] = _read(path, root)
        except FileNotFoundError:
            if os.path.islink(path):  # noqa: PTH114 - thousands of them
                damaged[path] = "a link that leads nowhere"
        except (ElfError, OSError) as error:
            if target := _link_as_text(path):
                damaged[path] = f"text that names {target}: a link that was copied as text"
            elif path in modules or is_elf(path):
                damaged[path] = error.strerror or "" if isinstance(error, OSError) else str(error)
    return found, damaged


def _link_as_text(path: str) -> str | None:
    """Return the file beside it that a file names with all of its text; None: it is another."""
    try:
        with open_regular(path) as stream:
            text = stream.read(_LONGEST_NAME + 1).decode()
    except (OSError, ValueError):
        return None
    plain = 0 < len(text) <= _LONGEST_NAME and not {"\0", "\n"} & {*text}
    return text if plain and (Path(path).parent / text).exists() else None


def _read(path: str, root: str) -> Library:
    """Return what a library says; links are followed as in its system."""
    real = real_in(root, path.removeprefix(root)) if root else path
    found: Library = read_library(real)
    return found._replace(path=path) if root else found


def glibc_of(root: str, program: Library | None) -> str | None:
    """Return the version of the C library that a system has in a folder; None: none is found."""
    path = Search(program, {}, root).find("libc.so.6", (program,)) if program else None
    if path is None:
        return None
    try:
        with open_regular(path) as stream:
            found = _GLIBC.search(stream.read(_LARGEST_GLIBC))
    except OSError:
        return None
    return found[1].decode() if found else None


def natives(
    libraries: Mapping[str, Library],
    program: Library | None,
    environ: Mapping[str, str],
    packaged: Collection[str],
    root: str = "",
) -> tuple[NativeLibrary, ...]:
    """Return the libraries, those of *packaged* with what ld.so finds in a process of *program*.

    The others are only there to be found: the lib of a system's Python holds thousands. None: in a
    process of the machine that most of them are for.
    """
    if not libraries:
        return ()
    if program is None:
        ((most, _),) = Counter(each.machine for each in libraries.values()).most_common(1)
        program = Library("/", most, (), (), (), None, ())
    searches, wanted = _Searches(program, environ, root), frozenset(packaged)
    found = []
    for path, library in sorted(libraries.items()):
        read = path in wanted and library.machine == program.machine
        tree = searches.here.tree(path) if read else {}
        module = path in wanted and is_module(path)
        found.append(NativeLibrary(path, library, module, tree, searches.overruled(path, tree)))
    return tuple(found)


class _Searches:
    """How ld.so finds libraries in this shell, and in one without LD_LIBRARY_PATH."""

    def __init__(self, program: Library, environ: Mapping[str, str], root: str) -> None:
        self.here = Search(program, environ, root)
        self._plain = Search(program, {}, root)
        self._folders = {os.path.normpath(each) for each in self.here.library_path}

    @cached_property
    def _usual(self) -> set[str]:
        cached = chain.from_iterable(self._plain.cache.values())
        return {*DEFAULT_FOLDERS, *(os.path.dirname(each) for each in cached)}  # noqa: PTH120

    def overruled(self, path: str, tree: Mapping[str, str | None]) -> dict[str, str]:
        """Return what LD_LIBRARY_PATH brings instead of a file that a RUNPATH names: name -> it.

        What ld.so.cache or a default folder has anybody may overrule: that is what modules do.
        """
        brought = [n for n, at in tree.items() if at and os.path.dirname(at) in self._folders]  # noqa: PTH120
        plain = self._plain.tree(path) if brought else {}
        return {
            name: there
            for name in brought
            if (there := plain.get(name))
            and os.path.dirname(there) not in self._usual  # noqa: PTH120
            and os.path.realpath(there) != os.path.realpath(tree[name] or "")
        }
