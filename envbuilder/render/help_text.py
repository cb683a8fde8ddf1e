"""What a modulefile's help says: what the environment is, what is known and was proved of it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..model.evidence import Evidence, SmokeResult
from ..model.launch import LaunchExample
from ..model.plan import Finding, FindingStatus, Modules
from .subject import Renderable

# In this order; what is only information is left to ``envbuild info``.
_HEADS: Mapping[FindingStatus, str] = {
    "waived": "Risks that were taken:",
    "lifted": "Known problems that a remedy lifts:",
    "warning": "Known problems:",
    "unknown": "Undecided, depends on facts that were not given:",
}


def help_lines(
    lock: Renderable, number: int, evidence: Evidence | None, example: LaunchExample | None
) -> tuple[str, ...]:
    """Return the lines of the help text."""
    plan = lock.plan
    return (
        f"{plan.recipe}/{number}: {plan.summary}",
        f"For site {plan.site}, {plan.arch}. Environment {lock.id()}.",
        "",
        "Components:",
        *_indented(str(pin) for pin in plan.pins),
        f"  {plan.runtime.package}@{plan.runtime.version} <- built in this environment",
        *_known(plan.findings),
        "",
        *_proved(evidence),
        *_start(example),
        *_module_notes(plan.modules),
    )


def _start(example: LaunchExample | None) -> Iterator[str]:
    if example:
        yield ""
        yield f"Start a program on {example.ranks} ranks:"
        yield f"  {shlex.join(example.words)}"


def _proved(evidence: Evidence | None) -> tuple[str, ...]:
    if evidence is None:
        return ("Proved: nothing yet (tier rendered).",)
    result = evidence.result
    return (
        f"Proved: {result.tier}, {evidence.execution}, {evidence.time}",
        f"  smoke test {result.verdict}: {result.ranks} ranks in {result.seconds:.1f} s",
        f"  site {evidence.site}, {evidence.arch}, nodes: {', '.join(result.nodes) or 'unknown'}",
        f"  MPI: {result.mpi or 'unknown'}",
        *_indented(
            f"lib{library.kind}: {library.path} (from {library.owner})"
            for library in result.libraries
        ),
        *_indented(_checks(result)),
    )


def _checks(result: SmokeResult) -> tuple[str, ...]:
    """Return one line for each kind of check: how many passed."""
    total = Counter(check.name for check in result.checks)
    passed = Counter(check.name for check in result.checks if check.passed)
    return tuple(f"{name}: {passed[name]} of {total[name]} checks passed" for name in total)


def _known(findings: Sequence[Finding]) -> Iterator[str]:
    for status, head in _HEADS.items():
        matching = [each for each in findings if each.status == status]
        if matching:
            yield from ("", head)
        for each in matching:
            yield f"  {each.id}: {each.summary} ({', '.join(each.components)})"
            yield from _indented(_consequence(each), "    ")


def _consequence(finding: Finding) -> Iterator[str]:
    """Yield what came of it, with what to do, then where to read on."""
    if finding.status == "waived":
        yield f"waived: {finding.reason}"
    elif finding.status == "lifted":
        yield f"lifted by {finding.remedy}"
    else:
        if finding.facts:
            yield f"depends on: {', '.join(finding.facts)}"
        if finding.fix:
            yield f"fix: {finding.fix}"
    yield finding.link


def _module_notes(modules: Modules) -> Iterator[str]:
    if not modules.loads:
        return
    yield from ("", "Loads the site's modules:")
    yield from _indented(f"{what} {name}" for what, name in modules.actions())
    if modules.trees:
        yield "If one is unknown, first: module use"
        yield from _indented(modules.trees)
    if modules.replaced:
        names = ", ".join(each.module for each in modules.replaced)
        yield from (
            "",
            f"The module system then warns that {names} is missing: that is meant.",
            "Unloading this module does not bring it back, and what had brought it may stay:",
            "module purge, or a new shell, begins afresh.",
        )


def _indented(lines: Iterable[str], indent: str = "  ") -> tuple[str, ...]:
    return tuple(f"{indent}{line}" for line in lines)
