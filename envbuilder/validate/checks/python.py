"""The interpreter of an environment."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from ...inspect.facts import Environment
from ...inspect.mpi import holds
from ...inspect.observation import seen
from ...machine.host import LocalMachine, is_folder, is_there, names_in
from ...target_tools.distributions import ENDINGS
from ...target_tools.elf import machine_words
from ...target_tools.files import is_below, open_regular, text_or_none
from ...target_tools.ld_so import Search
from ...text import counted
from .owners import is_private, other_owner
from .protocol import NOT_SEARCHED, Outcome, Undecided, Violation, checks


def _missing(environment: Environment) -> Iterator[Violation]:
    python = environment.interpreter
    where = environment.short(python.path)
    if python.real is not None and not os.stat(python.real).st_mode & 0o111:  # noqa: PTH116
        summary = f"{where} has no execute permission"
        yield Violation(
            summary,
            (seen(environment.short(python.real), "mode", "no x"),),
            fix=f"chmod +x {where}",
        )
    if python.real is not None or environment.away:
        return
    try:
        target = os.readlink(python.path)  # noqa: PTH115 - text, as it is written
    except OSError:
        yield Violation(f"{where} is missing", (seen(where, "file", "missing"),))
        return
    place = (seen(where, "link", target),)
    if _is_closed(python.path):
        summary = f"{where} leads to {target}, which this user may not look at"
        yield Violation(summary, place, fix=_OPEN)
        return
    yield Violation(f"{where} leads nowhere: {target}", place)


_OPEN = (
    "ask its owner to open its parent folders (chmod o+x), or make a new environment with a Python "
    "that all users may run"
)


def _is_closed(path: Path) -> bool:
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.EACCES
    return False


def _other_version(environment: Environment) -> Iterator[Outcome]:
    python = environment.interpreter
    if python.real is None and not environment.away:
        return  # python.missing reports it
    if not (python.real and python.series and python.real_series):
        yield Undecided("the version of the interpreter, or of the packages, is unknown")
        return
    where = environment.short(python.path)
    if python.series != python.real_series:
        yield Violation(
            f"its packages are for Python {python.series}, {where} is Python {python.real_series}",
            (seen(where, "link", python.real), seen(f"lib/python{python.series}", "folder")),
        )
    elif python.version and not f"{python.version}.".startswith(f"{python.series}."):
        yield Violation(
            f"pyvenv.cfg is of Python {python.version}, {where} is Python {python.real_series}",
            (seen("pyvenv.cfg", "version", python.version), seen(where, "link", python.real)),
        )


def _damaged(environment: Environment) -> Iterator[Violation]:
    python = environment.interpreter
    if python.real is None or python.library is not None or environment.away:
        return
    with open_regular(python.real) as stream:
        begin = stream.read(2)
    if begin != b"#!":  # a script may start the Python
        yield Violation(
            f"{environment.short(python.path)} is no program",
            (seen(environment.short(python.real), "ELF header"),),
        )


def _library_missing(environment: Environment) -> Iterator[Outcome]:
    python = environment.interpreter
    if python.library is None or python.real is None:
        return
    if not environment.native:
        yield Undecided(NOT_SEARCHED)
        return
    found = Search(python.library, environment.environ, environment.root).tree(str(python.real))
    for name in sorted(name for name, path in found.items() if path is None):
        yield Violation(
            f"{environment.short(python.path)} needs {name}",
            (seen(environment.short(python.real), "NEEDED", name),),
        )


def _standard_library(environment: Environment) -> Iterator[Violation]:
    """Look for os.py as getpath does: in lib/pythonX.Y of a folder above the program."""
    python = environment.interpreter
    if python.real is None or python.series is None or environment.away:
        return
    if python.real_series not in (None, python.series):
        return  # python.other-version reports it
    name, root = f"python{python.series}", environment.root
    if not any(_has_library(folder, name, root) for folder in _homes(environment, python.real)):
        where = environment.short(python.real)
        yield Violation(
            f"there is no standard library of Python {python.series} above {where}",
            (seen(where, f"lib/python{python.series}/os.py", "missing"),),
        )


def _homes(environment: Environment, real: Path) -> list[Path]:
    """Return the folders of programs beside which getpath looks for the standard library.

    The last are those of the prefix that the Python was compiled for.
    """
    compiled = [p for p in ("/usr", "/usr/local") if holds(str(real), b"\0%b\0" % p.encode())]
    home = environment.interpreter.home
    own = (*([home] if home else ()), real.parent, environment.prefix / "bin")
    return [*own, *(Path(f"{environment.root}{prefix}/bin") for prefix in compiled)]


# Modules that Python is built without where a library was missing.
_EXTENSIONS = ("_ctypes", "_ssl", "_hashlib", "_sqlite3", "_bz2", "_lzma", "zlib")


def _module_missing(environment: Environment) -> Iterator[Outcome]:
    """Look for modules in lib-dynload, and in the program and its libpython."""
    python = environment.interpreter
    if python.real is None or python.library is None or environment.away:
        return  # other checks report it
    libs = [home.parent / n for home in _homes(environment, python.real) for n in ("lib", "lib64")]
    places = [lib / f"python{python.series}" / "lib-dynload" for lib in libs]
    folder = next(filter(is_folder, places), None)
    there = {name.partition(".")[0] for name in names_in(folder)} if folder else set()
    absent = [name for name in _EXTENSIONS if name not in there]
    search = Search(python.library, environment.environ, environment.root)
    found = [*search.tree(str(python.real)).values()] if absent else []
    programs = [str(python.real), *(each for each in found if each and "libpython" in each)]
    if absent and not (folder and any(holds(each, b"PyInit_posix\0") for each in programs)):
        yield Undecided("which modules are compiled into the Python is unknown")
        return
    texts = {name: b"PyInit_%b\0" % name.encode() for name in absent}
    lacking = [name for name, text in texts.items() if not any(holds(p, text) for p in programs)]
    if lacking:
        where = environment.short(folder or python.real)
        yield Violation(
            f"the Python was built without {', '.join(lacking)}",
            tuple(seen(where, name, "missing") for name in lacking),
        )


def hiding_modules(folder: str | Path) -> list[str]:
    """Return the modules in a folder that have the name of one of the standard library."""
    found = [
        name
        for name in names_in(folder)
        if name.partition(".")[0] in sys.stdlib_module_names
        and (name.endswith((".py", ".so")) or is_there(Path(folder, name, "__init__.py")))
    ]
    return [] if "os.py" in found else found  # that is a standard library itself


def _module_hidden(environment: Environment) -> Iterator[Violation]:
    names = hiding_modules(environment.prefix / "bin")
    if names and environment.kind != "Python prefix":
        yield Violation(
            f"bin/{names[0]} hides the standard library's", tuple(seen(f"bin/{n}") for n in names)
        )


def _has_library(folder: Path, name: str, root: str) -> bool:
    zipped = f"{name.replace('.', '')}.zip"
    return any(
        is_there(above / lib / name / file) or is_there(above / lib / zipped)
        for above in folder.parents
        if is_below(above, root or "/") and (str(above) != "/" or above == folder.parent)
        for lib in ("lib", "lib64")
        for file in ("os.py", "os.pyc")
    )


def _other_home(environment: Environment) -> Iterator[Violation]:
    """Compare the folder that pyvenv.cfg names with the Python that bin/python leads to."""
    python = environment.interpreter
    if python.home is None or python.real is None or environment.away:
        return
    names = (f"python{python.real_series or python.series}", "python3", "python")
    places = [environment.real(str(python.home / name)) for name in names]
    programs = [place for place in places if is_there(place)]
    link = Path(os.path.realpath(python.path)) != python.path
    home = environment.short(python.home)
    place = seen("pyvenv.cfg", "home", home)
    if not programs:
        yield Violation(f"pyvenv.cfg names {home}, in which there is no Python", (place,))
    elif link and str(python.real) not in programs:
        where = environment.short(python.path)
        yield Violation(
            f"pyvenv.cfg names {home}, {where} leads to {environment.short(python.real)}",
            (place, seen(where, "link", environment.short(python.real))),
        )


def _no_config(environment: Environment) -> Iterator[Violation]:
    """Look for a virtualenv without pyvenv.cfg, or with one that names no base Python."""
    python, prefix = environment.interpreter, environment.prefix
    # An old virtualenv, and a base Python, have a standard library of their own.
    if python.home or is_there(prefix / "lib" / f"python{python.series}" / "os.py"):
        return
    if is_there(prefix / "pyvenv.cfg"):
        yield Violation("pyvenv.cfg has no home", (seen("pyvenv.cfg", "home", "missing"),))
    elif is_there(prefix / "bin" / "activate"):
        yield Violation("pyvenv.cfg is missing", (seen("pyvenv.cfg", "file", "missing"),))


def _unsearched(environment: Environment) -> Iterator[Violation]:
    if environment.kind == "Python prefix":
        return
    for folder in environment.unsearched:
        names = [name for name in names_in(folder) if name.endswith(ENDINGS)]
        if names:
            where = environment.short(folder)
            yield Violation(
                f"{where} has {counted(len(names), 'package')}, "
                f"Python {environment.interpreter.series} does not search it",
                tuple(seen(f"{where}/{name}") for name in names),
            )


def _other_machine(environment: Environment) -> Iterator[Violation]:
    machine = environment.interpreter.machine
    if machine is not None and not environment.native and not environment.away:
        where, words = environment.short(environment.interpreter.path), machine_words(machine)
        yield Violation(f"{where} is for {words}", (seen(where, "e_machine", words),))


def _other_owner(environment: Environment) -> Iterator[Violation]:
    real = environment.interpreter.real
    owner = other_owner(environment, real) if real else None
    if real and owner:
        private = is_private(environment, real, owner)
        where = f", private to {owner.name}" if private else ""
        yield Violation(
            f"{environment.short(environment.interpreter.path)} belongs to {owner.name}{where}",
            (seen(environment.short(real), "owner", owner.name),),
            severity=None if private else "info",
        )


def _other_first(environment: Environment) -> Iterator[Violation]:
    """Look at PATH where the shell says that the environment is active."""
    variables = ("VIRTUAL_ENV", "CONDA_PREFIX")
    values = {name: environment.environ.get(name) for name in variables}
    active = [name for name, value in values.items() if value == str(environment.prefix)]
    if not active or environment.root:
        return
    machine = LocalMachine(environment.environ)
    path = machine.which("python") or machine.which("python3")
    if path and os.path.realpath(Path(path).parent) != os.path.realpath(environment.prefix / "bin"):
        yield Violation(
            f"{active[0]} is set, and {Path(path).name} on PATH is {path}", (seen(path, "PATH"),)
        )


# Of a script that pip or conda wrote; where the path is long or has blanks, sh starts it.
_STARTS = re.compile(
    rb"#!\s*(/[^\n]*?/python[0-9.]*)[\s\n]"
    rb"|#!/bin/sh\n\x27\x27\x27exec\x27 \"?(/[^\n\"]*?/python[0-9.]*)[\" ]"
)
_ACTIVATES = re.compile(r"\bVIRTUAL_ENV=[\"']?(/[^\"'$\n]+)")
_FIRST_BYTES = 1000
_MOST_SCRIPTS = 2000


def _moved(environment: Environment) -> Iterator[Outcome]:
    """Look for scripts that start a Python of another environment, or one that is gone."""
    if environment.kind == "Python prefix":
        return
    yield from _activates(environment)
    own = os.path.realpath(environment.prefix / "bin")
    elsewhere: dict[Path, list[str]] = {}
    scripts = _scripts(environment.prefix / "bin")
    if scripts is None:
        yield Undecided("the folder cannot be read", environment.short(environment.prefix / "bin"))
    for script in (scripts or ())[_MOST_SCRIPTS:]:
        yield Undecided(f"only {_MOST_SCRIPTS} scripts are read", environment.short(script))
    for script in (scripts or ())[:_MOST_SCRIPTS]:
        try:
            python = _started_by(script)
        except OSError:
            yield Undecided("the file cannot be read", environment.short(script))
            continue
        lies = python and Path(f"{environment.root}{python}")
        # A script by the environment's own path is fine if its Python is there.
        if (
            python
            and lies
            and (os.path.realpath(lies.parent) != own or _is_absent(lies, environment))
        ):
            elsewhere.setdefault(python, []).append(environment.short(script))
    for python, names in elsewhere.items():
        lies = Path(f"{environment.root}{python}")
        gone = _is_absent(lies, environment)
        # A system's Python that a package names on purpose is none of another environment.
        if gone or is_there(lies.parent.parent / "pyvenv.cfg"):
            which = "which is gone" if gone else "of another environment"
            yield Violation(
                f"{len(names)} of its scripts start {python}, {which}",
                tuple(seen(name, "#!", python) for name in names),
                severity="error" if gone else None,
            )


def _activates(environment: Environment) -> Iterator[Violation]:
    """Compare the folder that bin/activate names, as it is written, with the environment's."""
    path = environment.prefix / "bin" / "activate"
    found = _ACTIVATES.search(text_or_none(environment.real(str(path))) or "")
    named = environment.real(f"{environment.root}{found[1]}") if found else None
    if found and named and named != environment.real(str(environment.prefix)):
        yield Violation(
            f"bin/activate activates {found[1]}", (seen("bin/activate", "VIRTUAL_ENV"),)
        )


def _is_absent(python: Path, environment: Environment) -> bool:
    """Whether nothing is at a path; where a link of an image leads is not this system's."""
    return not os.path.lexists(python) if environment.root else not is_there(python)


def _scripts(folder: Path) -> list[Path] | None:
    """Return the files of a folder; none if it is missing, None if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(each.name for each in entries if each.is_file(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        return None
    return [folder / name for name in names]


def _started_by(script: Path) -> Path | None:
    """Return the Python that a script names; None: it is no script, or names none by its path."""
    with open_regular(script) as stream:
        begin = stream.read(_FIRST_BYTES)
    found = _STARTS.match(begin)
    return Path(os.fsdecode(found[1] or found[2])) if found else None


CHECKS = checks(
    {
        "python.missing": _missing,
        "python.other-version": _other_version,
        "python.damaged": _damaged,
        "python.library-missing": _library_missing,
        "python.standard-library-missing": _standard_library,
        "python.module-missing": _module_missing,
        "python.module-hidden": _module_hidden,
        "python.other-home": _other_home,
        "python.config-missing": _no_config,
        "python.left-over": _unsearched,
        "python.other-machine": _other_machine,
        "python.other-owner": _other_owner,
        "python.hidden": _other_first,
        "python.moved": _moved,
    }
)
