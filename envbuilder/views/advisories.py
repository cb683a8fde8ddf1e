"""Rows of knowledge as text for people: pure functions, 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..model.knowledge import Advisory, Coupling, FlagRule, Row, Selection
from ..model.matching import Verdict, kind, selection_words, subjects
from ..model.outcome import CheckResult, RowMatch
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
        yield "unknown", f"where a fact of the condition is not known: {value.unknown}"
    for label, text in (("fix", value.fix), ("symptom", value.symptom), ("note", value.note)):
        if text:
            yield label, text
    if value.demoted:
        yield "demoted", value.demoted
    yield "evidence", value.evidence
    yield from _labelled("sources", value.sources)


def _affected(value: Row) -> Iterator[tuple[str, str]]:
    ranges = subjects(value)
    if isinstance(value, Advisory):
        yield "affected", f"{value.component} {ranges[value.component]}"
        yield from _selections("beside", value.beside)
    elif isinstance(value, Coupling):
        yield from _selections("given", value.given)
        yield from _selections("needs", value.needs)
        yield "absent", f"what is needed and not there is {value.absent}"
    elif isinstance(value, FlagRule):
        yield "runtime", f"{value.runtime} {ranges[value.runtime]}"


def _selections(label: str, selections: Mapping[str, Selection]) -> Iterator[tuple[str, str]]:
    return _labelled(label, (f"{n} {selection_words(s)}" for n, s in selections.items()))


def _labelled(label: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(texts):
        yield "" if number else label, text


@joined
def checked(value: CheckResult) -> Iterator[str]:
    """Return what is known of versions together, what holds first: a screen where that is good."""
    by_verdict: dict[Verdict, list[RowMatch]] = {}
    for each in value.rows:
        by_verdict.setdefault(each.verdict, []).append(each)
    yield from filled("", " and ".join(value.asked))
    holding, lifted = by_verdict.get("holds", []), by_verdict.get("lifted", [])
    yield from ("", "known:") if holding else ("no advisory applies",)
    for each in holding:
        yield from _match(each)
    if lifted:
        yield from ("", "lifted by a remedy, which envbuild applies where it builds:")
    for each in lifted:
        yield from filled(f"  {each.id}  ", f"{each.remedy}: {each.summary}", 6)
    yield from _undecided(by_verdict.get("unknown", []))
    yield from _beside(by_verdict.get("beside", []))


def _match(each: RowMatch) -> Iterator[str]:
    yield from filled(f"  {each.id}  {each.severity.ljust(7)}  ", each.summary, indent=6)
    if each.open:
        yield from filled("      ", f"depends on: {', '.join(each.open)}")
    if each.fix:
        yield from filled("      ", f"fix: {each.fix}")
    yield f"      {each.link}"


def _undecided(rows: Sequence[RowMatch]) -> Iterator[str]:
    """Yield what depends on facts, grouped by the fact to state; errors are told in full."""
    if rows:
        yield ""
        yield "undecided: depends on facts that were not given (--fact NAME=VALUE, --arch):"
    for each in rows:
        if each.severity == "error":
            yield from _match(each)
    others = (each for each in rows if each.severity != "error")
    facts = {each.id: [_fact(name) for name in each.open] for each in others}
    yield from _groups(facts, "state", "depends on it")


# So many ids of a group are told; --json has them all.
_MOST_IDS = 5

_FLAGS = "a flag (flags.NAME; the others count as not set then)"


def _fact(name: str) -> str:
    return _FLAGS if name.partition(".")[0] in ("flags", "ops") else name


def _beside(rows: Sequence[RowMatch]) -> Iterator[str]:
    if rows:
        yield ""
        yield "would apply beside components that were not given:"
        yield from _groups({e.id: [o.partition(" ")[0] for o in e.open] for e in rows}, "with", "")


def _groups(open_of: Mapping[str, Sequence[str]], verb: str, what: str) -> Iterator[str]:
    """Yield rows by what they depend on, each under what most of them depend on."""
    counts = Counter(name for names in open_of.values() for name in dict.fromkeys(names))
    groups: dict[str, list[str]] = {}
    for row_id, names in open_of.items():
        most = min(names, key=lambda name: (-counts[name], name))
        groups.setdefault(most, []).append(row_id)
    for name, ids in sorted(groups.items(), key=lambda one: (-len(one[1]), one[0])):
        does = what.replace("depends", "depend") if len(ids) > 1 else what
        head = f"{verb} {name}: {counted(len(ids), 'row')}{' ' if does else ''}{does}: "
        more = f" and {len(ids) - _MOST_IDS} more" if len(ids) > _MOST_IDS else ""
        yield from filled("  ", head + ", ".join(sorted(ids)[:_MOST_IDS]) + more, 6)
