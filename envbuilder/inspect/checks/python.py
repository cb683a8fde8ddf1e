"""The interpreter of an environment."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..facts import Environment
from .protocol import Violation, check, seen

_VENV = "https://docs.python.org/3/library/venv.html"


def _missing(environment: Environment) -> Iterator[Violation]:
    python = environment.interpreter
    if python.real is not None:
        return
    where = environment.short(python.path)
    try:
        target = os.readlink(python.path)  # noqa: PTH115 - text, as it is written
    except OSError:
        yield Violation(f"{where} is missing", (seen(where, "file", "missing"),))
        return
    yield Violation(f"{where} leads nowhere: {target}", (seen(where, "link", target),))


def _other_version(environment: Environment) -> Iterator[Violation]:
    python = environment.interpreter
    if not (python.real and python.series and python.real_series):
        return
    if python.series != python.real_series:
        where = environment.short(python.path)
        yield Violation(
            f"its packages are for Python {python.series}, {where} is Python {python.real_series}",
            (seen(where, "link", python.real), seen(f"lib/python{python.series}", "folder")),
        )


CHECKS = (
    check(
        _missing,
        id="python.missing",
        severity="error",
        title="the interpreter of the environment is gone",
        why="nothing starts in it; often the Python that it was made with was removed or upgraded",
        fix="make the environment anew with a Python that stays; python -m venv --upgrade mends "
        "links where the same release is at another place",
        source=_VENV,
    ),
    check(
        _other_version,
        id="python.other-version",
        severity="error",
        title="the interpreter is of another series than the packages",
        why="Python looks into lib/pythonX.Y of its own series and finds none of the packages",
        fix="make the environment anew with the Python that is there now",
        source=_VENV,
    ),
)
