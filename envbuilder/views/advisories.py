"""Rows of knowledge as text for people: pure functions, 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..knowledge.ageing import confirmed_releases
from ..knowledge.matching import Verdict, kind, selection_words, subjects
from ..knowledge.rows import Advisory, Coupling, FlagRule, Row, Selection
from ..model.outcome import CheckResult, RecordResult, RowMatch
from ..text import WIDTH, counted, filled, shown
from .layout import joined


def listing(rows: Sequence[Row]) -> str:
    """Return a line for each row, its summary cut where the line ends."""
    if not rows:
        return "  no advisory matches"
    names = max(len(row.id) for row in rows)
    heads = [f"{row.id.ljust(names)}  {row.severity.ljust(7)}  " for row in rows]
    return "\n".join(
        head + _cut(f"{next(iter(subjects(row)), '')}: {row.summary}", WIDTH - len(head))
        for head, row in zip(heads, rows, strict=True)
    )


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else shown(text, max(width - 3, 1))


@joined
def row(value: Row) -> Iterator[str]:
    """Return everything that a row says."""
    yield from filled("", f"{value.id}: {value.summary}")
    yield ""
    for label, text in _fields(value):
        yield from filled(f"{label:<11}", text)
    for each in value.remedies:
        amount = f" = {each.value}" if each.value else ""
        yield from ("", *filled("remedy     ", f"{each.id}: {each.kind} {each.name}{amount}"))
        if each.affected:
            ranges = (each.affected,) if isinstance(each.affected, str) else each.affected
            yield from filled("  for      ", " or ".join(ranges))
        if each.when:
            yield from filled("  where    ", each.when)
        yield from filled("  source   ", each.source)


def _fields(value: Row) -> Iterator[tuple[str, str]]:
    yield "kind", kind(value)
    yield "severity", value.severity
    yield from _affected(value)
    yield "condition", "always" if value.when == "true" else value.when
    if value.when != "true":
        yield "unknown", f"severity if a fact of the condition is not stated: {value.unknown}"
    for label, text in (("fix", value.fix), ("symptom", value.symptom), ("note", value.note)):
        if text:
            yield label, text
    if value.replaced_by:
        yield "now", f"{value.replaced_by}, which says the same for all releases"
    if value.demoted:
        yield "demoted", value.demoted
    limits = ", ".join(f"{name} {limit}" for name, limit in confirmed_releases(value).items())
    if limits:
        yield "confirmed", f"{value.confirmed}, for releases up to {limits}"
    if value.reason:
        yield "holds", f"{value.holds}: {value.reason}"
    yield "evidence", value.evidence
    yield from _labelled("sources", value.sources)


def _affected(value: Row) -> Iterator[tuple[str, str]]:
    ranges = subjects(value)
    if isinstance(value, Advisory):
        yield "affected", f"{value.component} {ranges[value.component]}"
        yield from _selections("together", value.beside)
    elif isinstance(value, Coupling):
        yield from _selections("requires", value.given)
        yield from _selections("needs", value.needs)
        yield "absent", f"severity if a needed component is missing: {value.absent}"
    elif isinstance(value, FlagRule):
        yield "runtime", f"{value.runtime} {ranges[value.runtime]}"


def _selections(label: str, selections: Mapping[str, Selection]) -> Iterator[tuple[str, str]]:
    return _labelled(label, (f"{n} {selection_words(s)}" for n, s in selections.items()))


def _labelled(label: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(texts):
        yield "" if number else label, text


@joined
def recorded(value: RecordResult) -> Iterator[str]:
    """Return what was found, is new and contradicts, and the files that were written."""
    yield f"releases: {value.releases}, new: {value.new_releases}"
    if value.statements:
        counts = ", ".join(f"{name}: {count}" for name, count in value.statements.items())
        yield from filled("", f"statements: {counts}", 2)
    if value.shipped:
        yield f"combinations that EasyBuild ships: {value.shipped}"
    sections = {"contradictions:": value.contradictions, "not read:": value.unread}
    for title, texts in {**sections, "rows to confirm:": value.outdated}.items():
        yield from ("", title, *(f"  {each}" for each in texts)) if texts else ()
    yield from ("", "written:") if value.written else ("nothing to write",)
    yield from (f"  {each}" for each in value.written)


@joined
def checked(value: CheckResult, verbose: bool = False) -> Iterator[str]:
    """Return what is known of versions together, what holds first: a screen where that is good.

    Only with *verbose* each row is told, beside the errors and warnings that hold.
    """
    by_verdict: dict[Verdict, list[RowMatch]] = {}
    for each in value.rows:
        by_verdict.setdefault(each.verdict, []).append(each)
    yield from filled("", " and ".join(value.asked))
    yield from _holding(by_verdict.get("holds", []), verbose)
    yield from _lifted(by_verdict.get("lifted", []), verbose)
    yield from _undecided(by_verdict.get("unknown", []), verbose)
    beside = {
        each.id: [said.partition(" ")[0] for said in each.open]
        for each in by_verdict.get("beside", [])
    }
    yield from _grouped("would apply together with", beside, verbose)
    if not verbose and any(each.severity != "error" for each in value.rows):
        yield "--verbose shows each advisory; envbuild advisories show ID shows one in full"


def _holding(rows: Sequence[RowMatch], verbose: bool) -> Iterator[str]:
    """Yield what holds; of what is only good to know the ids alone."""
    yield from ("", "advisories:") if rows else ("no advisory applies",)
    told = [each for each in rows if verbose or each.severity != "info"]
    for each in told:
        yield from _match(each, verbose)
    if len(told) < len(rows):
        ids = (each.id for each in rows if each not in told)
        yield from filled("  info: ", ", ".join(ids), 6)


def _match(each: RowMatch, verbose: bool) -> Iterator[str]:
    yield from filled(f"  {each.id}  {each.severity.ljust(7)}  ", each.summary, indent=6)
    if each.open:
        yield from filled("      ", f"depends on: {', '.join(each.open)}")
    if each.fix:
        yield from filled("      ", f"fix: {each.fix}")
    if verbose or each.severity == "error":
        yield f"      {each.link}"


def _lifted(rows: Sequence[RowMatch], verbose: bool) -> Iterator[str]:
    head = "lifted by a remedy that envbuild applies when it builds:"
    if rows and not verbose:
        yield from filled("", f"{head} {', '.join(each.id for each in rows)}", 2)
        return
    yield from ("", head) if rows else ()
    for each in rows:
        yield from filled(f"  {each.id}  ", f"{each.remedy}: {each.summary}", 6)


def _undecided(rows: Sequence[RowMatch], verbose: bool) -> Iterator[str]:
    """Yield what depends on facts, grouped by the fact to state; errors are told in full."""
    errors = [each for each in rows if each.severity == "error"]
    if errors:
        yield from ("", "undecided; an error until the fact is stated:")
    for each in errors:
        yield from _match(each, verbose)
    facts = {each.id: [_fact(name) for name in each.open] for each in rows if each not in errors}
    if facts and not verbose:
        counts = Counter(name for names in facts.values() for name in dict.fromkeys(names))
        names = sorted(counts, key=lambda name: (-counts[name], name))
        text = f"state {', '.join(names)} by --fact NAME=VALUE or --arch: settles "
        yield from filled("", f"{text}{counted(len(facts), 'row')}", 2)
        return
    yield from _grouped(
        "undecided; state the fact with --fact NAME=VALUE or --arch:", facts, verbose
    )


def _fact(name: str) -> str:
    """Return the fact to state; of all flags one, as then those not stated count as not set."""
    return "flags.NAME" if name.partition(".")[0] in ("flags", "ops") else name


def _grouped(head: str, open_of: Mapping[str, Sequence[str]], verbose: bool) -> Iterator[str]:
    """Yield how many rows depend on what, most first; with *verbose* which they are."""
    if not open_of:
        return
    groups = sorted(_groups(open_of).items(), key=lambda one: (-len(one[1]), one[0]))
    if not verbose:
        counts = (
            f"{name} ({counted(len(ids), 'row') if not number else len(ids)})"
            for number, (name, ids) in enumerate(groups)
        )
        yield from filled("", f"{head} {', '.join(counts)}", 2)
        return
    yield from ("", f"{head.rstrip(':')}:")
    for name, ids in groups:
        yield from filled("  ", f"{name}: {', '.join(sorted(ids))}", 6)


def _groups(open_of: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return rows by what they depend on, each under what most of them depend on."""
    counts = Counter(name for names in open_of.values() for name in dict.fromkeys(names))
    groups: dict[str, list[str]] = {}
    for row_id, names in open_of.items():
        most = min(names, key=lambda name: (-counts[name], name))
        groups.setdefault(most, []).append(row_id)
    return groups
