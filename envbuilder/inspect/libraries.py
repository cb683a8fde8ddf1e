"""The ELF files among the packages, and what ld.so would load with each of them."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from ..target_tools.elf import ElfError, Library, read_library
from ..target_tools.files import is_elf
from ..target_tools.ld_so import Search
from .facts import Machine, NativeLibrary

# What Python imports by its name: importlib.machinery.EXTENSION_SUFFIXES behind one word. A file
# such as MPI.mpich.cpython-311-x86_64-linux-gnu.so is loaded by a package that chooses it.
# A plain libNAME.so is a library, or text for the linker.
MODULE = re.compile(r"([^.]+\.(cpython-[^.]+|pypy[^.]+|abi3)|(?!lib)[^.]+)\.so")


def here() -> Machine:
    """Return the machine of this process."""
    machine: Machine = read_library(str(Path(sys.executable).resolve())).machine
    return machine


def is_module(path: str) -> bool:
    """Return whether Python imports a file by its name."""
    return MODULE.fullmatch(os.path.basename(path)) is not None  # noqa: PTH119 - thousands of them


def read_all(
    paths: Iterable[str], packaged: Collection[str]
) -> tuple[dict[str, Library], dict[str, str]]:
    """Return the libraries of some files, and why the others are none.

    Damaged is what begins as ELF files do, and any module of *packaged*, those of packages.
    Text that is named like a library, a linker script say, is left out.
    """
    found: dict[str, Library] = {}
    damaged: dict[str, str] = {}
    modules = {path for path in packaged if is_module(path)}
    for path in paths:
        try:
            found[path] = read_library(path)
        except FileNotFoundError:
            continue  # a link that leads nowhere, or it went in between
        except (ElfError, OSError) as error:
            if path in modules or is_elf(path):
                damaged[path] = error.strerror or "" if isinstance(error, OSError) else str(error)
    return found, damaged


def natives(
    libraries: Mapping[str, Library],
    program: Library | None,
    environ: Mapping[str, str],
    packaged: Collection[str],
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
    search, machine, wanted = Search(program, environ), program.machine, frozenset(packaged)
    return tuple(
        NativeLibrary(
            path=path,
            library=library,
            module=path in wanted and is_module(path),
            tree=search.tree(path) if path in wanted and library.machine == machine else {},
        )
        for path, library in sorted(libraries.items())
    )
