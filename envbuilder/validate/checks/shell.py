"""What the shell adds: loaded modules, and variables that name libraries of other releases."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from ...inspect.facts import Environment, LoadedModule
from ...inspect.library_homes import CUDA, NCCL, LibraryHome, home_library, release_of
from ...inspect.loaded import first_launcher, loaded
from ...inspect.mpi import MPI_LIBRARY, MpiFile, mpi_of
from ...inspect.observation import seen
from ...inspect.reading import loaded_modules
from ...machine.host import is_file, is_folder, names_in
from ...target_tools.files import text_or_none
from ...text import counted
from .owners import foreign
from .protocol import Violation, checks


def _gone(environment: Environment) -> Iterator[Violation]:
    for each in _in_shell(environment):
        # A file of Lmod may be a link of a site; what it leads to counts.
        if each.file is not None and not is_file(Path(each.file)):
            yield Violation(
                f"{each.name} is loaded, and its modulefile is gone",
                (seen(each.file, "_LMFILES_", each.name),),
            )


def _two_releases(environment: Environment) -> Iterator[Violation]:
    named: dict[str, list[str]] = defaultdict(list)
    for each in _in_shell(environment):
        if "/" in each.name:
            named[each.name.rpartition("/")[0]].append(each.name)
    for those in named.values():
        if len(those) > 1:
            yield Violation(
                f"{' and '.join(those)} are loaded together",
                (seen("LOADEDMODULES", "value", ":".join(those)),),
                fix=f"module unload {those[0]}",
            )


def _folders_gone(environment: Environment) -> Iterator[Violation]:
    for name in ("LD_LIBRARY_PATH", "PYTHONPATH", "PATH") if environment.modules else ():
        entries = dict.fromkeys(environment.environ.get(name, "").split(":"))
        gone = [each for each in entries if each.startswith("/") and not is_folder(Path(each))]
        if gone:
            yield Violation(
                f"{name} names {gone[0]}"
                + (f" and {len(gone) - 1} more" if gone[1:] else "")
                + ", which is not there",
                tuple(seen(each, name, "missing") for each in gone),
            )


def first_mpi(environment: Environment) -> MpiFile | None:
    """Return the MPI whose library comes first on LD_LIBRARY_PATH."""
    for folder in environment.environ.get("LD_LIBRARY_PATH", "").split(":"):
        for name in names_in(Path(folder)) if folder.startswith("/") else ():
            if MPI_LIBRARY.match(name) and (found := mpi_of(f"{folder}/{name}")):
                return found
    return None


def _other_mpi(environment: Environment) -> Iterator[Violation]:
    launcher = first_launcher(environment) if environment.modules else None
    library = first_mpi(environment) if launcher else None
    if launcher and library and launcher.kin != library.kin:
        yield Violation(
            f"{launcher.path} starts ranks of {launcher}, {library.path} is of {library}",
            (
                seen(launcher.path, "PATH", launcher),
                seen(library.path, "LD_LIBRARY_PATH", library),
            ),
            confidence="likely",
        )


def _in_shell(environment: Environment) -> tuple[LoadedModule, ...]:
    """Return the modules of this shell, also where they do not belong to the environment."""
    return () if environment.root else loaded_modules(environment.environ)


def _software(module: LoadedModule) -> Iterator[tuple[str, str]]:
    """Yield the name of a module's software as EasyBuild's variables have it, and its version."""
    name, _, version = module.name.rpartition("/")
    upper = name.rpartition("/")[2].upper()
    for each in {upper, upper.replace("-", "MIN").replace("+", "PLUS")}:
        yield re.sub(r"[^A-Z0-9]", "", each), version


def _other_root(environment: Environment) -> Iterator[Violation]:
    """Compare EBROOT* and EBVERSION* with the loaded modules."""
    versions = {n: version for each in _in_shell(environment) for n, version in _software(each)}
    roots = {} if environment.root else dict(environment.environ)
    for variable in sorted(name for name, root in roots.items() if name[:6] == "EBROOT" and root):
        root, name = roots[variable].rstrip("/"), variable[6:]
        version = versions.get(name)
        stated = {f"EBVERSION{name}": roots.get(f"EBVERSION{name}", ""), variable: Path(root).name}
        other = [n for n, release in stated.items() if version and not _agree(version, release)]
        if not is_folder(Path(root)):
            summary = f"{variable} names {root}, which is missing"
            yield Violation(summary, (seen(root, variable, "missing"),))
        elif version is None and not any(root == roots.get(f"EBROOT{each}") for each in versions):
            summary = f"{variable} is {root}, and no module of it is loaded"
            yield Violation(summary, (seen(variable, "value", root),))
        elif other:
            yield Violation(
                f"{other[0]} is {roots[other[0]]}, the loaded module is of {version}",
                (seen(other[0], "value", roots[other[0]]), seen("LOADEDMODULES", name, version)),
            )


def _agree(version: str, release: str) -> bool:
    """Whether a release is that of a module, which may have its toolchain behind it, or is none."""
    short, long = sorted((version, release), key=len)
    same = long.startswith(short) and not re.match(r"[\w.]", long[len(short) :])
    return same or not (release[:1].isdigit() and version[:1].isdigit())


def _module_damaged(environment: Environment) -> Iterator[Violation]:
    for each in _in_shell(environment):
        text = text_or_none(each.file) if each.file and is_file(Path(each.file)) else None
        if each.file is None or text is None:
            continue
        tcl = not each.file.endswith(".lua")
        if not text.strip() or "\0" in text or (tcl and not text.startswith("#%Module")):
            yield Violation(
                f"the modulefile of {each.name} is damaged", (seen(each.file, "first line"),)
            )


def _module_owner(environment: Environment) -> Iterator[Violation]:
    for each in _in_shell(environment):
        if each.file:
            yield from foreign(environment, each.file, f"{each.name} is loaded from", "_LMFILES_")


def _half_loaded(environment: Environment) -> Iterator[Violation]:
    """Look for loaded modules whose files or folders the shell does not have."""
    environ = environment.environ
    modules = _in_shell(environment)
    files = [file for file in environ.get("_LMFILES_", "").split(":") if file]
    if files and len(files) != len(modules):
        yield Violation(
            f"{counted(len(modules), 'module')} of {counted(len(files), 'file')} are loaded",
            (
                seen("LOADEDMODULES", "number", len(modules)),
                seen("_LMFILES_", "number", len(files)),
            ),
        )
    path = [os.path.realpath(each) for each in environ.get("PATH", "").split(":") if each]
    for name in {name for each in modules for name, _ in _software(each)}:
        folder = Path(environ.get(f"EBROOT{name}") or "/nowhere", "bin")
        if is_folder(folder) and os.path.realpath(folder) not in path:
            yield Violation(
                f"the module of {folder.parent} is loaded, and PATH lacks its bin",
                (seen(folder, "PATH", "missing"),),
            )


_HOMES = {"HOROVOD_NCCL_HOME": NCCL, "HOROVOD_CUDA_HOME": CUDA}


def _named(environment: Environment) -> Iterator[tuple[str, LibraryHome, str]]:
    for variable, home in _HOMES.items():
        folder = environment.environ.get(variable, "")
        if folder.startswith("/"):
            yield variable, home, folder


def _no_home(environment: Environment) -> Iterator[Violation]:
    for variable, home, folder in _named(environment):
        if home_library(home, folder) is None:
            yield Violation(
                f"{variable} names {folder}, in which there is no {home.title}",
                (seen(folder, variable, "no such library in lib or lib64"),),
            )


def _other_release(environment: Environment) -> Iterator[Violation]:
    for variable, home, folder in _named(environment):
        library = home_library(home, folder)
        there = release_of(home, library) if library else None
        for those in loaded(environment, home.library).values() if there else ():
            used = release_of(home, those[0].path)
            short = min(len(there or ()), len(used or ()))
            if there and used and there[:short] != used[:short]:
                one, other = (".".join(map(str, each)) for each in (there, used))
                what = environment.name(those[0].native.path)
                yield Violation(
                    f"{variable} is of {home.title} {one}, {what} loads {other}",
                    (seen(library or folder, variable, one), those[0].evidence(environment)),
                    confidence="likely",
                )
                break


CHECKS = checks(
    {
        "module.other-root": _other_root,
        "module.damaged": _module_damaged,
        "module.other-owner": _module_owner,
        "module.half-loaded": _half_loaded,
        "module.gone": _gone,
        "module.two-releases": _two_releases,
        "module.folder-gone": _folders_gone,
        "module.other-mpi": _other_mpi,
        "horovod.home-empty": _no_home,
        "horovod.other-home": _other_release,
    }
)
