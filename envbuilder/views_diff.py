"""What differs between two locks, as text for people: a pure function, 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from .model.diff import INPUTS, Diff, Difference
from .text import LONG, shown

WIDTH = 80


def diff(value: Diff) -> str:
    """Return every difference below the title of its section, before with -, after with +."""
    lines = [*_filled("- ", value.before), *_filled("+ ", value.after)]
    section = None
    for each in value.differences:
        if each.section != section:
            lines += ["", each.section]
            section = each.section
        lines += _difference(each)
    if value.same:
        told = "the inputs above decide the same" if value.differences else "nothing differs"
        lines += ["", told]
    return "\n".join(lines)


def _difference(each: Difference) -> Iterator[str]:
    if each.section == INPUTS:
        state = "changed" if each.before and each.after else "gone" if each.before else "new"
        yield from _filled("  ", f"{each.name}: {state}")
        return
    for sign, text in (("-", each.before), ("+", each.after)):
        if text is not None:
            name = each.name if each.name.endswith(text) else f"{each.name}: {text}"
            yield from _filled(f"  {sign} ", name)


def _filled(begin: str, text: str) -> list[str]:
    return textwrap.wrap(
        shown(text, LONG),
        WIDTH,
        initial_indent=begin,
        subsequent_indent=" " * (len(begin) + 2),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [begin.rstrip()]
