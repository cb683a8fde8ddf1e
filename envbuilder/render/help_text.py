"""What a modulefile's help says: what the environment is, what is known and was proved of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..model.launch import StartCommand
from ..model.plan import FindingStatus, Modules, PlanFinding
from ..target_tools.modulefile import NUMBER, PROVED
from .subject import Renderable

# In this order; what is only information is left to ``envbuild info``.
_HEADS: Mapping[FindingStatus, str] = {
    "waived": "Waived advisories:",
    "lifted": "Known problems that a remedy solves:",
    "warning": "Known problems:",
    "unknown": "Undecided, because facts are not stated:",
}


def help_lines(lock: Renderable, example: StartCommand | None) -> tuple[str, ...]:
    """Return the lines of the help text, with marks for its number and for what was proved."""
    plan = lock.plan
    return (
        f"{plan.recipe}/{NUMBER}: {plan.summary}",
        f"For site {plan.site}, {plan.arch}. Environment {lock.id()}.",
        "",
        "Components:",
        *_indented(str(pin) for pin in plan.pins),
        f"  {plan.runtime.package}@{plan.runtime.version} <- built in this environment",
        *_known(plan.findings),
        "",
        PROVED,
        *_start(example),
        *_module_notes(plan.modules),
    )


def image_help_lines(
    lock: Renderable, proved: Sequence[str], example: Sequence[str]
) -> tuple[str, ...]:
    """Return the lines of the help text of an image, with a mark for its number."""
    plan = lock.plan
    return (
        f"{plan.recipe}/{NUMBER}: {plan.summary}",
        f"An image for site {plan.site}, {plan.arch}. Environment {lock.id()}.",
        "",
        "Components:",
        *_indented(str(pin) for pin in plan.pins),
        *_known(plan.findings),
        "",
        *proved,
        "",
        "Each program starts in a container of its own. Start ranks with the launcher of the",
        "machine, or on one machine with the MPI in the image:",
        f"  {shlex.join(example)}",
    )


def _start(example: StartCommand | None) -> Iterator[str]:
    if example:
        yield ""
        yield f"Start a program on {example.ranks} ranks:"
        yield f"  {shlex.join(example.words)}"


def _known(findings: Sequence[PlanFinding]) -> Iterator[str]:
    for status, head in _HEADS.items():
        matching = [each for each in findings if each.status == status]
        if matching:
            yield from ("", head)
        for each in matching:
            yield f"  {each.id}: {each.summary} ({', '.join(each.components)})"
            yield from _indented(_consequence(each), "    ")


def _consequence(finding: PlanFinding) -> Iterator[str]:
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
        yield "If the module system does not find them, first run: module use"
        yield from _indented(modules.trees)
    if modules.replaced:
        names = ", ".join(each.module for each in modules.replaced)
        yield from (
            "",
            f"The module system then warns that {names} is missing. This is intended.",
            "Unloading this module does not restore it, and modules that loaded it may remain.",
            "To reset the shell, run module purge or start a new shell.",
        )


def _indented(lines: Iterable[str], indent: str = "  ") -> tuple[str, ...]:
    return tuple(f"{indent}{line}" for line in lines)
