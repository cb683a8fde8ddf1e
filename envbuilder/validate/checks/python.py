"""The interpreter of an environment."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

from ...inspect.facts import Environment
from ...inspect.observation import seen
from ...machine.host import is_there
from ...target_tools.files import open_regular
from .protocol import Outcome, Undecided, Violation, check

_VENV = "https://docs.python.org/3/library/venv.html"


def _missing(environment: Environment) -> Iterator[Violation]:
    python = environment.interpreter
    if python.real is not None or environment.away:
        return
    where = environment.short(python.path)
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
    if python.series != python.real_series:
        where = environment.short(python.path)
        yield Violation(
            f"its packages are for Python {python.series}, {where} is Python {python.real_series}",
            (seen(where, "link", python.real), seen(f"lib/python{python.series}", "folder")),
        )


# Of a script that pip or conda wrote; where the path is long or has blanks, sh starts it.
_STARTS = re.compile(
    rb"#!\s*(/[^\n]*?/python[0-9.]*)[\s\n]"
    rb"|#!/bin/sh\n\x27\x27\x27exec\x27 \"?(/[^\n\"]*?/python[0-9.]*)[\" ]"
)
_FIRST_BYTES = 1000
_MOST_SCRIPTS = 2000


def _moved(environment: Environment) -> Iterator[Outcome]:
    """Look for scripts that start a Python of another environment, or one that is gone."""
    if environment.kind == "Python prefix":
        return
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
        if python and lies and os.path.realpath(lies.parent) != own:
            elsewhere.setdefault(python, []).append(environment.short(script))
    for python, names in elsewhere.items():
        lies = Path(f"{environment.root}{python}")
        gone = not os.path.lexists(lies) if environment.root else not is_there(python)
        # A system's Python that a package names on purpose is none of another environment.
        if gone or is_there(lies.parent.parent / "pyvenv.cfg"):
            which = "which is gone" if gone else "of another environment"
            yield Violation(
                f"{len(names)} of its scripts start {python}, {which}",
                tuple(seen(name, "#!", python) for name in names),
                severity="error" if gone else None,
            )


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


CHECKS = (
    check(
        _missing,
        id="python.missing",
        layer="interpreter",
        faults=("missing", "another owner"),
        severity="error",
        title="the interpreter of the environment is missing or not accessible to this user",
        why="no program of it starts; often its base Python was removed or upgraded, or is in a "
        "home folder that other users cannot enter",
        fix="make a new environment with a permanent Python; python -m venv --upgrade repairs the "
        "links if the same release is in another folder",
        source=_VENV,
    ),
    check(
        _other_version,
        id="python.other-version",
        layer="interpreter",
        faults=("another release",),
        severity="error",
        title="the interpreter has another series than the packages",
        why="Python searches lib/pythonX.Y of its own series and finds none of the packages",
        fix="make a new environment with the present Python",
        source=_VENV,
    ),
    check(
        _moved,
        id="python.moved",
        layer="interpreter",
        faults=("left over",),
        severity="warning",
        title="scripts of the environment start a Python in another folder",
        why="the environment was moved or copied: pip and other scripts use the other folder, or "
        "do not start",
        fix="make a new environment in this folder; until then, use python -m pip instead of pip",
        source="https://docs.python.org/3/library/venv.html#how-venvs-work",
    ),
)
