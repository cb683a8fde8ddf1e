"""What a modulefile's help says: what the environment is, and what was proved on what."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable

from ..model.evidence import Evidence, SmokeResult
from ..model.plan import Lock, Modules
from .launch import launch_by_hand


def help_lines(lock: Lock, number: int, evidence: Evidence | None) -> tuple[str, ...]:
    """Return the lines of the help text."""
    plan = lock.plan
    words = launch_by_hand(plan.launcher, "2", ("python", "PROGRAM.py"))
    return (
        f"{plan.recipe}/{number}: {plan.summary}",
        f"For site {plan.site}, {plan.arch}. Environment {lock.id()}.",
        "",
        "Components:",
        *_indented(str(pin) for pin in plan.pins),
        f"  {plan.runtime.package}@{plan.runtime.version} <- built in this environment",
        "",
        *_proved(evidence),
        "",
        "Start a program on two ranks:",
        f"  {shlex.join(words)}",
        *_module_notes(plan.modules),
    )


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


def _module_notes(modules: Modules) -> tuple[str, ...]:
    notes: tuple[str, ...] = ()
    if modules.loads:
        notes += ("", "Loads the site's modules:", *_indented(modules.loads))
    if modules.loads and modules.trees:
        notes += ("If one is unknown, first: module use", *_indented(modules.trees))
    if modules.replaced:
        notes += (
            "",
            "Loading replaces what its own modules bring:",
            *_indented(f"{each.module} by {each.by}" for each in modules.replaced),
            "so unloading does not give back exactly what was loaded before: module reset,",
            "or a new shell, does.",
        )
    return notes


def _indented(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"  {line}" for line in lines)
