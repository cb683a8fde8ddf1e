"""What logs mean, as text: the cause first, then what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..text import counted, filled
from ..views.layout import joined
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
            yield from _whole(each, everything)
    rest = value.findings[MOST_WHOLE:]
    if rest and not everything:
        yield ""
        yield from filled("also     ", ", ".join(each.id for each in rest) + " (--all)")
    yield ""
    yield _ending(value)


def _ranks(value: Diagnosis, everything: bool) -> Iterator[str]:
    shown = value.ranks if everything else value.ranks[:MOST_RANKS]
    for each in shown:
        said = f"{each.id} (line {each.line})" if each.id else "no known error"
        yield f"         {each.rank}: {said}"
    if len(shown) < len(value.ranks):
        yield f"         and {len(value.ranks) - len(shown)} more: --all"


def _whole(each: Symptomatic, everything: bool) -> Iterator[str]:
    label = "warning" if each.severity == "warning" else _LABELS[each.tells]
    sure = "" if each.tells in ("wait", "effect") else f" ({each.confidence})"
    yield from filled(f"{label:<8} ", f"{each.id}{sure}: {each.cause or each.hint}")
    for place in each.places if everything else each.places[:1]:
        yield from _place(place, everything)
    if each.count > len(each.places) or (each.count > 1 and not everything):
        yield f"         found {each.count} times"
    if each.cause:
        yield from filled("         do: ", each.hint, 13)
    if each.settle:
        yield from filled("         to confirm: ", each.settle, 13)
    for found in each.confirmed:
        yield from filled("         validate agrees: ", found, 13)
    if each.advisories:
        yield from filled("         advisories: ", ", ".join(each.advisories), 13)


def _place(place: LogPlace, everything: bool) -> Iterator[str]:
    rank = "" if place.rank is None else f", rank {place.rank}"
    yield f"         {place.log}:{place.line}{rank}"
    text: Sequence[str] = place.text
    if everything:
        text = (*place.before, *text, *place.after)
    elif len(text) > MOST_LINES:
        text = (*text[: MOST_LINES - 1], text[-1])
    for line in text:
        yield f"         | {line}"


def _ending(value: Diagnosis) -> str:
    errors = sum(each.severity == "error" for each in value.findings)
    warnings = len(value.findings) - errors
    if not value.findings:
        return "no known error found"
    words = [counted(errors, "error")] if errors else []
    return ", ".join([*words, *([counted(warnings, "warning")] if warnings else [])])
