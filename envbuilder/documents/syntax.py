"""What a YAML parser says of broken YAML, in plain words."""

from __future__ import annotations

from typing import Any

from ..errors import Place, Problem
from ..text import shown

# The parser's words (those of its C part, then those of its Python part) and ours: message, hint.
_WORDS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("mapping values are not allowed",),
        "a key is not allowed here",
        "check the indentation, or put the value in quotes",
    ),
    (
        ("sequence entries are not allowed",),
        "a list cannot begin on the line of its key",
        "begin each item on a separate line: '- item'",
    ),
    (
        ("expected ',' or ']'",),
        "a list in [ ] is not closed, or a comma is missing",
        "write it as [one, two]",
    ),
    (
        ("expected ',' or '}'",),
        "a mapping in { } is not closed, or a comma is missing",
        "write it as {one: 1, two: 2}",
    ),
    (
        ("unexpected end of stream",),
        "a quote is not closed",
        "close it on the same line",
    ),
    (
        ("expected key", "expected '-' indicator", "expected <block end>"),
        "this does not fit the lines above",
        "check the indentation; if text follows a closing quote, put the whole value in quotes",
    ),
    (("could not find expected ':'",), "a key has no ':'", "write 'key: value'"),
    (
        ("expected node content", "expected the node content"),
        "a value cannot begin with this character",
        "put the value in quotes",
    ),
    (
        ("unknown escape character", "escape sequence of", "Unicode character escape code"),
        "an unknown escape after a backslash",
        "use 'single quotes' for text with backslashes",
    ),
    (
        ("<document start>",),
        "this does not belong to the document",
        "keep one document in a file, without '...' or a second name after '&'",
    ),
    (
        ("directive", "incompatible YAML document"),
        "'%' directives are not allowed",
        "delete the line",
    ),
    (
        ("document start",),
        "this does not belong to the document",
        "keep one document in a file",
    ),
)


_MARKS = ("a block scalar", "an alias", "an anchor", "a tag")
_UNCLOSED = ("unexpected end of stream", "expected ',' or ']'", "expected ',' or '}'")


def in_plain_words(error: Any, text: str, file: str) -> Problem:
    """Return the problem that a yaml.MarkedYAMLError reports about *text*."""
    mark = error.problem_mark or error.context_mark
    complaint = f"{error.problem or ''} {error.context or ''}"
    if mark is None:
        return Problem(
            "document.not-yaml", f"not YAML: {shown(complaint.strip())}", Place(file, 1, 1)
        )
    # Where something is left open, where it begins helps more than where the parser gives up.
    unclosed = any(pattern in complaint for pattern in _UNCLOSED) and error.context_mark is not None
    where = error.context_mark if unclosed else mark
    place = Place(file, where.line + 1, where.column + 1)
    if "cannot start any token" in complaint:
        return _bad_start(_character(text, mark), place)
    if any(pattern in complaint for pattern in _MARKS) and error.context_mark is not None:
        # ">=3.8", "*" and "!=2" without quotes: a folded text, an alias and a tag to YAML.
        begin = error.context_mark
        return _bad_start(_character(text, begin), Place(file, begin.line + 1, begin.column + 1))
    for patterns, message, hint in _WORDS:
        if any(pattern in complaint for pattern in patterns):
            return Problem("document.not-yaml", message, place, (hint,))
    return Problem("document.not-yaml", f"not YAML: {shown(complaint.strip())}", place)


def _character(text: str, mark: Any) -> str:
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    return line[mark.column : mark.column + 1]


def _bad_start(character: str, place: Place) -> Problem:
    if character == "\t":
        return Problem(
            "document.tab", "a tab is not allowed as indentation", place, ("indent with spaces",)
        )
    message = f"a value cannot begin with '{shown(character)}'"
    return Problem("document.missing-quotes", message, place, ("put the value in quotes",))
