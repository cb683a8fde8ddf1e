"""Rows of knowledge as text for people: pure functions, 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .model.knowledge import Advisory, Coupling, FlagRule, Remedy, Row
from .model.matching import Verdict, kind, selection_words, subjects
from .model.outcome import Checked, RowMatch
from .text import WIDTH, filled, shown


def listing(rows: Sequence[Row]) -> str:
    """Return a line for each row, its summary cut where the line ends."""
    if not rows:
        return "  no row is like that"
    names = max(len(row.id) for row in rows)
    heads = [f"{row.id.ljust(names)}  {row.severity.ljust(7)}  " for row in rows]
    return "\n".join(
        head + _cut(f"{next(iter(subjects(row)), '')}: {row.summary}", WIDTH - len(head))
        for head, row in zip(heads, rows, strict=True)
    )


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else shown(text, max(width - 3, 1))


def row(value: Row) -> str:
    """Return everything that a row says."""
    lines = [*filled("", f"{value.id}: {value.summary}"), ""]
    for label, text in _fields(value):
        lines += filled(f"{label:<11}", text)
    for each in value.remedies:
        lines += ["", *_remedy(each)]
    return "\n".join(lines)


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
    for number, source in enumerate(value.sources):
        yield "" if number else "sources", source


def _affected(value: Row) -> Iterator[tuple[str, str]]:
    ranges = subjects(value)
    if isinstance(value, Advisory):
        yield "affected", f"{value.component} {ranges[value.component]}"
        yield from _labelled(
            "beside", (f"{n} {selection_words(s)}" for n, s in value.beside.items())
        )
    elif isinstance(value, Coupling):
        yield from _labelled("given", (f"{n} {selection_words(s)}" for n, s in value.given.items()))
        yield from _labelled("needs", (f"{n} {selection_words(s)}" for n, s in value.needs.items()))
        yield "absent", f"what is needed and not there is {value.absent}"
    elif isinstance(value, FlagRule):
        yield "runtime", f"{value.runtime} {ranges[value.runtime]}"


def _labelled(label: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(texts):
        yield "" if number else label, text


def _remedy(each: Remedy) -> list[str]:
    value = f" = {each.value}" if each.value else ""
    lines = filled("remedy     ", f"{each.id}: {each.kind} {each.name}{value}")
    if each.affected:
        ranges = (each.affected,) if isinstance(each.affected, str) else each.affected
        lines += filled("  for      ", " or ".join(ranges))
    if each.when:
        lines += filled("  where    ", each.when)
    return [*lines, *filled("  source   ", each.source)]


_HEADS: dict[Verdict, str] = {
    "holds": "known:",
    "unknown": "may hold, for want of facts (--fact NAME=VALUE, --arch):",
    "beside": "would hold beside what was not given:",
}


def checked(value: Checked) -> str:
    """Return what is known of versions together, what holds first."""
    asked = " and ".join(value.asked)
    lines = filled("", asked)
    if not any(each.verdict == "holds" for each in value.rows):
        lines.append("nothing is known that holds for certain")
    for verdict, head in _HEADS.items():
        found = [each for each in value.rows if each.verdict == verdict]
        lines += ["", head] if found else []
        lines += [line for each in found for line in _match(each)]
    return "\n".join(lines)


def _match(each: RowMatch) -> Iterator[str]:
    head = f"  {each.id}  {each.severity.ljust(7)}  "
    if each.verdict == "beside":
        yield head + _cut(f"{', '.join(each.open)}: {each.summary}", WIDTH - len(head))
        return
    yield from filled(head, each.summary, indent=6)
    if each.open:
        yield from filled("      ", f"depends on: {', '.join(each.open)}")
    if each.fix:
        yield from filled("      ", f"fix: {each.fix}")
    yield f"      {each.link}"
