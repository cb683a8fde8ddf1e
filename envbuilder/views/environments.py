"""The environments of a root as text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..model.evidence import Evidence, FactTopic, SmokeReport
from ..model.outcome import DefaultChange, EnvironmentEntry, Info, Listing, RemoveResult
from ..text import filled
from .layout import columns, moment
from .plan import finding_lines
from .proof import proof, timings


def listing(value: Listing) -> str:
    """Return the environments of a root."""
    parts = [f"root {value.root} (site {value.site}, {value.arch})"]
    rows = [("environment", "proved", "last proof", "")]
    for item in value.environments:
        name = f"{item.environment}/{item.number}"
        note = "default" if item.default else ""
        if item.last_failed:
            note = f"{note} newest test FAILED".strip()
        rows.append((name, item.tier or "-", moment(item.proved), note))
    head, *lines = columns(rows).split("\n")
    parts.append(head if lines else "  no environment is published here yet")
    for item, line in zip(value.environments, lines, strict=True):
        parts += [line, *_known(item)]
    if value.unfinished:
        parts.append("not published (failed, interrupted, or being built):")
        parts += [f"  {item.environment} {item.id}" for item in value.unfinished]
    return "\n".join(parts)


def _known(item: EnvironmentEntry) -> list[str]:
    """Return the mark of an environment of which something is known, waived risks by their ids."""
    marks = [f"waived: {', '.join(item.waived)}"] if item.waived else []
    if item.warnings:
        marks.append(f"{item.warnings} warning{'s' * (item.warnings > 1)}: envbuild info tells")
    return filled("    ! ", "; ".join(marks)) if marks else []


def info(value: Info) -> str:
    """Return all about one environment."""
    default = " (default)" if value.default else ""
    parts = [
        f"{value.environment}/{value.number}{default}: {value.lock.plan.summary}",
        columns(
            [
                ("id", value.id),
                ("prefix", value.prefix),
                ("modulefile", value.modulefile),
                ("site", f"{value.lock.plan.site}, {value.lock.plan.arch}"),
            ]
        ),
        "",
        "components",
        columns((p.component, p.version, f"{p.origin}:{p.locator}") for p in value.lock.plan.pins),
    ]
    findings = value.lock.plan.findings
    if findings:
        parts += ["", "advisories"]
        parts += [line for each in findings for line in finding_lines(each)]
    parts += _build_facts(value.evidence)
    for evidence in value.evidence:
        parts += ["", f"smoke test of {moment(evidence.time)}"]
        parts += [f"  {line}" for line in proof(evidence.result)]
    passed = [e for e in value.evidence if e.result.verdict == "passed"]
    if passed and passed[-1].result.timings:
        parts += ["", "allreduce of float32, newest test", timings(passed[-1].result.timings)]
    return "\n".join(parts)


# The order in which a reader asks.
_TOPICS: tuple[FactTopic | None, ...] = ("mpi", "nccl", "linkage", "flags", "installation", None)
_MARKS: Mapping[bool | None, str] = {True: "ok", False: "WRONG", None: "not judged"}


def _build_facts(records: Sequence[Evidence]) -> list[str]:
    """Return what was found in the libraries that were built, as the newest record has it."""
    facts = next((each.build_facts for each in reversed(records) if each.build_facts), ())
    lines = ["", "found in the built libraries"] if facts else []
    for component in dict.fromkeys(each.component for each in facts):
        lines.append(f"  {component}")
        own = [each for each in facts if each.component == component]
        for each in sorted(own, key=lambda fact: _TOPICS.index(fact.topic)):
            about = f"{each.topic}: " if each.topic else ""
            lines += filled(f"    {_MARKS[each.passed]}: ", f"{about}{each.text}", 8)
    return lines


def smoke(value: SmokeReport) -> str:
    """Return one round of smoke tests."""
    results = [evidence.result for evidence in value.evidence]
    return "\n\n".join("\n".join([*proof(each), timings(each.timings)]) for each in results)


def changed(value: DefaultChange) -> str:
    """Return the outcome of a rollback."""
    before = f"{value.environment}/{value.before}" if value.before else "none"
    return f"default: {value.environment}/{value.now} (before: {before}); running jobs keep theirs"


def removed(value: RemoveResult) -> str:
    """Return what was removed."""
    if not value.removed:
        return f"nothing to remove of {value.environment}"
    return "removed " + ", ".join(value.removed)
