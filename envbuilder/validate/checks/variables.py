"""Variables of the shell that Python, ld.so, pip or an MPI read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ...inspect.facts import Environment
from ...inspect.libraries import here
from ...inspect.loaded import first_launcher, loaded_mpis
from ...inspect.mpi import MpiFile
from ...inspect.observation import seen
from ...inspect.packages import library_files
from ...machine.host import is_folder, is_there, names_in
from ...target_tools.elf import ElfError, Library, machine_words, read_library
from ...target_tools.files import is_below
from .owners import foreign
from .protocol import Violation, checks
from .python import hiding_modules
from .shell import first_mpi

# Lists of folders or files; of the others each names one folder or file.
_LISTS = ("PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD")
_PATHS = (
    *("PYTHONHOME", "PYTHONUSERBASE", "OPAL_PREFIX", "I_MPI_ROOT", "CUDA_HOME", "CUDA_PATH"),
    *("NCCL_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "VIRTUAL_ENV"),
    *("CONDA_PREFIX", "CONDA_EXE", "TMPDIR"),
)
# A folder that is not there is passed over: images name folders that only some machines have.
_HARMLESS = frozenset({"PYTHONPATH", "LD_LIBRARY_PATH", "PYTHONUSERBASE"})
# Source: https://pip.pypa.io/en/stable/cli/pip_install/ and "Environment Variables" of its guide.
_PIP = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER")
# Prefixes of an MPI. Sources: opal/mca/installdirs/env of Open MPI, "Environment Variables" of
# Intel MPI's reference.
_MPI_PREFIXES = {"OPAL_PREFIX": "openmpi", "I_MPI_ROOT": "intel-mpi"}
_SERIES = re.compile(r"/python(\d+\.\d+)(?:/|$)")


def entries(environment: Environment, name: str) -> list[str]:
    """Return the parts of a variable that lists paths; ld.so splits at other characters too."""
    separators = {"LD_LIBRARY_PATH": "[:;]", "LD_PRELOAD": r"[:\s]"}
    return list(
        filter(None, re.split(separators.get(name, ":"), environment.environ.get(name, "")))
    )


def _named(environment: Environment) -> Iterator[tuple[str, str]]:
    """Yield the absolute paths that variables name, with the variable."""
    for name in _LISTS:
        yield from ((name, path) for path in entries(environment, name) if path.startswith("/"))
    for name in _PATHS:
        path = environment.environ.get(name, "")
        if path.startswith("/"):
            yield name, path


def _missing(environment: Environment) -> Iterator[Violation]:
    for name, path in _named(environment):
        # The loaded modules have a check of their own for the search paths.
        if not is_there(path) and not (environment.modules and name in _LISTS[:2]):
            yield Violation(
                f"{name} names {path}, which is missing",
                (seen(path, name, "missing"),),
                severity="info" if name in _HARMLESS else None,
            )


def _damaged(environment: Environment) -> Iterator[Violation]:
    for name in (*_LISTS, *_PATHS):
        is_list = name in _LISTS
        value = environment.environ.get(name, "")
        for path in entries(environment, name) if is_list else filter(None, [value]):
            # ld.so itself replaces $ORIGIN and $LIB; a file of LD_PRELOAD may be a bare name.
            plain = name == "LD_PRELOAD" and "/" not in path
            token = name.startswith("LD_") and re.match(r"\$\{?(ORIGIN|LIB|PLATFORM)\b", path)
            if not (plain or token) and (not path.startswith("/") or re.search("[$~\"';]", path)):
                yield Violation(
                    f"{name} contains {path!r}, which is no absolute path",
                    (seen(name, "value", path),),
                )


def _other_series(environment: Environment) -> Iterator[Violation]:
    series = environment.interpreter.series
    for path in entries(environment, "PYTHONPATH"):
        other = _SERIES.search(path)
        if other and series and other[1] != series and is_folder(Path(path)):
            yield Violation(
                f"PYTHONPATH names {path}, this is Python {series}", (seen(path, "PYTHONPATH"),)
            )


def _other_machine(environment: Environment) -> Iterator[Violation]:
    """Look at the libraries of LD_PRELOAD, and at one of each folder of LD_LIBRARY_PATH."""
    machine = environment.interpreter.machine
    if machine is None or machine != here():
        return
    for name in _LISTS[1:]:
        for path in entries(environment, name):
            files = [path] if name == "LD_PRELOAD" else library_files(path, 0)
            library = next(filter(None, map(_library, files)), None)
            if library and library.machine != machine:
                words = machine_words(library.machine)
                yield Violation(
                    f"{name} names {path}, which is for {words}",
                    (seen(library.path, "e_machine", words),),
                )


def _library(path: str) -> Library | None:
    try:
        return read_library(path)
    except (ElfError, OSError):
        return None


def _other_owner(environment: Environment) -> Iterator[Violation]:
    for name, path in _named(environment):
        yield from foreign(environment, path, f"{name} names", name)


def _hidden(environment: Environment) -> Iterator[Violation]:
    """Look for modules before those of the standard library, and libraries before those within."""
    for folder in entries(environment, "PYTHONPATH"):
        modules = hiding_modules(folder)
        if modules:
            yield Violation(
                f"PYTHONPATH names {folder}, whose {modules[0]} hides the standard library's",
                tuple(seen(f"{folder}/{name}", "PYTHONPATH") for name in modules),
            )
        yield from _hidden_packages(environment, Path(folder))
    for path in entries(environment, "LD_PRELOAD"):
        library = _library(path)
        within = environment.brought.get((library and library.soname) or os.path.basename(path))  # noqa: PTH119
        if library and within and os.path.realpath(within) != os.path.realpath(path):
            yield Violation(
                f"LD_PRELOAD loads {path}, not {environment.short(within)}",
                (seen(path, "LD_PRELOAD", library.soname),),
            )


def _hidden_packages(environment: Environment, folder: Path) -> Iterator[Violation]:
    """Look for modules without metadata; path.pythonpath reports packages that have it."""
    known = {each.path for each in environment.folders if each.distributions}
    own = {
        name.partition("/")[0]: each
        for each in environment.distributions
        for name in each.recorded or ()
        if name.endswith(".py")
    }
    for name in names_in(folder) if folder not in known else ():
        hidden = own.get(name.removesuffix(".py")) or own.get(name)
        package = is_there(folder / name / "__init__.py")
        if hidden and (package or name.endswith(".py")) and hidden.path.parent != folder:
            yield Violation(
                f"PYTHONPATH names {folder}, whose {name} hides {hidden}",
                (seen(folder / name, "PYTHONPATH"),),
            )


def _left_over(environment: Environment) -> Iterator[Violation]:
    python, environ = environment.interpreter, environment.environ
    home = environ.get("PYTHONHOME", "").partition(":")[0]
    if home.startswith("/") and is_there(home):
        fits = is_there(f"{home}/lib/python{python.series}/os.py")
        yield Violation(
            f"PYTHONHOME is {home}"
            + ("" if fits else f", which has no standard library of Python {python.series}"),
            (seen("PYTHONHOME", "value", home),),
            severity=None if fits else "error",
        )
    for name in _PIP:
        value = environ.get(name, "")
        if value.lower() not in ("", "0", "no", "false", "off"):
            yield Violation(
                f"{name} is {value}: pip does not install into the environment",
                (seen(name, "value", value),),
            )
    for name, kind in _MPI_PREFIXES.items():
        prefix = environ.get(name, "")
        mpis = _mpis(environment) if is_there(prefix) else ()
        other = next((each for each in mpis if each.name == kind), None)
        if other and not is_below(os.path.realpath(other.path), os.path.realpath(prefix)):
            yield Violation(
                f"{name} is {prefix}, {other.path} is of another {other}",
                (seen(name, "value", prefix), seen(other.path)),
                severity="error",
            )


def _mpis(environment: Environment) -> Iterator[MpiFile]:
    """Yield the MPIs that programs of this shell use."""
    yield from (each.mpi for those in loaded_mpis(environment).values() for each in those)
    yield from filter(None, (first_mpi(environment), first_launcher(environment)))


CHECKS = checks(
    {
        "variable.target-missing": _missing,
        "variable.malformed": _damaged,
        "variable.other-python": _other_series,
        "variable.other-machine": _other_machine,
        "variable.other-owner": _other_owner,
        "variable.hides": _hidden,
        "variable.left-over": _left_over,
    }
)
