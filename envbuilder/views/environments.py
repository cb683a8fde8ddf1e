"""The environments of a root, and their smoke tests, as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from ..model.diff import INPUTS, Diff, Difference
from ..model.evidence import Evidence, FactTopic, RankFacts, SmokeReport, Timing
from ..model.host_contract import ContractRow, Fit
from ..model.outcome import (
    DefaultChange,
    EnvironmentEntry,
    ExternalEntry,
    Info,
    Listing,
    RemoveResult,
)
from ..model.workspace import Workspace
from ..text import LONG, counted, filled, shown
from .layout import columns, how, joined, moment, size
from .plan import finding_lines, site_lines


@joined
def diff(value: Diff) -> Iterator[str]:
    """Return every difference below the title of its section, before with -, after with +."""
    yield from filled("- ", shown(value.before, LONG), 4)
    yield from filled("+ ", shown(value.after, LONG), 4)
    for section, differences in groupby(value.differences, key=lambda each: each.section):
        yield from ("", section)
        for each in differences:
            yield from _difference(each)
    if value.same:
        yield ""
        same = "the decisions are the same: both describe one environment"
        yield same if value.differences else "no differences"


def _difference(each: Difference) -> Iterator[str]:
    if each.section == INPUTS:
        state = "changed" if each.before and each.after else "removed" if each.before else "new"
        yield from filled("  ", shown(f"{each.name}: {state}", LONG), 4)
        return
    for sign, text in (("-", each.before), ("+", each.after)):
        if text is not None:
            name = each.name if each.name.endswith(text) else f"{each.name}: {text}"
            yield from filled(f"  {sign} ", shown(name, LONG), len(sign) + 5)


# Evidence of an earlier release, which names its subject but is not bound to it.
UNBOUND = "recorded before binding"


@joined
def listing(value: Listing) -> Iterator[str]:
    """Return the environments of a root."""
    shared = f", shared with group {value.shared}" if value.shared else ""
    yield f"root {value.root} (site {value.site}, {value.arch}{shared})"
    yield from (f"{label} {text}" for label, text in _workspace(value.workspace))
    for misfit in value.misfits:
        yield from filled("  ! ", misfit)
    rows = [("environment", "tier", "last proof", "")]
    for item in value.environments:
        notes = {"default": item.default, "newest smoke test FAILED": item.last_failed}
        if item.site not in (None, value.site):
            notes[f"of site {item.site}"] = True
        notes[UNBOUND] = item.unbound
        note = " ".join(each for each, holds in notes.items() if holds)
        name = f"{item.environment}/{item.number}"
        proved = (item.tier or "-") + how(item.execution, item.stand_ins, item.by)
        rows.append((name, proved, moment(item.proved), note))
    head, *lines = columns(rows).split("\n")
    yield head if lines else "  no environment is published in this root"
    for item, line in zip(value.environments, lines, strict=True):
        yield line
        yield from _known(item)
    for damaged in value.damaged:
        yield from filled("  ! ", damaged)
    if value.external:
        yield "external (built without envbuild, never changed by it), as of the import:"
    for each in value.external:
        yield from external(each)
    if value.unfinished:
        yield "unfinished builds (failed, interrupted, or in progress):"
        yield from (f"  {item.environment} {item.id}" for item in value.unfinished)


def external(each: ExternalEntry) -> Iterator[str]:
    """Yield what is known of an environment of others."""
    python = f"Python {each.python or 'of an unknown version'}"
    machine = f" ({each.arch})" if each.arch else ""
    found = [
        counted(number, what)
        for number, what in ((each.errors, "error"), (each.warnings, "warning"))
        if number
    ]
    gone = "" if each.there else ", no longer exists"
    yield from filled("  ", f"{each.name}: {each.path}{gone}", 6)
    said = f"{each.kind}, {python}{machine}; {', '.join(found) or 'no findings'}"
    yield from filled("      ", f"{said} ({moment(each.imported)})")


def _known(item: EnvironmentEntry) -> list[str]:
    """Return the mark of an environment of which something is known, waived risks by their ids."""
    marks = [f"waived: {', '.join(item.waived)}"] if item.waived else []
    if item.stand_ins:
        marks.append(f"{counted(len(item.stand_ins), 'stand-in')}: does not prove the recipe")
    if item.warnings:
        marks.append(f"{counted(item.warnings, 'warning')}: see envbuild info")
    marks += [line for each in (*item.damaged, *item.claimed) for line in each.splitlines()]
    return filled("    ! ", "; ".join(marks)) if marks else []


def _workspace(value: Workspace | None) -> list[tuple[str, str]]:
    """Return the row of a root that is in a workspace."""
    if value is None:
        return []
    expiry = f"expires {moment(value.expires)}" if value.expires else "expires at an unknown time"
    remaining = f" (remaining: {value.remaining})" if value.remaining else ""
    return [("workspace", f"{value.name}, {expiry}{remaining}")]


def _shared(value: Info) -> list[tuple[str, str]]:
    """Return the row of a shared root."""
    if value.shared is None:
        return []
    return [("shared", f"with group {value.shared}; its members trust each other's files")]


def _image(value: Info) -> list[tuple[str, str]]:
    """Return the row of an image."""
    image = value.image
    if image is None:
        return []
    large = [size(image.bytes)] if image.bytes else []
    said = [image.format, f"for {image.arch or 'an architecture that no recipe has'}", *large]
    return [("read from", f"{image.file}: {', '.join(said)}")]


_FIT: Mapping[Fit, str] = {"fits": "ok", "broken": "WRONG", "unknown": "unknown"}


def _contract(rows: Sequence[ContractRow]) -> Iterator[str]:
    """Yield what an image and its host must agree on."""
    if rows:
        yield from ("", "image and host")
        yield columns((_FIT[row.fit], row.subject, row.image, f"host: {row.host}") for row in rows)
    for row in rows:
        if row.why:
            yield from filled("  ! ", f"{row.subject}: {row.why}")


def _files(value: Info) -> str:
    """Return whether the files of a prefix were recorded, and are as they were then."""
    if value.manifest is None:
        return "no manifest, so no file is compared"
    when = "at publication" if value.manifest == "published" else "after a later smoke test"
    if value.changed is None:
        return f"recorded {when}"
    return f"recorded {when}; changed since then: {len(value.changed) or 'none'}"


@joined
def info(value: Info) -> Iterator[str]:
    """Return all about one environment."""
    plan = value.lock.plan
    default = " (default)" if value.default else ""
    yield f"{value.environment}/{value.number}{default}: {plan.summary}"
    yield columns(
        [
            *_image(value),
            ("id", value.id),
            ("prefix", value.prefix),
            ("modulefile", value.modulefile),
            ("site", f"{plan.site}, {plan.arch}"),
            ("files", _files(value)),
            *_shared(value),
            *_workspace(value.workspace),
        ]
    )
    yield from _contract(value.contract)
    for misfit in value.misfits:
        yield from filled("  ! ", misfit)
    yield from (f"  {line}" for line in value.changed or ())
    yield from (f"  ! {line}" for line in (*value.damaged, *value.claimed))
    yield from ("", "components")
    yield columns((pin.component, pin.version, f"{pin.origin}:{pin.locator}") for pin in plan.pins)
    if plan.site_findings:
        yield from ("", "site", *site_lines(plan.site_findings))
    if plan.findings:
        yield from ("", "advisories")
    for finding in plan.findings:
        yield from finding_lines(finding)
    yield from _build_facts(value.evidence)
    for evidence in value.evidence:
        yield from ("", f"smoke test of {moment(evidence.time)}")
        yield from (f"  {line}" for line in _proof(evidence))
    for evidence in value.on_site:
        yield from ("", f"smoke test of {moment(evidence.time)} at {evidence.site}")
        yield from (f"  {line}" for line in _proof(evidence))
    passed = [each.result for each in value.evidence if each.result.verdict == "passed"]
    if passed and passed[-1].timings:
        yield from ("", "allreduce of float32, newest smoke test", _timings(passed[-1].timings))


# The order in which a reader asks.
_TOPICS: tuple[FactTopic | None, ...] = ("mpi", "nccl", "linkage", "flags", "installation", None)
_MARKS: Mapping[bool | None, str] = {True: "ok", False: "WRONG", None: "undecided"}


def _build_facts(records: Sequence[Evidence]) -> Iterator[str]:
    """Yield what was found in the libraries that were built, as the newest record has it."""
    facts = next((each.build_facts for each in reversed(records) if each.build_facts), ())
    if facts:
        yield from ("", "facts about the built libraries")
    for component in dict.fromkeys(each.component for each in facts):
        yield f"  {component}"
        own = [each for each in facts if each.component == component]
        for each in sorted(own, key=lambda fact: _TOPICS.index(fact.topic)):
            about = f"{each.topic}: " if each.topic else ""
            yield from filled(f"    {_MARKS[each.passed]}: ", f"{about}{each.text}", 8)


def _proof(evidence: Evidence) -> Iterator[str]:
    result = evidence.result
    where = ", ".join(result.nodes) or "no node"
    ranks = f"{result.ranks} ranks on {where} in {result.seconds:.1f} s"
    marks = how(evidence.execution, evidence.stand_ins, evidence.by)
    yield f"{result.verdict}: {result.tier}{marks}, {ranks}"
    if evidence.by:
        yield f"! {evidence.by} is not an API of the recipe's runtime, which has no proof"
    if evidence.schema_ == 1:
        yield UNBOUND
    if evidence.stand_ins:
        said = f"stand-ins, so this does not prove the recipe: {', '.join(evidence.stand_ins)}"
        yield from filled("! ", said)
    if evidence.partition:
        yield f"partition: {evidence.partition}"
    yield f"launched by: {result.launch}"
    yield from _processes(result.processes)
    yield f"API: {result.api}" + (f" ({result.framework})" if result.framework else "")
    for carried in result.carried:
        yield f"transport of {carried.operation}: {carried.transport} ({carried.source})"
    for library in result.libraries:
        whose = " (of the host)" if library.owner == "host" else ""
        yield f"{library.kind} library: {library.path}{whose}"
    for name, value in result.environment.items():
        yield f"environment: {name}={value}"
    good = sum(check.passed for check in result.checks)
    yield f"{good} of {len(result.checks)} checks passed"
    for each in result.left_out:
        yield f"skipped: {each.name}{f' {each.dtype}' if each.dtype else ''}: {each.why}"
    yield from result.failure_lines()


def _processes(processes: Sequence[RankFacts]) -> Iterator[str]:
    """Yield where the ranks ran, one line for those of the same place."""
    groups: dict[str, list[str]] = {}
    for each in processes:
        facts = {
            "": each.cpu,
            "GPU ": ", ".join(each.gpus),
            "job step ": each.job_step,
            "container ": each.container,
            "boot ": each.boot_id,
        }
        named = [f"{name}{value}" for name, value in facts.items() if value]
        state = "observed" if each.observed else "not observed"
        groups.setdefault(f"{each.host}: {', '.join((*named, state))}", []).append(str(each.rank))
    for place, ranks in groups.items():
        numbers = f"rank {', '.join(ranks)}" if len(ranks) < 9 else f"{len(ranks)} ranks"
        yield from filled("", f"{numbers} on {place}", 2)


def _timings(values: Sequence[Timing]) -> str:
    """Return the speeds per size as a table."""
    head = ("size", "latency", "bus bandwidth")
    rows = [
        (size(t.bytes), f"{t.latency_us:.1f} us", f"{t.bus_bandwidth:.2f} GB/s") for t in values
    ]
    return columns([head, *rows]) if rows else ""


def smoke(value: SmokeReport) -> str:
    """Return one round of smoke tests."""
    proofs = ([*_proof(each), _timings(each.result.timings)] for each in value.evidence)
    return "\n\n".join("\n".join(lines) for lines in proofs)


def changed(value: DefaultChange) -> str:
    """Return the outcome of a rollback."""
    before = f"{value.environment}/{value.before}" if value.before else "none"
    now = f"{value.environment}/{value.now}"
    return f"default: {now} (before: {before}); running jobs are not affected"


def removed(value: RemoveResult) -> str:
    """Return what was removed."""
    if not value.removed:
        return f"{value.environment}: nothing to remove"
    return "removed " + ", ".join(value.removed)
