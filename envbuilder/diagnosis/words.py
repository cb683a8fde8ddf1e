"""What the text of an error states: its reason, the words to search for, the names of libraries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import accumulate

from ..knowledge.log_sources import LibraryName, library_name
from ..knowledge.symptoms import Symptom
from ..target_tools.names import without_credentials
from ..text import shown
from .search import Hit

_MOST_WORDS = 12
_FEWEST = 4
_SHORT = 200
_LONGEST = 400
_WIDTH = 300
_REASONS = ("root", "other", "report", "wrapper")
_GAP = ".{0,80}?"
# Text that differs between runs: times, tags of ranks, addresses, places in sources, numbers.
_VARYING = re.compile(
    r"\d{4}-\d\d-\d\d[T ][\d:.,]+|\[[^\]\s]*\d[^\]]*\]|\S+:\d+:\d+|0x[0-9a-f]+|\b[0-9a-f]{16,}\b|"
    r"\S+\.(?:cc|cpp|c|h|hpp|cu|py|go):\d+|\d+(?:\.\d+){3}(?::\d+)?|(?<![^\s`'\"(=])/\S+|\b\d[\d.]*\b",
    re.IGNORECASE,
)
_KINDS = {"library": "soname", "symbol": "symbol", "version": "version", "path": "path"}


def reason(hit: Hit) -> str:
    """Return the line of an error that states its reason."""
    names = sorted(hit.groups, key=lambda name: not name.startswith("root"))
    reasons = (hit.groups[name] for name in names if name.startswith(_REASONS))
    text = next(filter(None, reasons), hit.text[0] if hit.text else "")
    return clipped(without_credentials(" ".join(text.split())))


def clipped(text: str) -> str:
    """Return text on one line; of a long one the begin and the end, which states the cause."""
    if len(text) <= _WIDTH:
        return shown(text, _WIDTH)
    begin, end = text[:100].rstrip(), text[105 - _WIDTH :].lstrip()
    return f"{shown(begin, 100)} ... {shown(end, _WIDTH)}"


def search_words(hit: Hit) -> str:
    """Return the words of an error that are the same in every run, to search for."""
    text = reason(hit)
    if len(text) > _SHORT:  # wrappers come first, the cause last
        ends = accumulate(reversed(text.split(": ")), lambda end, part: f"{part}: {end}")
        text = next((end for end in ends if len(end.split()) >= _FEWEST), text)
    parts = [part.split() for part in _VARYING.split(text)]
    words = [word.strip("\"'`()[]{},;:<>") for part in parts for word in part]
    return " ".join([word for word in words if len(word) > 1][:_MOST_WORDS])


def line_pattern(text: str) -> str:
    """Return an expression for the lines that differ from this one only in what varies."""
    parts = [re.escape(" ".join(part.split())) for part in _VARYING.split(text)]
    words = [re.sub(r"\d+", r"\\d+", part.replace(r"\ ", " +")) for part in parts if part]
    lengths = accumulate(len(each) + len(_GAP) for each in words)
    return _GAP.join(each for each, end in zip(words, lengths, strict=True) if end <= _LONGEST)


def name_libraries(
    symptom: Symptom, groups: Mapping[str, str], rows: tuple[LibraryName, ...]
) -> tuple[str | None, str]:
    """Return cause and hint of a symptom with what the names of its groups tell."""
    cause, hint = symptom.cause, symptom.hint
    for group, kind in _KINDS.items():
        named = library_name(rows, kind, groups[group]) if groups.get(group) else None
        if named is None:
            continue
        row, parts = named
        cause = f"{cause}; it is {row.text.format(**parts)}"[:480] if cause else None
        hint = row.hint.format(**parts) if row.hint else hint
    return cause, hint
