"""Lists of modules: what ``module list`` prints in any form, and collections that Lmod saves.

https://lmod.readthedocs.io, "User Collections"; Environment Modules marks names as Lmod does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.source import Source
from ..errors import Place
from ..text import shown
from .environment_yml import EnvironmentFile
from .reading import Reading

COLLECTION = "_ModuleTable_"
# Lmod and Environment Modules number modules and mark them: 1) gcc/9.3.0 (D), 2) cuda/11.4 <aL>.
_NUMBERED = re.compile(r"(?:^|\s)(\d{1,6})\)\s+(\S+?)(?=\(|<|\s|$)")
_MARKS = re.compile(r"\([\w,:\s]*\)|<[\w:]*>")
# A line of a job script.
_LOAD = re.compile(r"^\s*(module\s+(load|add)|ml(\s+load)?)(\s+--?\S+)*\s+")
# A line of a script, or of a collection of Environment Modules, that loads nothing.
_OTHER = re.compile(
    r"\s*(module|ml)\s+(use|unuse|purge|reset|sw\w+|unload|rm|list|save|restore)\b.*"
)
_MODULE = re.compile(r"[A-Za-z0-9_][\w.+-]*(?:/[\w.+:-]+)*")
_LOADED_HEADING = re.compile(r"^\s*Currently Loaded Module", re.MULTILINE | re.IGNORECASE)
# What follows is not loaded.
_INACTIVE = re.compile(r"Inactive Modules", re.IGNORECASE)
# Headings, in the languages of Lmod too.
_HEADING = re.compile(r"#.*|.*:\s*|No modules? loaded.*", re.IGNORECASE)
_KEY = re.compile(r"(?:^|,\s*|:\s*)\w{1,3}:\s+\S")
_LOADED = re.compile(r"\W*(?:fullName\W+(?P<name>[\w.+:/-]+)|loadOrder\W+(?P<order>\d{1,6})\b)")
_MODULEPATH = re.compile(r'(mpathA|\["mpathA"\])\s*=')


def is_one(text: str) -> bool:
    """Return whether a text is a list of modules: under its heading, or names in each line."""
    if COLLECTION in text:
        return True
    rows = [_names(line) for _, line in _rows(text) if not _OTHER.fullmatch(line)]
    has_version = any("/" in name for names in rows for name in names)
    return has_version and (all(rows) or _LOADED_HEADING.search(text) is not None)


def read(source: Source) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return the modules in the order in which they are loaded, and notes."""
    reading = Reading("module list writes such a file")
    read_rows = _saved if COLLECTION in source.text else _listed
    rows = read_rows(reading, source)
    places = {name: place for _, name, place in sorted(rows, key=lambda row: row[0])}
    return EnvironmentFile(modules=tuple(places), only_pip=True, places=places), tuple(
        reading.notes
    )


def _listed(reading: Reading, source: Source) -> Iterator[tuple[int, str, Place]]:
    """Yield number, name and place of each module; note lines without one."""
    count = 0
    for line_number, line in _rows(source.text):
        if not _names(line):
            reading.note(Place(source.file, line_number, 1), f"not read: {shown(line.strip())}")
        numbers = [int(found[1]) for found in _NUMBERED.finditer(line)]
        for column, name in enumerate(_names(line)):
            count += 1
            order = numbers[column] if column < len(numbers) else count
            yield order, name, Place(source.file, line_number, line.index(name) + 1)


def _rows(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if _INACTIVE.match(line.strip()):
            break
        if line.strip() and not _HEADING.fullmatch(line.strip()) and not _KEY.match(line.strip()):
            yield number, line


def _names(line: str) -> list[str]:
    """Return the names in a line; none if it is another text."""
    if _NUMBERED.search(line):
        return [found[2] for found in _NUMBERED.finditer(line)]
    words = _LOAD.sub("", _MARKS.sub(" ", line)).split() if not _OTHER.fullmatch(line) else []
    return words if all(_MODULE.fullmatch(word) for word in words) else []


def _saved(reading: Reading, source: Source) -> Iterator[tuple[int, str, Place]]:
    """Yield order, name and place of each module in a collection: a table of Lua, read as text."""
    name, place = "", Place(source.file, 1, 1)
    for number, line in enumerate(source.text.splitlines(), start=1):
        found = _LOADED.match(line)
        if found and found["name"]:
            name, place = found["name"], Place(source.file, number, 1)
        elif found and name:
            yield int(found["order"]), name, place
            name = ""
        elif _MODULEPATH.search(line):
            path = Place(source.file, number, 1)
            reading.note(path, f"the MODULEPATH of {shown(source.file)} is left out: a site has it")
