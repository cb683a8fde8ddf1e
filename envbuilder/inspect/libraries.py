"""The ELF files among the packages, and what ld.so would load with each of them."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
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


def read_all(paths: Iterable[str]) -> tuple[dict[str, Library], dict[str, str]]:
    """Return the libraries of some files, and why the others are none.

    Text that is named like a library, a linker script say, is left out.
    """
    found: dict[str, Library] = {}
    damaged: dict[str, str] = {}
    for path in paths:
        try:
            found[path] = read_library(path)
        except FileNotFoundError:
            continue  # a link that leads nowhere, or it went in between
        except (ElfError, OSError) as error:
            if _is_damaged(path):
                damaged[path] = error.strerror or "" if isinstance(error, OSError) else str(error)
    return found, damaged


def _is_damaged(path: str) -> bool:
    """Whether what is no library should be one: modules, and what begins as ELF files do."""
    return bool(MODULE.fullmatch(os.path.basename(path))) or is_elf(path)  # noqa: PTH119


def natives(
    libraries: Mapping[str, Library], program: Library | None, environ: Mapping[str, str]
) -> tuple[NativeLibrary, ...]:
    """Return the libraries with what ld.so finds for each in a process of *program*.

    Without a program that can be read: in one of the same machine as most of them.
    """
    if not libraries:
        return ()
    if program is None:
        (machine, _), *_ = Counter(each.machine for each in libraries.values()).most_common(1)
        program = Library("/", machine, (), (), (), None, ())
    search = Search(program, environ)
    return tuple(
        NativeLibrary(
            path=path,
            library=library,
            module=bool(MODULE.fullmatch(os.path.basename(path))),  # noqa: PTH119
            tree=search.tree(path) if library.machine == program.machine else {},
        )
        for path, library in sorted(libraries.items())
    )
