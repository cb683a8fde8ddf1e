"""Reads an environment: its kind, its Python, its folders of packages, its libraries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ..errors import UsageError
from ..machine.host import glibc_version, is_file, is_folder, names_in
from ..model.validation import EnvironmentKind
from ..target_tools.elf import ElfError, Library, read_library
from ..target_tools.files import is_below, open_regular, real_in, text_or_none
from .conda import conda_packages
from .facts import (
    OWN,
    Environment,
    EnvironmentPython,
    FolderKind,
    LoadedModule,
    PackageFolder,
    arch_of,
)
from .libraries import glibc_of, here, is_extension, natives, read_all
from .machine import isa_here, mounts_here
from .packages import distributions_in, library_files

_LARGEST_CONFIG = 64 * 1024
_SERIES = re.compile(r"python(\d+\.\d+)")


def read_environment(
    prefix: Path,
    environ: Mapping[str, str],
    *,
    loaded: bool = False,
    root: str = "",
    arch: str | None = None,
) -> Environment:
    """Return what an environment holds. *environ*: that of the shell that would use it.

    *loaded*: the modules that are loaded in that shell belong to it, and so does what they put on
    PYTHONPATH; its Python may then be the system's. *root*: the folder of the system that it lies
    in, an image's say; "" for this one. *arch*: what it is for, where somebody says it: what lies
    at the path of its Python may be this machine's.

    Raises UsageError for what is no environment of Python. What cannot be read of one is told by
    the facts.
    """
    config, every_folder, interpreter, away = _python_of(prefix, root, arch, loaded=loaded)
    folders = [each for each in every_folder if _is_searched(each, interpreter)] or every_folder
    searched = tuple(
        PackageFolder(path, "module" if loaded and kind == "pythonpath" else kind, there)
        for path, kind in _with_added(_search_path(config, folders, interpreter, environ), root)
        if not (away and kind == "base")
        for there in [tuple(distributions_in(path))]
    )
    own = [str(each.path) for each in searched if each.kind in OWN]
    files = [path for folder in own for path in library_files(folder)]
    beside = _beside(prefix, root)
    libraries, damaged = read_all(dict.fromkeys((*files, *beside)), files, root)
    found = natives(libraries, interpreter.library, environ, files, root)
    outer = list(_outer_modules(searched))
    machine = interpreter.machine or next((each.library.machine for each in found), None)
    others = {
        path: each for path, each in read_all(outer, (), root)[0].items() if each.machine == machine
    }
    native = bool(root) or machine == here()
    conda, conda_damaged = conda_packages(prefix)
    return Environment(
        prefix=prefix,
        kind=_kind(prefix, config),
        interpreter=interpreter,
        folders=searched,
        libraries=found,
        damaged=damaged,
        environ=environ,
        native=native,
        system_packages=_takes_system_packages(config),
        conda=conda,
        conda_damaged=conda_damaged,
        outer=natives(others, interpreter.library, environ, outer, root),
        modules=loaded_modules(environ) if loaded else (),
        root=root,
        away=away,
        isa=isa_here() if machine == here() else None,
        mounts=() if root else mounts_here(),
        glibc=glibc_of(root, interpreter.library) if root else glibc_version() if native else None,
        unsearched=tuple(each for each in every_folder if each not in folders),
    )


class _PythonOf(NamedTuple):
    """An environment's pyvenv.cfg, its own folders, its Python, and where not of this machine."""

    config: Mapping[str, str] | None
    folders: Sequence[Path]
    interpreter: EnvironmentPython
    away: str | None


def _python_of(prefix: Path, root: str, arch: str | None, *, loaded: bool) -> _PythonOf:
    """Return what is found of a Python. Raises UsageError for what is no environment of one."""
    config = _config(prefix)
    folders = _own_folders(prefix)
    every = [s for folder in folders if (s := _series(str(folder)))]
    interpreter = _interpreter(prefix, config or {}, every, root)
    away = arch if arch and not root and arch != arch_of(here()) else None
    if away and arch_of(interpreter.machine) != away:
        interpreter = replace(interpreter, real_series=None, library=None)
    if config is None and not folders and not loaded and _python(prefix):
        # A distribution's own Python: Debian calls its folders otherwise.
        folders = list(_base_folders(prefix / "bin", interpreter))
    if config is None and not (_python(prefix) and (folders or loaded)):
        raise UsageError(
            "environment.not-python",
            f"not a Python environment: {prefix}",
            "name the folder that contains bin/python and lib/pythonX.Y/site-packages",
        )
    return _PythonOf(config, folders, interpreter, away)


def _is_searched(folder: Path, interpreter: EnvironmentPython) -> bool:
    """Whether the Python of an environment searches a folder: it is of its series, or of none."""
    return _series(str(folder)) in (None, interpreter.series)


def loaded_modules(environ: Mapping[str, str]) -> tuple[LoadedModule, ...]:
    """Return the modules that are loaded in a shell, in the order in which they were.

    Lmod and Environment Modules name them in LOADEDMODULES and their files in _LMFILES_.
    """
    named = [name for name in environ.get("LOADEDMODULES", "").split(":") if name]
    files = [file for file in environ.get("_LMFILES_", "").split(":") if file]
    known = files if len(files) == len(named) else [None] * len(named)
    return tuple(LoadedModule(name, file) for name, file in zip(named, known, strict=True))


def _beside(prefix: Path, root: str) -> list[str]:
    """Return what wheels and conda packages put beside the packages: lib/libmpi.so.12.

    The lib of a whole system is no such place.
    """
    if os.path.realpath(prefix) in (os.path.realpath(f"{root}/"), os.path.realpath(f"{root}/usr")):
        return []
    libs = {os.path.realpath(prefix / name): prefix / name for name in ("lib64", "lib")}
    return [path for folder in libs.values() for path in library_files(str(folder), 1)]


def _outer_modules(folders: Iterable[PackageFolder]) -> Iterator[str]:
    """Yield the extension modules that Python imports from folders that are not the own ones.

    What an earlier folder has of the same name hides them.
    """
    names: set[str] = set()
    for folder in folders:
        there = names_in(folder.path)
        # The folder of an editable package may hold any number of files.
        if folder.kind not in OWN and (
            folder.kind != "added" or folder.path.name.endswith("-packages")
        ):
            for path in library_files(str(folder.path)):
                first = path[len(str(folder.path)) + 1 :].partition("/")[0]
                name = first.partition(".")[0]
                # Of other environments in a folder of sources nothing is imported.
                is_other = not name or is_file(folder.path / first / "pyvenv.cfg")
                if name not in names and not is_other and is_extension(path):
                    yield path
        names |= {name.partition(".")[0] for name in there}


def _kind(prefix: Path, config: Mapping[str, str] | None) -> EnvironmentKind:
    if config is not None:
        return "virtualenv"
    return "conda environment" if is_folder(prefix / "conda-meta") else "Python prefix"


def _config(prefix: Path) -> dict[str, str] | None:
    """Return the keys of pyvenv.cfg, in lower case as Python reads them; None: there is none."""
    try:
        with open_regular(prefix / "pyvenv.cfg") as stream:
            text = stream.read(_LARGEST_CONFIG).replace(b"\0", b"").decode("utf-8", "replace")
    except OSError:
        return None
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _takes_system_packages(config: Mapping[str, str] | None) -> bool:
    return config is None or config.get("include-system-site-packages", "").lower() == "true"


def _own_folders(prefix: Path) -> list[Path]:
    """Return the folders of packages of a prefix, each real one once."""
    found: dict[str, Path] = {}
    for lib in ("lib", "lib64"):
        names = [name for name in names_in(prefix / lib) if _SERIES.fullmatch(name)]
        # conda-forge's Python has a link lib/python3.1 to lib/python3.11.
        for name in sorted(names, key=lambda each: os.path.islink(prefix / lib / each)):  # noqa: PTH114
            folder = prefix / lib / name / "site-packages"
            if is_folder(folder):
                found.setdefault(os.path.realpath(folder), folder)
    return list(found.values())


def _python(prefix: Path) -> Path | None:
    """Return the interpreter of a prefix, also where it is a link that leads nowhere."""
    for name in ("python", "python3"):
        path = prefix / "bin" / name
        if os.path.lexists(path):
            return path
    return None


def _series(text: str) -> str | None:
    """Return 3.11 of a path or name with python3.11 in it, of the last one that has."""
    found = _SERIES.findall(text)
    return found[-1] if found else None


def _interpreter(
    prefix: Path, config: Mapping[str, str], every: Sequence[str], root: str
) -> EnvironmentPython:
    """Return the interpreter of a prefix; *every*: the series that it has folders for."""
    path = _python(prefix) or prefix / "bin" / "python"
    try:
        real = Path(real_in(root, str(path)[len(root) :]))
    except OSError:
        real = path
    try:
        library: Library | None = read_library(str(real))
    except (ElfError, OSError):
        library = None
    needed = library.needed if library else ()
    said = config.get("version") or config.get("version_info") or ""
    version = re.match(r"\d+\.\d+(\.\d+)?", said)
    real_series = next((s for name in (real.name, *needed) if (s := _series(name))), None)
    return EnvironmentPython(
        path=path,
        real=real if is_file(real) else None,
        version=version.group() if version else None,
        series=real_series if real_series in every else next(iter(every), real_series),
        real_series=real_series,
        library=library,
        home=Path(f"{root}{config['home']}") if config.get("home", "").startswith("/") else None,
    )


def _search_path(
    config: Mapping[str, str] | None,
    own: Sequence[Path],
    interpreter: EnvironmentPython,
    environ: Mapping[str, str],
) -> Iterator[tuple[Path, FolderKind]]:
    """Yield where Python looks for packages, in its order; source: site.py of Python 3.13."""
    for entry in environ.get("PYTHONPATH", "").split(":"):
        if entry.startswith("/"):
            yield Path(entry), "pythonpath"
    user = _user_site(interpreter, environ) if _takes_system_packages(config) else None
    if config is not None:
        yield from ((each, "own") for each in own)
    if user is not None and is_folder(user):
        yield user, "user"
    if config is None:
        yield from ((each, "own") for each in own)
        if not own:  # the system's
            home = interpreter.path.parent
            yield from ((each, "base") for each in _base_folders(home, interpreter))
    elif _takes_system_packages(config) and interpreter.home:
        yield from ((each, "base") for each in _base_folders(interpreter.home, interpreter))


def _with_added(
    places: Iterable[tuple[Path, FolderKind]], root: str
) -> Iterator[tuple[Path, FolderKind]]:
    """Yield folders with those that their .pth files add; source: addpackage of site.py.

    Those of easy_install move to the front by lines of code.
    """
    known: set[str] = set()
    for path, kind in places:
        added: dict[bool, list[Path]] = {True: [], False: []}
        names = names_in(path) if kind in ("own", "user", "base") else []
        for name in (each for each in names if each.endswith(".pth")):
            text = text_or_none(path / name) or ""
            for line in (each.strip() for each in text.splitlines()):
                folder = Path(f"{root}{line}") if line.startswith("/") else path / line
                if line and not line.startswith(("#", "import ", "import\t")) and is_folder(folder):
                    added["__egginsert" in text].append(folder)
        real = os.path.realpath(path)
        for folder in (*added[True], path, *added[False]):
            place = os.path.realpath(folder)
            if folder == path:
                yield path, kind
            elif place != real and place not in known:
                yield folder, kind if folder.suffix == ".egg" and is_below(place, real) else "added"
            known.add(place)


def _user_site(interpreter: EnvironmentPython, environ: Mapping[str, str]) -> Path | None:
    """Return the user's own folder of packages, where Python would look into it."""
    home, series = environ.get("HOME", ""), interpreter.series
    if environ.get("PYTHONNOUSERSITE") or series is None:
        return None
    base = environ.get("PYTHONUSERBASE") or (f"{home}/.local" if home.startswith("/") else "")
    return Path(base, "lib", f"python{series}", "site-packages") if base.startswith("/") else None


def _base_folders(home: Path, interpreter: EnvironmentPython) -> Iterator[Path]:
    """Yield the folders of packages of a Python, by the folder of its program."""
    if interpreter.series is None:
        return
    prefix, name = home.parent, f"python{interpreter.series}"
    # Debian's own: dist-packages, those of all Python 3 together.
    debian = ("local/lib", name, "dist-packages"), ("lib", "python3", "dist-packages")
    places = [("lib", name, "site-packages"), ("lib64", name, "site-packages"), *debian]
    found = {os.path.realpath(prefix.joinpath(*each)): None for each in places}
    yield from (Path(each) for each in found if is_folder(each))
