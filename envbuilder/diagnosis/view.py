"""What logs mean, as text: the cause first, then what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..text import counted, filled
from ..views.layout import joined
from .places import UNEXPLAINED
from .values import Diagnosis, LogPlace, Symptomatic

# So many findings are shown whole, and so many lines of each; --all shows the rest.
MOST_WHOLE = 3
MOST_LINES = 4
# So many ranks are listed.
MOST_RANKS = 16

_LABELS = {"cause": "cause", "failure": "failure", "wait": "waiting", "effect": "effect"}


@joined
def diagnosis(value: Diagnosis, *, everything: bool = False) -> Iterator[str]:
    """Return the findings; *everything*: all places, and the lines around them."""
    lines = f"{sum(each.lines for each in value.logs):,} lines"
    yield f"{counted(len(value.logs), 'log')}, {lines}"
    if value.ranks_differ:
        yield ""
        yield from filled("ranks    ", value.ranks_differ)
        yield from _ranks(value, everything)
    for number, each in enumerate(value.findings):
        if everything or number < MOST_WHOLE:
            yield ""
            yield from _whole(each, everything, {log.log: log.lines for log in value.logs})
    rest = value.findings[MOST_WHOLE:]
    if rest and not everything:
        yield ""
        yield from filled("also     ", ", ".join(each.id for each in rest) + " (--all)")
    yield from _known_bad(value)
    if everything and value.facts:
        yield ""
        stated = ", ".join(f"{name} {text}" for name, text in value.facts.items())
        yield from filled("facts    ", stated)
    yield ""
    yield _ending(value)


@joined
def new_findings(value: Diagnosis, shown: set[str]) -> Iterator[str]:
    """Return the findings that are not in *shown*, and add them to it."""
    lines = {log.log: log.lines for log in value.logs}
    for finding in value.findings:
        key = f"{finding.id} {finding.source} {finding.severity}"
        if key not in shown:
            shown.add(key)
            yield from _whole(finding, everything=False, lines=lines)


def _known_bad(value: Diagnosis) -> Iterator[str]:
    for row in value.known_bad[:MOST_WHOLE]:
        yield ""
        yield from filled("release  ", f"{row.id}: {', '.join(row.about)}: {row.summary}")


def _ranks(value: Diagnosis, everything: bool) -> Iterator[str]:
    shown = value.ranks if everything else value.ranks[:MOST_RANKS]
    for each in shown:
        said = f"{each.id} (line {each.line})" if each.id else "no known error"
        yield f"         {each.rank}: {said}"
    if len(shown) < len(value.ranks):
        yield f"         and {len(value.ranks) - len(shown)} more: --all"


def _whole(finding: Symptomatic, everything: bool, lines: Mapping[str, int]) -> Iterator[str]:
    label = "warning" if finding.severity == "warning" else _LABELS[finding.tells]
    sure = "" if finding.tells in ("wait", "effect") else f" ({finding.confidence})"
    unexplained = finding.id == UNEXPLAINED
    if unexplained:
        yield from filled(f"{finding.severity:<8} ", f"{finding.id}: {finding.cause}")
    else:
        yield from filled(f"{label:<8} ", f"{finding.id}{sure}: {finding.cause or finding.hint}")
    for place in finding.places if everything or unexplained else finding.places[:1]:
        yield from _place(place, everything, lines)
    if finding.count > len(finding.places) or (finding.count > 1 and not everything):
        yield f"         found {finding.count} times"
    if finding.cause:
        yield from filled("         do: ", finding.hint, 13)
    if finding.settle:
        yield from filled("         to confirm: ", finding.settle, 13)
    for fact in finding.confirmed:
        yield from filled("         confirmed by: ", fact, 13)
    if finding.advisories:
        yield from filled("         advisories: ", ", ".join(finding.advisories), 13)
    if finding.search_words and (unexplained or everything):
        source = f"{finding.source}: " if finding.source else ""
        yield from filled("         search for: ", f"{source}{finding.search_words}", 13)
    if finding.page and (unexplained or everything):
        yield from filled("         page: ", finding.page, 13)


def _place(place: LogPlace, everything: bool, lines: Mapping[str, int]) -> Iterator[str]:
    rank = "" if place.rank is None else f", rank {place.rank}"
    yield f"         {place.log}:{place.line} of {lines.get(place.log, 0):,}{rank}"
    text: Sequence[str] = place.text
    if everything:
        text = (*place.before, *text, *place.after)
    elif len(text) > MOST_LINES:
        text = (*text[: MOST_LINES - 1], text[-1])
    for line in text:
        yield f"         | {line}"


def _ending(value: Diagnosis) -> str:
    if value.outcome == "clean":
        return "No error found."
    if value.outcome == "open":
        begin = "Only warnings" if value.findings else "Nothing recognised"
        return f"{begin}; this log does not show how the program ended."
    errors = [finding for finding in value.findings if finding.severity == "error"]
    unexplained = sum(finding.id == UNEXPLAINED for finding in errors)
    warnings = len(value.findings) - len(errors)
    counts = {"error": len(errors) - unexplained, "unexplained error": unexplained}
    counts["warning"] = warnings
    return ", ".join(counted(number, thing) for thing, number in counts.items() if number)
