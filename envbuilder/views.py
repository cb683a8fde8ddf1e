"""Results as text for people: pure functions, no printing. JSON is the form for programs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import PurePath

from . import views_plan
from .model.doctor import DoctorReport, Item
from .model.evidence import Evidence, Proved, SmokeResult, Timing
from .model.outcome import (
    Bundled,
    Changed,
    Created,
    DocumentEntry,
    Info,
    LaunchLine,
    Listed,
    Listing,
    LockCheck,
    Removed,
)
from .text import filled


def columns(rows: Iterable[Sequence[str]], indent: str = "  ") -> str:
    """Return rows as aligned columns; the last column is left as long as it is."""
    table = [tuple(row) for row in rows]
    if not table:
        return ""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]) - 1)]
    lines = []
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append((indent + "  ".join([*cells, row[-1]])).rstrip())
    return "\n".join(lines)


def moment(time: str | None) -> str:
    """Return an ISO 8601 time in UTC as people write it."""
    if time is None:
        return "never"
    return datetime.strptime(time, "%Y-%m-%dT%H:%M:%SZ").strftime("%Y-%m-%d %H:%M UTC")


def size(count: int) -> str:
    """Return a number of bytes in the largest binary unit that divides it well."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.0f} GiB"


def proof(result: SmokeResult) -> list[str]:
    """Return what a smoke test found, a line each."""
    where = ", ".join(result.nodes) or "no node"
    seconds = f"{result.seconds:.1f}"
    lines = [
        f"{result.verdict}: {result.tier}, {result.ranks} ranks on {where} in {seconds} s",
        f"launched by: {result.launch}",
        f"talked through: {result.api}" + (f" ({result.framework})" if result.framework else ""),
    ]
    lines += [
        f"{each.operation} carried by: {each.transport} ({each.source})" for each in result.carried
    ]
    lines += [f"{library.kind} library: {library.path}" for library in result.libraries]
    good = sum(check.passed for check in result.checks)
    lines.append(f"{good} of {len(result.checks)} checks passed")
    for each in result.left_out:
        name = f"{each.name} {each.dtype}" if each.dtype else each.name
        lines.append(f"left out: {name}: {each.why}")
    return [*lines, *result.told()]


def timings(values: Sequence[Timing]) -> str:
    """Return the speeds per size as a table."""
    head = ("size", "latency", "bus bandwidth")
    rows = [
        (size(t.bytes), f"{t.latency_us:.1f} us", f"{t.bus_bandwidth:.2f} GB/s") for t in values
    ]
    return columns([head, *rows]) if rows else ""


def created(value: Created) -> str:
    """Return what ``create`` achieved and how to use it; the last line says it in one."""
    result = value.evidence.result
    return "\n".join(
        [
            *(_proved(each) for each in value.proofs or (value.evidence,)),
            *_speed(result.timings),
            *_risks(value.evidence),
            f"prefix: {value.prefix}",
            "",
            "use it:",
            f"  module use '{value.modulefiles}'",
            f"  module load {value.environment}",
            f"  {shlex.join(value.launch)}",
            *_without_its_module(value),
            "",
            f"{value.environment}/{value.number} is ready and the default",
        ]
    )


def _proved(evidence: Evidence) -> str:
    result = evidence.result
    over = f" over {result.transport}" if result.transport else ""
    return (
        f"proved: {result.api}{over}: {result.tier} on {evidence.arch}; "
        f"{len(result.checks)} checks passed"
    )


def bundled(value: Bundled) -> str:
    """Return what a bundle holds and how it is installed; the last line says its tier."""
    compiled = ", ".join(value.builds) or "nothing"
    return "\n".join(
        [
            f"{value.files} files for {value.arch}; compiled there: {compiled}",
            f"bundle: {value.folder}",
            f"packed: {value.archive} ({value.bytes / 1e6:.0f} MB)",
            "",
            f"on a machine of {value.site} ({value.arch}), without network:",
            f"  tar -xzf '{PurePath(value.archive).name}'",
            f"  bash '{PurePath(value.folder).name}/install.sh' ROOT",
            "",
            f"bundle only: tier {value.tier}, nothing was built",
        ]
    )


def _risks(evidence: Evidence) -> list[str]:
    waived = [each.id for each in evidence.findings if each.status == "waived"]
    return filled("risks that were taken: ", ", ".join(waived)) if waived else []


def _without_its_module(value: Created) -> list[str]:
    if value.loads:
        return [f"which loads the site's {', '.join(value.loads)}"]
    return ["or, without a module system:", f"  source '{value.prefix}/bin/activate'"]


def _speed(values: Sequence[Timing]) -> list[str]:
    if not values:
        return []
    first, last = values[0], values[-1]
    latency = f"{first.latency_us:.0f} us latency at {size(first.bytes)}"
    return [f"speed: {latency}, {last.bus_bandwidth:.2f} GB/s at {size(last.bytes)}"]


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


def _known(item: Listed) -> list[str]:
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
        parts += ["", "known of this stack"]
        parts += [line for each in findings for line in views_plan.finding_lines(each)]
    for evidence in value.evidence:
        parts += ["", f"smoke test of {moment(evidence.time)}"]
        parts += [f"  {line}" for line in proof(evidence.result)]
    passed = [e for e in value.evidence if e.result.verdict == "passed"]
    if passed and passed[-1].result.timings:
        parts += ["", "allreduce of float32, newest test", timings(passed[-1].result.timings)]
    return "\n".join(parts)


def lock_check(value: LockCheck) -> str:
    """Return what has changed since a lock was made."""
    if not value.changed:
        return f"{value.file} ({value.id}): nothing has changed since it was made"
    return "\n".join(
        [
            f"{value.file} ({value.id}): changed since it was made:",
            *(f"  {e}" for e in value.changed),
        ]
    )


def smoke(value: Proved) -> str:
    """Return one round of smoke tests."""
    results = [evidence.result for evidence in value.evidence]
    return "\n\n".join("\n".join([*proof(each), timings(each.timings)]) for each in results)


def changed(value: Changed) -> str:
    """Return the outcome of a rollback."""
    before = f"{value.environment}/{value.before}" if value.before else "none"
    return f"default: {value.environment}/{value.now} (before: {before}); running jobs keep theirs"


def launch_line(value: LaunchLine) -> str:
    """Return the line as one types it into a shell."""
    return shlex.join(value.words)


def removed(value: Removed) -> str:
    """Return what was removed."""
    if not value.removed:
        return f"nothing to remove of {value.environment}"
    return "removed " + ", ".join(value.removed)


def documents(entries: Sequence[DocumentEntry]) -> str:
    """Return recipes or sites, a line each."""
    return columns((entry.name, entry.summary) for entry in entries) or "  none was found"


MARKS = {"ok": "ok", "missing": "--", "problem": "!!", "note": ".."}


def doctor(report: DoctorReport) -> str:
    """Return what a machine has; for what is missing, what it is for and how to get it."""
    parts: list[str] = []
    for section in report.sections:
        parts += [section.title, *(line for item in section.items for line in _item(item)), ""]
    parts.append("What this machine can do now")
    for ability in report.abilities:
        parts += filled(f"{'yes' if ability.can else 'no':>5}  ", f"{ability.title}: {ability.why}")
    return "\n".join(parts)


def _item(item: Item) -> list[str]:
    lines = filled(f"   {MARKS[item.status]}  ", f"{item.title}: {item.found}")
    for detail in item.details:
        lines += filled("         ", detail)
    if item.status in {"missing", "problem"}:
        for label, text in (("for", item.needed_for), ("get", item.without_root)):
            lines += filled(f"         {label}: ", text) if text else []
        if item.debian:
            lines += filled("         as root on Debian: ", f"apt-get install {item.debian}")
    return lines
