"""Release notes and change logs: their statements of known forms, each with release and line.

Read are Markdown, reStructuredText and plain text: headings with a release, below them items. Items
that say more than a form are for a person, who reads the source of each draft.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

_HEADING = re.compile(
    r"[\s#=*]*(?:[A-Z][A-Za-z ]{0,20}?\s|Changes in )?[\[(]?v?(?P<release>\d+(?:\.\d+)+)(?:-\d+)?"
    r"[\])]?(?:[\s,:-]+(?:Release Notes?|[\[(]?[A-Z0-9].{0,40}))?[\s=*]*"
)
_UNRELEASED = re.compile(r"YYYY|TBD|unreleased", re.IGNORECASE)
_RULE = re.compile(r"([=*~-])\1{3,}\s*")
_BULLET = re.compile(r"\s*(?:[-*+]|#(?= [A-Z]))\s+(?=\S)")
_KNOWN = re.compile(r"known (?:issues?|caveats?|limitations?|bugs?)\b", re.IGNORECASE)
_VERSION = r"(?P<version>\d+(?:\.\d+)*)"
_NAME = r"(?P<name>[A-Z][A-Za-z0-9]*(?: MPI)?)"
_LATER = (
    r"(?:\+|,? (?:or|and) (?:later|newer|higher|above))? (?:is|are) (?:now )?(?:required|needed)"
)
_REQUIRES = (
    re.compile(
        rf"(?<!optionally )(?i:\brequires?) (?:at least )?{_NAME} (?:version )?(?:>= ?)?v?"
        rf"{_VERSION}"
    ),
    re.compile(rf"\b{_NAME} (?:version )?(?:>= ?)?v?{_VERSION}{_LATER}"),
    # Without ``before``: the last release that is not supported, not the first that is.
    re.compile(
        r"(?i:\b(?:no longer supports?|drop(?:s|ped)?(?: support (?:for|of))?|removed? support for)"
        rf") {_NAME} (?:versions? )?(?P<before>(?:older than|before|prior to|<) )?v?{_VERSION}"
        r"(?! ?(?:\+|-|or later))"
    ),
)
_FIX = re.compile(r"(?:[\w/.-]+: )*(?:fix(?:e[sd])?|resolved?)\b", re.IGNORECASE)
_FAULT = re.compile(
    r"\b(?:hang|deadlock|crash|segfault|segmentation fault|corrupt|race condition|incorrect result|"
    r"wrong result|wrong answer|data loss)",
    re.IGNORECASE,
)


class NoteStatement(NamedTuple):
    """A statement of the notes of a release.

    ``name``: what it requires, as written, from ``version`` on; '' for an issue or a fix.
    """

    kind: Literal["known issue", "requires", "fixed"]
    release: str
    text: str
    line: int
    name: str = ""
    version: str = ""


def read(text: str) -> tuple[NoteStatement, ...]:
    """Return the statements of known forms, in their order."""
    return tuple(each for item in _items(text.splitlines()) for each in _statements(*item))


def _items(lines: list[str]) -> Iterator[tuple[str, int, bool, str]]:
    """Yield release, first line, whether it is below a heading for known issues, and text."""
    release, is_known, start, words = "", False, 0, [""]
    for number, line in enumerate([*lines, ""], 1):
        following = lines[number] if number < len(lines) else ""
        title = line.lstrip().startswith("#") or bool(_RULE.fullmatch(following.strip() or " "))
        heading = _HEADING.fullmatch(line) if line.strip() else None
        # NCCL's notes are messages of commits, whose first line is the release alone.
        alone = re.fullmatch(r"\s*(?:NCCL )?\d+\.\d+\.\d+-\d+\s*", line)
        begins = _BULLET.match(line) or (words[-1].endswith(".") and line.lstrip()[:1].isupper())
        is_heading = bool(heading and (title or alone or "Changes in" in line))
        known_heading = bool(_KNOWN.search(line)) and len(line.split()) <= 6
        known_heading &= not begins or line.rstrip().endswith(":")
        if is_heading or known_heading or begins or title or not line.strip():
            if release and any(words):
                yield release, start, is_known, " ".join(filter(None, words))
            start, words = number, [""]
        if is_heading and heading:
            release, is_known = "" if _UNRELEASED.search(line) else heading["release"], False
        elif known_heading:
            is_known = True
        elif title and not _BULLET.match(line):
            is_known = False
        elif line.strip() and not _RULE.fullmatch(line.strip()):
            start = start if any(words) else number
            bullet = _BULLET.match(line)
            words.append(line[bullet.end() if bullet else 0 :].strip())


def _statements(release: str, line: int, is_known: bool, text: str) -> Iterator[NoteStatement]:
    if is_known or _KNOWN.match(text):
        yield NoteStatement("known issue", release, text, line)
        return
    if _FIX.match(text) and _FAULT.search(text):
        yield NoteStatement("fixed", release, text, line)
        return
    named = next((each for form in _REQUIRES if (each := form.search(text))), None)
    if named:
        *parts, last = named["version"].split(".")
        if named.re is _REQUIRES[-1] and not named["before"]:
            last = str(int(last) + 1)
        version = ".".join([*parts, last])
        yield NoteStatement("requires", release, text, line, named["name"], version)
