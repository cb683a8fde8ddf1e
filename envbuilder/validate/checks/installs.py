"""Installations that did not end, and what remains of earlier ones."""

from __future__ import annotations

import ast
import os
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import decode_source
from pathlib import Path

from ...inspect.facts import (
    DEBIAN,
    OWN,
    Environment,
    Installed,
    InstalledDistribution,
    PackageFolder,
    arch_of,
    normal,
    state_of,
)
from ...inspect.observation import seen
from ...inspect.origins import editable_folder
from ...machine.host import is_file, is_folder, is_there, names_in
from ...target_tools.distributions import ENDINGS
from ...target_tools.elf import ElfError, machine_words, read_library
from ...target_tools.files import is_elf, open_regular, read_regular, text_or_none
from .files import SLACK, owners, package_folders, written_at
from .protocol import Outcome, Undecided, Violation, checks

# Installers that write a RECORD; distributors remove it, and say so in INSTALLER or remove both.
_WITH_RECORD = ("", "pip", "uv")
_MAPPING = re.compile(r"^MAPPING(?:: [^=]+)? = (\{.*\})$", re.MULTILINE)
_IMPORT = re.compile(
    r"^(?:import pkg_resources|from pkg_resources[ .]|__import__\(.pkg_resources)", re.MULTILINE
)
_MODULE = re.compile(r"[^/]+(/[^/]+)?\.py")
_PTH_MODULE = re.compile(rb"^import[ \t]+(\w*)", re.MULTILINE)


def _own(environment: Environment) -> Iterator[PackageFolder]:
    """Yield the folders that installers other than the system's fill."""
    for folder in environment.folders:
        if folder.kind in OWN and not str(folder.path).endswith(DEBIAN):
            yield folder


def _interrupted(environment: Environment) -> Iterator[Violation]:
    for each in environment.installed:
        if not isinstance(each, InstalledDistribution) or each.path.suffix != ".dist-info":
            continue
        unrecorded = each.recorded is None and not each.problem and is_folder(each.path)
        installer = (text_or_none(each.path / "INSTALLER") or "").strip()
        of_system = str(each.path.parent).endswith(DEBIAN)
        if unrecorded and not of_system and installer in _WITH_RECORD:
            where = environment.short(each.path)
            yield Violation(
                f"{each} has no RECORD" + ("" if installer else " and no INSTALLER"),
                (seen(where, "RECORD", "missing"),),
            )


def _left_over(environment: Environment) -> Iterator[Violation]:
    """Look for what pip renamed before an upgrade, and for files that no record names."""
    yield from _unrecorded(environment)
    for folder in _own(environment):
        complete = all(each.recorded and not each.problem for each in folder.distributions)
        recorded = {name.partition("/")[0] for name in _recorded(environment, folder)}
        for name in names_in(folder.path):
            path = folder.path / name
            where = environment.short(path)
            if name.startswith("~"):
                summary = f"{where} is of an upgrade or a removal that did not end"
                yield Violation(summary, (seen(where, "folder"),))
            elif name not in recorded and name != "__pycache__" and not name.endswith(ENDINGS):
                contents = _contents(path) if is_folder(path) else None
                if contents == "bytecode":
                    yield Violation(f"{where} has only bytecode", (seen(where, "folder"),))
                elif contents == "package" and complete:
                    summary = f"{where} is recorded by no installed package"
                    yield Violation(summary, (seen(where, "RECORD", "no"),), severity="info")


def _unrecorded(environment: Environment) -> Iterator[Violation]:
    """Look for modules in the folder of one package that are older than its record, and not in it.

    What a program of it wrote there is newer.
    """
    own = {f"{folder.path}/" for folder in _own(environment)}
    recorded = {
        normal(str(folder.path), name)
        for folder in environment.folders
        for name in _recorded(environment, folder)
    }
    found: dict[Installed, list[str]] = defaultdict(list)
    for folder, (package, names) in package_folders(environment).items():
        if package and f"{folder}/" not in own and any(map(folder.startswith, own)):
            paths = (f"{folder}/{name}" for name in names if name.endswith((".py", ".so")))
            rest = [path for path in paths if path not in recorded]
            limit = written_at(package) - SLACK if rest else 0
            old = [path for path in rest if (s := state_of(path)) and s.st_mtime_ns < limit]
            found[package] += map(environment.short, old)
    for package, files in found.items():
        places = tuple(seen(path, "RECORD", "not in it, and older") for path in files)
        for path in files[:1]:
            summary = f"{path} is older than {package}, and not in its record"
            yield Violation(summary, places, confidence="likely", fix=f"remove {path}")


def _recorded(environment: Environment, folder: PackageFolder) -> Iterator[str]:
    """Yield the files below a folder of packages that records name, relative to it."""
    start = f"{folder.path}/"
    for each in folder.distributions:
        yield from each.recorded or ()
        yield from (text_or_none(each.path / "top_level.txt") or "").split()
    for package in environment.conda:
        yield from (f.path[len(start) :] for f in package.files if f.path.startswith(start))


def _contents(folder: Path) -> str | None:
    """Return what a folder has: a package, bytecode alone, or None for anything else."""
    if is_file(folder / "__init__.py"):
        return "package"
    names = [name for _, _, files in os.walk(folder) for name in files]
    return "bytecode" if names and all(name.endswith(".pyc") for name in names) else None


def _editable_gone(environment: Environment) -> Iterator[Violation]:
    """Look at the folders that .pth and .egg-link files, editable installs and finders name."""
    for folder in _own(environment):
        named: dict[str, str] = {}
        for each in folder.distributions:
            if source := editable_folder(each):
                named.setdefault(source, environment.short(each.path / "direct_url.json"))
        for name in names_in(folder.path):
            for source in _linked(folder.path / name):
                named.setdefault(source, environment.short(folder.path / name))
        for source, where in named.items():
            if not is_there(environment.real(f"{environment.root}{source}")):
                yield Violation(
                    f"{where} names {source}, which is missing", (seen(where, "path", source),)
                )


def _linked(path: Path) -> Iterator[str]:
    if path.suffix in (".pth", ".egg-link"):
        lines = (text_or_none(path) or "").splitlines()
        yield from (line.strip() for line in lines if line.startswith("/"))
    elif path.name.startswith("__editable__") and path.name.endswith("_finder.py"):
        found = _MAPPING.search(text_or_none(path) or "")
        try:
            yield from filter(None, map(str, ast.literal_eval(found[1]).values() if found else ()))
        except (ValueError, SyntaxError, AttributeError):
            return


def _other_machine(environment: Environment) -> Iterator[Outcome]:
    """Compare the platforms of wheels, and the programs in bin, with the Python."""
    machine = environment.interpreter.machine
    arch = arch_of(machine)
    if machine is None or arch is None:
        yield Undecided("the architecture of the Python is unknown")
        return
    others = (each for folder, each in environment.found.values() if folder.kind == "added")
    for each in (*environment.distributions, *others):
        platforms = {tag.rpartition("-")[2] for tag in each.tags}
        if platforms and not any(name == "any" or name.endswith(f"_{arch}") for name in platforms):
            where = f"{environment.short(each.path)}/WHEEL"
            yield Violation(
                f"{each} is of a wheel for {min(platforms)}, the Python is for {arch}",
                (seen(where, "Tag", ", ".join(each.tags)),),
            )
    programs = environment.prefix / "bin"
    for name in names_in(programs) if environment.kind != "Python prefix" else ():
        path = programs / name
        if path != environment.interpreter.path and not path.is_symlink() and is_elf(path):
            try:
                other = read_library(str(path)).machine
            except (ElfError, OSError) as error:
                yield Violation(f"bin/{name} is damaged", (seen(f"bin/{name}", "ELF", error),))
                continue
            if other != machine:
                words = machine_words(other)
                yield Violation(f"bin/{name} is for {words}", (seen(f"bin/{name}", "ELF", words),))


def _no_pkg_resources(environment: Environment) -> Iterator[Violation]:
    """Look for modules that import pkg_resources at once, where setuptools has it no longer."""
    if any(is_there(each.path / "pkg_resources") for each in environment.folders):
        return
    for each in environment.distributions:
        names = [name for name in each.recorded or () if _MODULE.fullmatch(name)]
        paths = [each.path.parent / name for name in names if each.key != "setuptools"]
        # package.other-owner reports what this user may not read.
        files = [path for path in paths if os.access(path, os.R_OK)]
        users = [path for path in files if _IMPORT.search(text_or_none(path) or "")]
        if users:
            at_once = any(path.name == "__init__.py" for path in users)
            yield Violation(
                f"{each} imports pkg_resources, which no package contains",
                tuple(seen(environment.short(path), "import", "pkg_resources") for path in users),
                confidence="certain" if at_once else "possible",
                severity=None if at_once else "warning",
            )


def _source_damaged(environment: Environment) -> Iterator[Outcome]:
    """Look at both ends of recorded modules, and compile what Python runs at each start."""
    for package in owners(environment):
        files = [each.path for each in package.files if each.path.endswith(".py")]
        nul = [environment.short(path) for path in files if _has_nul(environment, path)]
        if nul:
            places = tuple(seen(where, "content", "NUL bytes") for where in nul)
            yield Violation(f"{package} has modules with NUL bytes", places)
    major, _, minor = (environment.interpreter.series or "").partition(".")
    if major != "3":
        yield Undecided("the version of the Python is unknown")
        return
    for path in dict.fromkeys(_at_start(environment)):
        where, text = environment.short(path), _content(environment, path)
        if path.suffix == ".pth" and b"\0" not in text:
            text = b"\n".join(line for line in text.splitlines() if _PTH_MODULE.match(line))
        fault = _fault(text, min(int(minor), sys.version_info.minor))
        if fault and int(minor) > sys.version_info.minor and b"\0" not in text:
            yield Undecided("it may have the syntax of a newer Python", where)
        elif fault:
            yield Violation(f"{where} does not compile: {fault}", (seen(where, "source", fault),))


def _has_nul(environment: Environment, path: str) -> bool:
    """Whether the first or last bytes of a module are NUL: all else takes --verify."""
    try:
        with open_regular(environment.real(path) if environment.root else path) as stream:
            begin = stream.read(16)
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - 16))
            return b"\0" in begin + stream.read(16)
    except OSError:
        return False


def _at_start(environment: Environment) -> Iterator[Path]:
    """Yield the files that site runs: the first of each name on the path, .pth, their imports."""
    base = (environment.interpreter.home or environment.prefix / "bin").parent / "lib"
    folders = [each.path for each in environment.folders]
    folders.append(base / f"python{environment.interpreter.series}")
    for name in ("sitecustomize.py", *["usercustomize.py"] * environment.system_packages):
        yield from [folder / name for folder in folders if is_there(folder / name)][:1]
    for each in environment.folders:
        for name in names_in(each.path) if each.kind in ("own", "user", "base") else ():
            if name.endswith(".pth") and not name.startswith("."):
                yield each.path / name
                for module in _PTH_MODULE.findall(_content(environment, each.path / name)):
                    file = each.path / module.decode()
                    yield from filter(is_there, (file.with_suffix(".py"), file / "__init__.py"))


def _content(environment: Environment, path: Path) -> bytes:
    """Return what a file has; none where it cannot be read: its owner is another check's."""
    try:
        return bytes(read_regular(environment.real(str(path))))
    except OSError:
        return b""


def _fault(text: bytes, minor: int) -> str | None:
    """Return why Python 3.*minor* refuses a module."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(decode_source(text), feature_version=(3, max(minor, 7)))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return str(error)
    return None


CHECKS = checks(
    {
        "package.source-damaged": _source_damaged,
        "package.interrupted": _interrupted,
        "package.left-over": _left_over,
        "package.editable-gone": _editable_gone,
        "package.other-machine": _other_machine,
        "package.pkg-resources-missing": _no_pkg_resources,
    }
)
