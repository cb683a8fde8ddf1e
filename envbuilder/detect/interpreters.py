"""The Pythons of a machine, found on PATH or named by the site, each asked about itself."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version
from pydantic import ValidationError

from ..model.site import Interpreter, Site, Snapshot, StatedModule, SystemComponent
from .asking import ENDING, WORKERS, Answer, clean, together
from .host import Host, arch_name, is_file, runs
from .system import system_components

# Seconds an interpreter gets to answer: a cold one on a parallel file system needs several.
PYTHON_PATIENCE = 10.0

# Virtualenvs made from virtualenvs, at most this many deep.
NESTED = 4

# Seconds for a look at everything. Each program has its own limit, which ends it long before.
_ALTOGETHER = 600.0

_NAME = re.compile(r"^python(3(\.\d+)?)?$")

# Asked with -I -S -B: no user folder, no site customisation, nothing written. zlib and ssl are
# imported, not only looked for: they are compiled and fail where their library has gone.
QUESTION = """
import importlib.util, json, os, sys
def found(name):
    try:
        return importlib.util.find_spec(name) is not None
    except Exception:
        return False
def loads(name):
    try:
        __import__(name)
        return True
    except Exception:
        return False
v = sys.version_info
print(json.dumps({
    "executable": sys.executable,
    "version": "%d.%d.%d" % v[:3],
    "stage": [v[3], v[4]],
    "implementation": sys.implementation.name,
    "multiarch": getattr(sys.implementation, "_multiarch", ""),
    "machine": os.uname()[4],
    "wide": sys.maxsize > 2**32,
    "venv": found("venv") and found("ensurepip") and loads("zlib"),
    "ssl": loads("_ssl"),
}))
"""


@dataclass(frozen=True)
class Detected:
    """A snapshot, and what was skipped or is odd, in words."""

    snapshot: Snapshot
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Asked:
    """One interpreter: what it is, or why it cannot be used; and what else to tell."""

    interpreter: Interpreter | None
    notes: tuple[str, ...] = ()


def glibc_version() -> str | None:
    """Return the version of the C library that programs get here, None if it is not glibc."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (OSError, ValueError):
        return None
    return version if name == "glibc" and version else None


def snapshot(
    site: Site,
    environ: Mapping[str, str],
    cwd: Path | None = None,
    patience: float = PYTHON_PATIENCE,
    components: Collection[str] | None = None,
) -> Detected:
    """Look at the machine as *site* says: its interpreters, the modules that the site states.

    Where the site has the origin ``system``, also at what else the machine has; *components*: of
    these only (canonical names); None: of all. Starts each program for at most *patience* seconds;
    writes nothing and never raises for what it finds: what is broken is skipped and named in the
    notes.
    """
    wanted = components if "system" in site.origins else ()
    return look_at(Host(environ, cwd, patience=patience), site.pythons, site.modules, wanted)


@dataclass(frozen=True)
class _Seen:
    """What one of the looks that are taken at the same time found."""

    interpreters: tuple[Interpreter, ...] = ()
    system: tuple[SystemComponent, ...] = ()
    notes: tuple[str, ...] = ()


def look_at(
    host: Host,
    pythons: Sequence[str] = (),
    modules: Sequence[StatedModule] = (),
    components: Collection[str] | None = (),
    taken: Sequence[str] = (),
) -> Detected:
    """Return the snapshot of *host* with these modules; no *pythons* given: those on PATH.

    *components*: the system's components to look for; None: all of them. *taken*: folders of
    modules, whose programs are not the system's, beside the homes of *modules*.
    """
    homes = [*taken, *(module.home for module in modules if module.home)]
    looks = [
        lambda: _interpreters(host, pythons, modules),
        lambda: _Seen(system=system_components(host, components, homes)),
    ]
    late = _Seen(notes=("the machine was not looked at as a whole: no end in time",))
    seen = [each or late for each in together(looks, _ALTOGETHER)]
    notes = [note for each in seen for note in each.notes]
    return Detected(
        Snapshot(
            interpreters=tuple(one for each in seen for one in each.interpreters),
            system=tuple(one for each in seen for one in each.system),
            modules=tuple(modules),
            glibc=glibc_version(),
        ),
        tuple(dict.fromkeys(notes)),
    )


def _interpreters(host: Host, pythons: Sequence[str], modules: Sequence[StatedModule]) -> _Seen:
    """Return the interpreters of the modules and the others, the newest first."""
    of_modules, notes = _of_modules(host, modules)
    claimed = {os.path.realpath(interpreter.path) for interpreter in of_modules}
    found = {interpreter.path: interpreter for interpreter in of_modules}
    if not pythons:
        notes += host.path.notes
    for _, asked in _ask_all(host, pythons or on_path(host)):
        notes += asked.notes
        interpreter = asked.interpreter
        # A module's interpreter needs its module: it must not pass for the system's.
        if interpreter is not None and interpreter.path not in claimed:
            found.setdefault(interpreter.path, interpreter)
    by_path = sorted(found.values(), key=lambda interpreter: interpreter.path)
    return _Seen(
        interpreters=tuple(sorted(by_path, key=_version, reverse=True)), notes=tuple(notes)
    )


def _of_modules(host: Host, modules: Sequence[StatedModule]) -> tuple[list[Interpreter], list[str]]:
    """Ask the interpreters that stated modules name, where they exist on this machine.

    They keep the path that the site gives them, for that is how the module is known.
    """
    stated = {m.python: m for m in modules if m.python is not None and is_file(m.python)}
    interpreters: list[Interpreter] = []
    notes: list[str] = []
    for paths, asked in _ask_all(host, list(stated)):
        notes += asked.notes
        if asked.interpreter is None:
            continue
        actual = asked.interpreter.version
        for path in paths:
            interpreters.append(asked.interpreter.model_copy(update={"path": path}))
            said = stated[path].provides.get("python")
            if said is None or not f"{actual}.".startswith(f"{said}."):
                notes.append(
                    f"module {stated[path].name} is stated to provide python {said}, "
                    f"but {path} is {actual}: the statement is used"
                )
    return interpreters, notes


def on_path(host: Host) -> list[str]:
    """Return every python, python3 and python3.N on PATH, sorted within each folder."""
    found = []
    for folder in host.path.folders:
        try:
            names = sorted(p.name for p in Path(folder).iterdir() if _NAME.match(p.name))
        except OSError:
            continue
        for name in names:
            path = f"{folder.rstrip('/')}/{name}"
            if runs(path):
                found.append(path)
    return found


def _version(interpreter: Interpreter) -> Version:
    try:
        return Version(interpreter.version)
    except InvalidVersion:
        return Version("0")


def _command(path: str) -> str:
    """Return what to start for *path*: the real program behind its links, where that is a Python.

    A link to something else (the one program behind all shims of mise or snap) must be started by
    its own name.
    """
    real = os.path.realpath(path)
    return real if re.match(r"^python[0-9.]*$", Path(real).name) else path


def _ask_all(host: Host, paths: Sequence[str]) -> list[tuple[list[str], _Asked]]:
    """Ask the program behind each path, each once; return it with all the paths that lead to it."""
    sources: dict[str, list[str]] = {}
    for path in paths:
        sources.setdefault(_command(path), []).append(path)
    jobs = [partial(_ask_one, host, command, first[0]) for command, first in sources.items()]
    rounds = -(-len(jobs) // WORKERS)
    answers = together(jobs, rounds * 2 * (host.patience + ENDING))
    return [
        (names, asked or _Asked(None, (f"skipped {clean(names[0], 200)}: no answer in time",)))
        for names, asked in zip(sources.values(), answers, strict=True)
    ]


def _ask_one(host: Host, command: str, shown: str) -> _Asked:
    """Ask *command* and, where it belongs to a virtualenv, the interpreter that made it."""
    for _ in range(NESTED):
        answer = host.ask(command, "-I", "-S", "-B", "-c", QUESTION)
        facts = _facts(answer)
        if facts is None:
            return _Asked(None, (f"skipped {clean(shown, 200)}: {_trouble(answer)}",))
        executable = str(facts.get("executable") or command)
        if _configuration(executable) is None:
            return _interpreter(facts, executable)
        base = _base(executable, str(facts["version"]))
        if base is None:
            return _Asked(
                None,
                (f"skipped {clean(shown, 200)}: a virtualenv whose base interpreter is gone",),
            )
        command = base
    return _Asked(None, (f"skipped {clean(shown, 200)}: virtualenvs nested too deeply",))


def _facts(answer: Answer) -> dict[str, Any] | None:
    """Return what the interpreter said. A wrapper script may print a greeting before it."""
    if answer.trouble is not None:
        return None
    for line in reversed(answer.stdout.splitlines()):
        try:
            facts = json.loads(line)
        except ValueError:
            continue
        if isinstance(facts, dict) and isinstance(facts.get("version"), str):
            return facts
    return None


def _trouble(answer: Answer) -> str:
    if answer.trouble is None:
        return "it is no Python: its answer makes no sense"
    if "Unknown option: -I" in answer.stderr:
        return "a Python 2"
    elsewhere = re.search(r"exists in these Python versions:\s+((?:\S+\s+)+?)\s*\n", answer.stderr)
    if elsewhere:
        versions = " ".join(elsewhere.group(1).split())
        return (
            f"pyenv has it in {versions}, which is not active "
            "(choose it with PYENV_VERSION, or name its path under pythons in a site file)"
        )
    return answer.trouble


def _interpreter(facts: Mapping[str, Any], executable: str) -> _Asked:
    real = os.path.realpath(executable)
    shown = clean(real, 200)
    if facts.get("implementation") != "cpython":
        return _Asked(None, (f"skipped {shown}: {facts.get('implementation')}, not CPython",))
    try:
        interpreter = Interpreter(
            path=real,
            version=f"{facts['version']}{_stage(facts)}",
            arch=_arch(facts),
            can_make_venv=bool(facts.get("venv")),
        )
    except ValidationError:
        return _Asked(None, (f"skipped {shown}: its path or version has odd characters",))
    notes = () if facts.get("ssl") else (f"{shown} has no ssl: pip cannot fetch with it",)
    return _Asked(interpreter, notes)


def _stage(facts: Mapping[str, Any]) -> str:
    """Return the end of a pre-release's version, such as rc1; empty for a release."""
    level, serial = facts.get("stage") or ("final", 0)
    short = {"alpha": "a", "beta": "b", "candidate": "rc"}.get(level)
    return f"{short}{serial}" if short else ""


def _arch(facts: Mapping[str, Any]) -> str:
    """Return what the interpreter was built for; the kernel's word where it does not say."""
    built_for = str(facts.get("multiarch") or "").split("-")[0]
    machine = arch_name(built_for or str(facts.get("machine")))
    return machine if facts.get("wide") else f"{machine} (32 bit)"


def _configuration(executable: str) -> dict[str, str] | None:
    """Return the pyvenv.cfg that makes *executable* part of a virtualenv, None: there is none."""
    folder = Path(executable).parent
    for place in (folder / "pyvenv.cfg", folder.parent / "pyvenv.cfg"):
        try:
            text = place.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
        return {key.strip().lower(): value.strip() for key, _, value in pairs}
    return None


def _base(executable: str, version: str) -> str | None:
    """Return the interpreter that a virtualenv was made from, None when it is gone."""
    configuration = _configuration(executable) or {}
    home = configuration.get("home", "")
    short = ".".join(version.split(".")[:2])
    candidates = [
        f"{home}/python{short}",
        f"{home}/{Path(executable).name}",
        configuration.get("executable", ""),
        configuration.get("base-executable", ""),
        f"{home}/python3",
    ]
    return next((path for path in candidates if path.startswith("/") and runs(path)), None)
