"""The grammars of the forms, strict enough to fail: conda's MatchSpec, Apptainer's definition file.

Sources: conda's documentation, "Package match specifications"; apptainer, pkg/build/types/parser/
deffile.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_NAME = r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?"
_VERSION = r"(?:[0-9]+!)?[0-9][a-z0-9_.]*(?:\+[a-z0-9_.]+)?"
# NAME, NAME=VERSION (that series), NAME==VERSION (just that one): what is rendered, and no more.
MATCH_SPEC = re.compile(rf"{_NAME}(?:==?{_VERSION})?")

SECTIONS = {
    *("help", "setup", "files", "labels", "environment", "pre", "post", "runscript", "test"),
    *("startscript", "arguments"),
}
HEADERS = {"bootstrap", "from", "stage"}


@dataclass
class Definition:
    """A definition file as Apptainer reads it."""

    header: dict[str, str] = field(default_factory=dict)
    sections: dict[str, str] = field(default_factory=dict)

    def labels(self) -> dict[str, str]:
        pairs = (line.strip().split(" ", 1) for line in self.sections["labels"].splitlines())
        return {pair[0]: pair[1].strip() if len(pair) > 1 else "" for pair in pairs if pair[0]}


def parse_definition(text: str) -> Definition:
    """Read a definition file; ValueError for what Apptainer refuses or would read otherwise."""
    if len(re.findall(r"(?mi)^bootstrap:", text)) != 1:
        raise ValueError("a second stage begins where a line begins with 'Bootstrap:'")
    argument = re.search(r"\{\{\s*\w+\s*\}\}", text)
    if argument:
        raise ValueError(f"taken for a build argument: {argument[0]}")
    found = Definition()
    section = None
    for line in text.split("\n"):
        words = line.split()
        if words and words[0].startswith("%"):
            section = words[0].lstrip("%").lower()
            if section not in SECTIONS:
                raise ValueError(f"invalid section: {section}")
            if section in found.sections:
                raise ValueError(f"section {section} begins a second time")
            found.sections[section] = ""
        elif section is not None:
            found.sections[section] += line + "\n"
        elif words and not words[0].startswith("#"):
            key, colon, value = line.split("#")[0].partition(":")
            if not colon or key.strip().lower() not in HEADERS:
                raise ValueError(f"invalid header: {line}")
            found.header[key.strip().lower()] = value.strip()
    return found
