"""The Pythons of a machine, found on PATH or named by the site, each asked about itself."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version
from pydantic import ValidationError

from ..host import (
    ENDING,
    WORKERS,
    Host,
    ProgramOutput,
    arch_name,
    clean,
    is_file,
    runs,
    together,
)
from ..model.site import Interpreter, StatedModule

# Virtualenvs made from virtualenvs, at most this many deep.
NESTED = 4

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
class InterpreterSearch:
    """The interpreters of a machine, the newest first, and what was skipped or is odd, in words."""

    interpreters: tuple[Interpreter, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _InterpreterProbe:
    """One interpreter: what it is, or why it cannot be used; and what else to tell."""

    interpreter: Interpreter | None
    notes: tuple[str, ...] = ()


def find_interpreters(
    host: Host, pythons: Sequence[str], modules: Sequence[StatedModule]
) -> InterpreterSearch:
    """Return the interpreters that the modules name and the others; no *pythons*: those on PATH.

    Starts each program, for at most the host's patience; writes nothing and never raises for what
    it finds: what is broken is skipped and named in the notes.
    """
    of_modules, notes = _of_modules(host, modules)
    claimed = {os.path.realpath(interpreter.path) for interpreter in of_modules}
    by_path = {interpreter.path: interpreter for interpreter in of_modules}
    if not pythons:
        notes += host.path.notes
    for _, result in _ask_all(host, pythons or on_path(host)):
        notes += result.notes
        interpreter = result.interpreter
        # A module's interpreter needs its module: it must not pass for the system's.
        if interpreter is not None and interpreter.path not in claimed:
            by_path.setdefault(interpreter.path, interpreter)
    ordered = sorted(by_path.values(), key=lambda interpreter: interpreter.path)
    return InterpreterSearch(
        interpreters=tuple(sorted(ordered, key=_version, reverse=True)), notes=tuple(notes)
    )


def _of_modules(host: Host, modules: Sequence[StatedModule]) -> tuple[list[Interpreter], list[str]]:
    """Ask the interpreters that stated modules name, where they exist on this machine.

    They keep the path that the site gives them, for that is how the module is known.
    """
    stated = {m.python: m for m in modules if m.python is not None and is_file(m.python)}
    interpreters: list[Interpreter] = []
    notes: list[str] = []
    for paths, result in _ask_all(host, list(stated)):
        notes += result.notes
        if result.interpreter is None:
            continue
        actual = result.interpreter.version
        for path in paths:
            interpreters.append(result.interpreter.model_copy(update={"path": path}))
            version = stated[path].provides.get("python")
            if version is None or not f"{actual}.".startswith(f"{version}."):
                notes.append(
                    f"module {stated[path].name} is stated to provide python {version}, "
                    f"but {path} is {actual}: the statement is used"
                )
    return interpreters, notes


def on_path(host: Host) -> list[str]:
    """Return every python, python3 and python3.N on PATH, sorted within each folder."""
    paths = []
    for folder in host.path.folders:
        try:
            names = sorted(p.name for p in Path(folder).iterdir() if _NAME.match(p.name))
        except OSError:
            continue
        for name in names:
            path = f"{folder.rstrip('/')}/{name}"
            if runs(path):
                paths.append(path)
    return paths


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


def _ask_all(host: Host, paths: Sequence[str]) -> list[tuple[list[str], _InterpreterProbe]]:
    """Ask the program behind each path, each once; return it with all the paths that lead to it."""
    sources: dict[str, list[str]] = {}
    for path in paths:
        sources.setdefault(_command(path), []).append(path)
    jobs = [partial(_ask_one, host, command, first[0]) for command, first in sources.items()]
    rounds = -(-len(jobs) // WORKERS)
    answers = together(jobs, rounds * 2 * (host.patience + ENDING))
    return [
        (
            names,
            result
            or _InterpreterProbe(None, (f"skipped {clean(names[0], 200)}: no answer in time",)),
        )
        for names, result in zip(sources.values(), answers, strict=True)
    ]


def _ask_one(host: Host, command: str, shown: str) -> _InterpreterProbe:
    """Ask *command* and, where it belongs to a virtualenv, the interpreter that made it."""
    for _ in range(NESTED):
        answer = host.ask(command, "-I", "-S", "-B", "-c", QUESTION)
        facts = _facts(answer)
        if facts is None:
            return _InterpreterProbe(None, (f"skipped {clean(shown, 200)}: {_trouble(answer)}",))
        executable = str(facts.get("executable") or command)
        if _configuration(executable) is None:
            return _interpreter(facts, executable)
        base = _base(executable, str(facts["version"]))
        if base is None:
            return _InterpreterProbe(
                None,
                (f"skipped {clean(shown, 200)}: a virtualenv whose base interpreter is gone",),
            )
        command = base
    return _InterpreterProbe(None, (f"skipped {clean(shown, 200)}: virtualenvs nested too deeply",))


def _facts(answer: ProgramOutput) -> dict[str, Any] | None:
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


def _trouble(answer: ProgramOutput) -> str:
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


def _interpreter(facts: Mapping[str, Any], executable: str) -> _InterpreterProbe:
    real = os.path.realpath(executable)
    shown = clean(real, 200)
    if facts.get("implementation") != "cpython":
        return _InterpreterProbe(
            None, (f"skipped {shown}: {facts.get('implementation')}, not CPython",)
        )
    try:
        interpreter = Interpreter(
            path=real,
            version=f"{facts['version']}{_stage(facts)}",
            arch=_arch(facts),
            can_make_venv=bool(facts.get("venv")),
        )
    except ValidationError:
        return _InterpreterProbe(
            None, (f"skipped {shown}: its path or version has odd characters",)
        )
    notes = () if facts.get("ssl") else (f"{shown} has no ssl: pip cannot fetch with it",)
    return _InterpreterProbe(interpreter, notes)


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
