"""What ``validate`` looks for: a table of checks, each a function over what was read.

Adding one is a function and a row of ``CHECKS`` in the module of its topic.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...inspect.facts import Environment
from ...model.validation import CheckInfo, Finding
from . import (
    conda,
    file_systems,
    files,
    libraries,
    mpi,
    paths,
    python,
    requirements,
    shell,
    together,
)
from .protocol import Check, told

CHECKS: tuple[Check, ...] = (
    *python.CHECKS,
    *requirements.CHECKS,
    *files.CHECKS,
    *conda.CHECKS,
    *libraries.CHECKS,
    *mpi.CHECKS,
    *together.CHECKS,
    *paths.CHECKS,
    *file_systems.CHECKS,
    *shell.CHECKS,
)


def run(environment: Environment, *, hashes: bool = False) -> Iterator[Finding]:
    """Yield what every check finds. *hashes*: every recorded file is hashed."""
    for check in CHECKS:
        for each in check.look(environment, hashes):
            yield told(check.info, each)


def table() -> tuple[CheckInfo, ...]:
    """Return all checks, as they are listed."""
    return tuple(each.info for each in CHECKS)
