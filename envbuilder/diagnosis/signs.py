"""What is looked for in a log: a regular expression, and the plain text that it cannot do without.

A log may have a gigabyte, and there are hundreds of expressions. Where none of an expression's
*needles* is in a piece of text, which is quick to see, it need not be tried there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

# Shorter runs are in every text.
_SHORTEST = 4
# What may match the end of a line, so that a match goes over several.
_LINE_END = re.compile(r"\n|\\[nsSWD]|\[\^(?!\\n)")
_LITERAL_ESCAPE = re.compile(r"\\[^A-Za-z0-9]")


@dataclass(frozen=True)
class Sign:
    """An expression, by the name that its matches are known by.

    ``any_case``: whether letter case does not matter.
    ``keep``: which matches count: the first ones of each rank, only the first, those with different
    texts, or the last one. ``ignored``: a text of matches that do not count.
    """

    id: str
    pattern: str
    keep: Literal["first", "once", "distinct", "last"] = "first"
    ignored: str | None = None
    any_case: bool = True

    @cached_property
    def expression(self) -> re.Pattern[str]:
        """The expression, whose ``^`` and ``$`` are those of a line."""
        return re.compile(self.pattern, self._flags)

    @cached_property
    def exception(self) -> re.Pattern[str] | None:
        """The expression of ``ignored``."""
        return None if self.ignored is None else re.compile(self.ignored, self._flags)

    @property
    def _flags(self) -> int:
        return re.MULTILINE | (re.IGNORECASE if self.any_case else 0)

    @cached_property
    def one_line(self) -> bool:
        """Whether every match is within one line, by the pattern's text."""
        return not _LINE_END.search(self.pattern)

    @cached_property
    def needles(self) -> tuple[str, ...] | None:
        """Texts in lower case of which every match has at least one; None: any.

        They are found in the pattern's own text, so they may only be too few, never wrong.
        """
        found = _needles(self.pattern)
        return found and tuple(each.lower() for each in found)

    @cached_property
    def words(self) -> tuple[tuple[str, str], ...]:
        """Each needle with the longest part of it that is a part of a word."""
        return tuple(
            (needle, max(WORD.findall(needle), key=len, default=""))
            for needle in self.needles or ()
        )


WORD = re.compile(r"[a-z]+")
"""A word of a text in lower case: the words of a text are fewer than its letters by far."""


def _needles(pattern: str) -> tuple[str, ...] | None:
    """Return the longest literal of each alternative; None: one has none."""
    found: list[str] = []
    for branch in _branches(pattern):
        those = _of_branch(branch)
        if those is None:
            return None
        found += those
    return tuple(found)


def _of_branch(branch: str) -> tuple[str, ...] | None:
    runs, groups = [""], []
    for atom, quantifier in _atoms(branch):
        optional = quantifier[:1] in ("?", "*", "{")
        if len(atom) == 1 and atom not in ".^$":
            literal = atom
        elif _LITERAL_ESCAPE.fullmatch(atom):
            literal = atom[1]
        else:
            literal = ""
            if atom[0] == "(" and not optional:
                groups.append(atom)
        if literal and not optional:
            runs[-1] += literal
        if quantifier or not literal:
            runs.append("")
    longest = max(runs, key=len)
    if len(longest) >= _SHORTEST:
        return (longest,)
    inner = (_needles(text) for text in map(_inside, groups) if text is not None)
    return next((each for each in inner if each), None)


def _inside(group: str) -> str | None:
    """Return what a group must match; None for a look at what stands beside."""
    start = re.match(r"\((\?:|\?-i:|\?P<\w+>|(?!\?))", group)
    return group[start.end() : -1] if start else None


def _branches(pattern: str) -> Iterator[str]:
    """Yield the alternatives outside of all groups."""
    branch = ""
    for atom, quantifier in _atoms(pattern):
        if atom == "|":
            yield branch
            branch = ""
        else:
            branch += atom + quantifier
    yield branch


_CLASS = r"\[\^?\]?(?:\\.|[^\]\\])*\]"
_ATOM = re.compile(rf"\\.|{_CLASS}|[^\\]", re.DOTALL)
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d*,?\d*\})[?+]?")


def _atoms(pattern: str) -> Iterator[tuple[str, str]]:
    """Yield each character, escape, class or whole group, with its quantifier."""
    place = 0
    while place < len(pattern):
        end = _group_end(pattern, place) if pattern[place] == "(" else _atom_end(pattern, place)
        quantifier = _QUANTIFIER.match(pattern, end)
        yield pattern[place:end], quantifier[0] if quantifier else ""
        place = quantifier.end() if quantifier else end


def _atom_end(pattern: str, place: int) -> int:
    found = _ATOM.match(pattern, place)
    return found.end() if found else place + 1


def _group_end(pattern: str, place: int) -> int:
    depth = 0
    while place < len(pattern):
        depth += {"(": 1, ")": -1}.get(pattern[place], 0)
        place = _atom_end(pattern, place)
        if depth == 0:
            break
    return place
