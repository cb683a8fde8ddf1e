"""What ``validate`` looks for: a table of checks, each a function over what was read.

Adding one is a function and a row of ``CHECKS`` in the module of its topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from ...inspect.facts import Environment
from ...inspect.observation import line
from ...model.validation import CheckInfo, Finding, Unchecked
from ...target_tools.messages import one_line
from . import (
    conda,
    file_systems,
    files,
    frameworks,
    installs,
    libraries,
    owners,
    paths,
    python,
    requirements,
    shell,
    together,
    variables,
)
from .protocol import MOST_EVIDENCE, Check, Outcome, Undecided, told

CHECKS: tuple[Check, ...] = (
    *python.CHECKS,
    *requirements.CHECKS,
    *files.CHECKS,
    *installs.CHECKS,
    *owners.CHECKS,
    *conda.CHECKS,
    *libraries.CHECKS,
    *together.CHECKS,
    *paths.CHECKS,
    *file_systems.CHECKS,
    *variables.CHECKS,
    *frameworks.CHECKS,
    *shell.CHECKS,
)


class CheckResults(NamedTuple):
    """What the checks found, and what they could not decide."""

    findings: tuple[Finding, ...]
    unchecked: tuple[Unchecked, ...]


def run(
    environment: Environment,
    others: Iterable[tuple[CheckInfo, Outcome]] = (),
    *,
    hashes: bool = False,
) -> CheckResults:
    """Return what all checks find. *others*: outcomes of others; *hashes*: hash recorded files."""
    findings: list[Finding] = []
    undecided: dict[tuple[str, str], list[str]] = {}
    outcomes = ((check.info, each) for check in CHECKS for each in check.look(environment, hashes))
    for info, each in chain(outcomes, others):
        if isinstance(each, Undecided):
            about = undecided.setdefault((info.id, each.reason), [])
            about += [each.about] if each.about is not None else []
        else:
            findings.append(told(info, each))
    unchecked = (_unchecked(*key, about) for key, about in undecided.items())
    return CheckResults(tuple(findings), tuple(unchecked))


def _unchecked(id_: str, reason: str, about: list[str]) -> Unchecked:
    examples = tuple(one_line(line(each)) for each in about[:MOST_EVIDENCE])
    return Unchecked(id=id_, reason=one_line(line(reason)), examples=examples, number=len(about))
