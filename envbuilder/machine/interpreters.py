"""The Pythons of a machine, found on PATH or named by the site, each asked about itself."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version
from pydantic import ValidationError

from ..model.site import Interpreter, StatedModule
from ..target_tools.files import parse_json
from ..target_tools.messages import one_line
from .host import (
    ENDING,
    WORKERS,
    LocalMachine,
    ProgramOutput,
    arch_name,
    is_file,
    is_folder,
    names_in,
    runs,
    text_of,
    together,
)

# pyenv's shims are looked through without starting them. A shim is a script that asks pyenv for the
# chosen versions and starts the program of the first one that has it. Source: ``pyenv-rehash`` (the
# script), ``pyenv-version-name``, ``pyenv-version-file``, ``pyenv-version-file-read``,
# ``pyenv-prefix`` and ``pyenv-which`` of pyenv 2.4.

# What pyenv-rehash writes into each shim.
_ROOT = re.compile(r'^export PYENV_ROOT="([^"$`\\]+)"$', re.MULTILINE)
_EXEC = re.compile(r'^exec "[^"]*pyenv" exec "\$program" "\$@"$', re.MULTILINE)


class NotActiveError(Exception):
    """The shim's program is in no chosen version; the text says which versions have it."""


def root_of_shim(path: str) -> Path | None:
    """Return the pyenv that a shim belongs to, None where *path* is no shim of pyenv."""
    if Path(path).parent.name != "shims":
        return None
    text = text_of(Path(path)) or ""
    root = _ROOT.search(text)
    return Path(root[1]) if root is not None and _EXEC.search(text) else None


def behind_shim(path: str, host: LocalMachine) -> str | None:
    """Return the program that a shim starts; *path* itself where it is no shim of pyenv.

    None where the program is the system's: it is on PATH behind the shims. Raises NotActiveError
    where no chosen version has it, nor the system.
    """
    root = root_of_shim(path)
    if root is None:
        return path
    name = Path(path).name
    for version in _chosen(root, host):
        if version == "system":
            break
        folder = _prefix(root / "versions", version)
        program = f"{folder}/bin/{name}"
        if folder and runs(program):
            return program
    if any(root_of_shim(each) is None for each in host.every(name)):
        return None
    kept = sorted(names_in(root / "versions"), key=_order)
    raise NotActiveError(
        " ".join(each for each in kept if runs(f"{root}/versions/{each}/bin/{name}"))
    )


def _chosen(root: Path, host: LocalMachine) -> Iterator[str]:
    """Yield the chosen versions: PYENV_VERSION, else the nearest file's, else the user's."""
    stated = host.environ.get("PYENV_VERSION")
    if stated:
        yield from stated.split(":")
        return
    here = host.cwd or Path.cwd()
    begins = dict.fromkeys((Path(host.environ.get("PYENV_DIR") or here), here))
    files = (folder / ".python-version" for each in begins for folder in (each, *each.parents))
    text = next((found for file in files if (found := text_of(file)) is not None), None)
    for line in (text if text is not None else text_of(root / "version") or "").splitlines():
        word = next(iter(line.split()), "")
        if word and not word.startswith("#"):
            yield word


def _prefix(versions: Path, version: str) -> str | None:
    """Return the folder of a version, or of the newest one that begins with it (pyenv-latest)."""
    for each in dict.fromkeys((version, version.removeprefix("python-"))):
        if "/" in each or each == "..":
            continue
        if is_folder(versions / each):
            return str(versions / each)
        newest = [
            name for name in names_in(versions) if re.match(rf"{re.escape(each)}(\.\d+)*$", name)
        ]
        if newest and is_folder(folder := versions / max(newest, key=_order)):
            return str(folder)
    return None


def _order(version: str) -> list[int]:
    """Return what sorts 3.10.1 behind 3.9.18."""
    return [int(digits) for digits in re.findall(r"\d+", version)]


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


class _UnusableError(Exception):
    """Why an interpreter is skipped."""


def find_interpreters(
    host: LocalMachine, pythons: Sequence[str], modules: Sequence[StatedModule]
) -> tuple[tuple[Interpreter, ...], tuple[str, ...]]:
    """Return the interpreters of a machine, the newest first, and what was skipped or is odd.

    Those that the modules name and the others; no *pythons*: those on PATH. Starts each program,
    for at most the host's patience; writes nothing and never raises for what it finds: what is
    broken is skipped and named in the notes.
    """
    notes: list[str] = []
    of_modules = list(_of_modules(host, modules, notes))
    claimed = {os.path.realpath(interpreter.path) for interpreter in of_modules}
    by_path = {interpreter.path: interpreter for interpreter in of_modules}
    if not pythons:
        notes += host.path.notes
    for _, interpreter in _ask_all(host, pythons or on_path(host), notes):
        # A module's interpreter needs its module: it must not pass for the system's.
        if interpreter.path not in claimed:
            by_path.setdefault(interpreter.path, interpreter)
    ordered = sorted(by_path.values(), key=lambda interpreter: interpreter.path)
    return tuple(sorted(ordered, key=version_of, reverse=True)), tuple(notes)


def _of_modules(
    host: LocalMachine, modules: Sequence[StatedModule], notes: list[str]
) -> Iterator[Interpreter]:
    """Ask the interpreters that stated modules name, where they exist on this machine.

    They keep the path that the site gives them, for that is how the module is known.
    """
    stated = {m.python: m for m in modules if m.python is not None and is_file(m.python)}
    for paths, interpreter in _ask_all(host, list(stated), notes):
        for path in paths:
            yield interpreter.model_copy(update={"path": path})
            version = stated[path].provides.get("python")
            if version is None or not f"{interpreter.version}.".startswith(f"{version}."):
                notes.append(
                    f"module {stated[path].name} is stated to provide python {version}, "
                    f"but {path} is {interpreter.version}: using the statement"
                )


def on_path(host: LocalMachine) -> list[str]:
    """Return every python, python3 and python3.N on PATH, sorted within each folder."""
    return [
        path
        for folder in host.path.folders
        for name in names_in(folder)
        if _NAME.match(name) and runs(path := f"{folder.rstrip('/')}/{name}")
    ]


def version_of(interpreter: Interpreter) -> Version:
    """Return an interpreter's version; 0 for what is none."""
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


def _ask_all(
    host: LocalMachine, paths: Sequence[str], notes: list[str]
) -> Iterator[tuple[list[str], Interpreter]]:
    """Ask the program behind each path, each once; yield it with all the paths that lead to it.

    What is skipped or odd is put to *notes*.
    """
    sources: dict[str, list[str]] = {}
    for path in paths:
        try:
            behind = behind_shim(path, host)
        except NotActiveError as error:
            notes.append(f"skipped {one_line(path, 200)}: {_not_active(str(error))}")
            continue
        # What a shim leaves to the system is on PATH itself.
        if behind is not None:
            sources.setdefault(_command(behind), []).append(path)
    jobs = [partial(_ask_one, host, command, first[0]) for command, first in sources.items()]
    rounds = -(-len(jobs) // WORKERS)
    answers = together(jobs, rounds * 2 * (host.patience + ENDING))
    for names, answer in zip(sources.values(), answers, strict=True):
        interpreter, note = answer or (
            None,
            f"skipped {one_line(names[0], 200)}: no answer in time",
        )
        notes += [note] if note else []
        if interpreter is not None:
            yield names, interpreter


def _ask_one(host: LocalMachine, command: str, shown: str) -> tuple[Interpreter | None, str | None]:
    """Ask *command* and, where it belongs to a virtualenv, the interpreter that made it.

    Return what it is, None where it cannot be used, and what else to tell.
    """
    reason = "virtualenvs nested too deeply"
    try:
        for _ in range(NESTED):
            facts = _facts(host.ask(command, "-I", "-S", "-B", "-c", QUESTION))
            executable = str(facts.get("executable") or command)
            configuration = _configuration(executable)
            if configuration is None:
                shown = os.path.realpath(executable)
                return _interpreter(facts, shown), _without_ssl(facts, shown)
            command = _base(configuration, executable, str(facts["version"]))
    except _UnusableError as error:
        reason = str(error)
    return None, f"skipped {one_line(shown, 200)}: {reason}"


def _facts(answer: ProgramOutput) -> dict[str, Any]:
    """Return what the interpreter said. A wrapper script may print a greeting before it."""
    for line in reversed(answer.stdout.splitlines() if answer.trouble is None else ()):
        with contextlib.suppress(ValueError):
            facts = parse_json(line)
            if isinstance(facts, dict) and isinstance(facts.get("version"), str):
                return facts
    raise _UnusableError(_trouble(answer))


def _trouble(answer: ProgramOutput) -> str:
    if answer.trouble is None:
        return "not a Python: its answer is malformed"
    if "Unknown option: -I" in answer.stderr:
        return "a Python 2"
    elsewhere = re.search(r"exists in these Python versions:\s+((?:\S+\s+)+?)\s*\n", answer.stderr)
    if elsewhere:
        return _not_active(" ".join(elsewhere.group(1).split()))
    return answer.trouble


def _not_active(versions: str) -> str:
    return (
        f"pyenv has it in {versions}, which is not active "
        "(choose it with PYENV_VERSION, or name its path under pythons in a site file)"
    )


def _interpreter(facts: Mapping[str, Any], path: str) -> Interpreter:
    if facts.get("implementation") != "cpython":
        raise _UnusableError(f"{facts.get('implementation')}, not CPython")
    try:
        return Interpreter(
            path=path,
            version=f"{facts['version']}{_stage(facts)}",
            arch=_arch(facts),
            can_make_venv=bool(facts.get("venv")),
        )
    except ValidationError:
        raise _UnusableError("its path or version has unsupported characters") from None


def _without_ssl(facts: Mapping[str, Any], path: str) -> str | None:
    return (
        None if facts.get("ssl") else f"{one_line(path, 200)} has no ssl: pip cannot fetch with it"
    )


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
        text = text_of(place)
        if text is not None:
            pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
            return {key.strip().lower(): value.strip() for key, _, value in pairs}
    return None


def _base(configuration: Mapping[str, str], executable: str, version: str) -> str:
    """Return the interpreter that a virtualenv was made from."""
    home = configuration.get("home", "")
    candidates = [
        f"{home}/python{'.'.join(version.split('.')[:2])}",
        f"{home}/{Path(executable).name}",
        configuration.get("executable", ""),
        configuration.get("base-executable", ""),
        f"{home}/python3",
    ]
    for path in candidates:
        if path.startswith("/") and runs(path):
            return path
    raise _UnusableError("a virtualenv whose base interpreter is missing")
