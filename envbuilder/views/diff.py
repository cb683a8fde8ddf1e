"""What differs between two locks, as text for people: a pure function, 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from ..model.diff import INPUTS, Diff, Difference
from ..text import LONG, filled, shown
from .layout import joined


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
