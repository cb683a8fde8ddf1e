"""What the shell adds: loaded modules, and variables that name libraries of other releases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from ...inspect.facts import Environment
from ...inspect.library_homes import CUDA, NCCL, LibraryHome, home_library, release_of
from ...inspect.loaded import first_launcher, loaded
from ...inspect.mpi import MPI_LIBRARY, MpiFile, mpi_of
from ...inspect.observation import seen
from ...machine.host import is_file, is_folder, names_in
from .protocol import Violation, check

_MODULES = "https://modules.readthedocs.io/en/latest/module.html"


def _gone(environment: Environment) -> Iterator[Violation]:
    for each in environment.modules:
        # A file of Lmod may be a link of a site; what it leads to counts.
        if each.file is not None and not is_file(Path(each.file)):
            yield Violation(
                f"{each.name} is loaded, and its modulefile is gone",
                (seen(each.file, "_LMFILES_", each.name),),
            )


def _two_releases(environment: Environment) -> Iterator[Violation]:
    named: dict[str, list[str]] = defaultdict(list)
    for each in environment.modules:
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


CHECKS = (
    check(
        _gone,
        id="module.gone",
        layer="modules",
        faults=("missing",),
        severity="warning",
        title="the modulefile of a loaded module is missing",
        why="the shell has settings of an earlier state of the site; a job that loads the module "
        "fails",
        fix="module purge, and load modules that the site has now",
        source=_MODULES,
    ),
    check(
        _two_releases,
        id="module.two-releases",
        layer="modules",
        faults=("another release",),
        severity="warning",
        title="two releases of one module are loaded",
        why="files of the release loaded last are found first, other files come from the first",
        fix="unload one of them",
        source=_MODULES,
    ),
    check(
        _folders_gone,
        id="module.folder-gone",
        layer="modules",
        faults=("missing",),
        severity="warning",
        title="the loaded modules add a missing folder to a search path",
        why="the software of the module was moved or removed: another one is found instead",
        fix="module purge, and load modules that the site has now; inform the site",
        source=_MODULES,
    ),
    check(
        _other_mpi,
        id="module.other-mpi",
        layer="modules",
        faults=("hidden",),
        severity="error",
        title="mpiexec on PATH and libmpi on LD_LIBRARY_PATH are of different MPIs",
        why="programs that load this libmpi are started as ranks of another MPI: each becomes rank "
        "0 of 1, or all wait forever at start-up",
        fix="unload the module of one of the two",
        source="https://mpi4py.readthedocs.io/en/stable/install.html",
    ),
    check(
        _no_home,
        id="horovod.home-empty",
        layer="variables",
        faults=("missing",),
        severity="warning",
        title="HOROVOD_NCCL_HOME or HOROVOD_CUDA_HOME names a folder without the library",
        why="a build of Horovod in this shell fails, or silently uses another one",
        fix="set it to the folder with include and lib of the loaded release, or unset it",
        source="https://github.com/horovod/horovod/blob/2626dc87/docs/gpus.rst",
    ),
    check(
        _other_release,
        id="horovod.other-home",
        layer="variables",
        faults=("another release",),
        severity="warning",
        title="HOROVOD_NCCL_HOME or HOROVOD_CUDA_HOME has another release than the one loaded",
        why="Horovod is compiled for one release and runs with another: undefined symbols, or "
        "operations that hang",
        fix="set it to the release that the framework loads",
        source="https://github.com/horovod/horovod/blob/2626dc87/docs/gpus.rst",
    ),
)
