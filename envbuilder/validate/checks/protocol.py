"""What a check is, and what it hands back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import yaml

from ...base import LONGEST_COMMAND
from ...data import VALIDATE_CHECKS
from ...documents.yaml_nodes import LOADER
from ...inspect.facts import Environment
from ...inspect.observation import line, seen
from ...knowledge.symptoms import Confidence
from ...knowledge.terms import Severity
from ...model.validation import CheckInfo, Finding, Observation
from ...target_tools.messages import one_line

NOT_SEARCHED = "libraries are searched only on a machine of their architecture"

# So many places are named; of more, their number.
MOST_EVIDENCE = 8


class Violation(NamedTuple):
    """One thing that a check found. Where None is given it is as the check has it."""

    summary: str
    evidence: tuple[Observation, ...]
    confidence: Confidence = "certain"
    severity: Severity | None = None
    fix: str | None = None


class Undecided(NamedTuple):
    """What a check cannot decide: it lacks a fact. *about*: a package, file or requirement.

    With *about* None the check looked at nothing.
    """

    reason: str
    about: str | None = None


Outcome = Violation | Undecided
"""A check never passes because a fact is missing: it yields what it could not decide."""


@dataclass(frozen=True)
class Check:
    """A kind of finding, and the function that looks for it. It may want files hashed."""

    info: CheckInfo
    look: Callable[[Environment, bool], Iterator[Outcome]]


INFOS = {
    name: CheckInfo(id=name, **row)
    for name, row in yaml.load(VALIDATE_CHECKS.read_text("utf-8"), LOADER).items()  # noqa: S506
}
"""Every kind of finding by its id, in the order in which they are listed."""


def checks(
    looks: Mapping[str, Callable[[Environment], Iterator[Outcome]]],
    hashing: Mapping[str, Callable[[Environment, bool], Iterator[Outcome]]] = MappingProxyType({}),
) -> tuple[Check, ...]:
    """Return the checks of a topic, by their ids; *hashing*: those that may want files hashed."""
    plain = (Check(INFOS[name], partial(_without_hashes, look)) for name, look in looks.items())
    return (*plain, *(Check(INFOS[name], look) for name, look in hashing.items()))


def _without_hashes(
    look: Callable[[Environment], Iterator[Outcome]], environment: Environment, _: bool
) -> Iterator[Outcome]:
    return look(environment)


def told(info: CheckInfo, found: Violation) -> Finding:
    """Return what is told of one thing that was found."""
    evidence = found.evidence[:MOST_EVIDENCE]
    if len(found.evidence) > MOST_EVIDENCE:
        evidence += (seen("...", f"{len(found.evidence) - MOST_EVIDENCE} more"),)
    return Finding(
        id=info.id,
        severity=found.severity or info.severity,
        confidence=found.confidence,
        summary=one_line(line(found.summary)),
        evidence=evidence,
        why=info.why,
        fix=one_line(line(found.fix, LONGEST_COMMAND), LONGEST_COMMAND) if found.fix else info.fix,
        source=info.source,
    )
