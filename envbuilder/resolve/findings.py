"""What knowledge says of a finished stack. Evaluated anew, not read off the solver."""

from __future__ import annotations

from collections.abc import Iterator

from ..knowledge.rows import Remedy
from ..model.plan import FindingStatus, PlanFinding
from .pool import describe
from .problem import Rule, Stack
from .problem_builder import ProblemInputs
from .rules import GroundRule

_WEIGHT = {"waived": 0, "lifted": 1, "warning": 2, "unknown": 3, "info": 4}


def findings(
    inputs: ProblemInputs, stack: Stack, *, silent: bool = False
) -> tuple[PlanFinding, ...]:
    """Return all rows that hold or may hold for the stack, the weightiest first.

    *silent*: with those that only decide between what else is equal.
    """
    effective = frozenset(stack.effective)
    flags = frozenset(inputs.problem.flags)
    remedies = dict(stack.violated)
    found = [
        _finding(inputs, each, effective, remedies.get(each.rule.key))
        for each in inputs.grounded
        if (silent or not each.silent) and holds(each, effective, flags)
    ]
    return tuple(sorted(_once(found), key=lambda each: (_WEIGHT[each.status], each.id)))


def holds(grounded: GroundRule, effective: frozenset[str], flags: frozenset[str]) -> bool:
    """Whether the rule is violated where these candidates are effective and these flags set."""
    rule = grounded.rule
    return (
        all(slot & effective for slot in rule.slots)
        and not any(lack & effective for lack in rule.lacks)
        and in_case(rule, flags)
    )


def in_case(rule: Rule, flags: frozenset[str]) -> bool:
    """Whether a rule speaks of what is built with these flags."""
    return any(case.kept <= flags and not case.dropped & flags for case in rule.cases)


def _finding(
    inputs: ProblemInputs, each: GroundRule, effective: frozenset[str], taken: str | None
) -> PlanFinding:
    row = each.row
    there = [
        inputs.candidate(name) for slot in each.rule.slots for name in sorted(slot & effective)
    ]
    remedy = next((one for one in row.remedies if one.id == taken), None)
    return PlanFinding(
        id=row.id,
        status=_status(each, remedy),
        severity=row.severity,
        summary=row.summary,
        components=describe(there),
        fix=row.fix,
        link=row.sources[0],
        facts=each.unknown,
        remedy=remedy_text(remedy) if remedy else None,
        reason=each.reason,
    )


def _status(each: GroundRule, remedy: Remedy | None) -> FindingStatus:
    if each.reason is not None:
        return "waived"
    if remedy is not None:
        return "lifted"
    if not each.sure:
        return "unknown"
    return "info" if each.row.severity == "info" else "warning"


def remedy_text(remedy: Remedy) -> str:
    """Return a remedy in a few words."""
    return {
        "patch": f"patch {remedy.name}",
        "variable": f"variable {remedy.name}={remedy.value or ''}",
        "pip-option": f"pip option {remedy.value or remedy.name}",
        "flag": f"flag {remedy.name}={remedy.value or ''}",
        "component": f"with {remedy.name} {remedy.value or ''}".rstrip(),
        "build-version": f"built with {remedy.name} {remedy.value or ''}".rstrip(),
    }[remedy.kind]


def _once(found: list[PlanFinding]) -> Iterator[PlanFinding]:
    """Leave out what a weightier finding of the same row already says."""
    seen: set[tuple[str, str]] = set()
    for each in sorted(found, key=lambda one: _WEIGHT[one.status]):
        if (each.id, each.summary) not in seen:
            seen.add((each.id, each.summary))
            yield each
