"""Software with its versions, as package managers and module systems list it.

Reads requirements.txt and ``pip freeze``, ``pip list``, ``conda list``, ``conda list --export``,
``module list -t`` and ``module list``. Nothing is fetched, and no other file is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..knowledge.terms import Origin

_REQUIREMENT = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*={2,3}\s*([^\s;,#\\]+)"
)
_EXPORTED = re.compile(r"([A-Za-z0-9_][A-Za-z0-9._-]*)=([^=\s]+)=(\S+)")
_ROW = re.compile(r"([A-Za-z0-9_][A-Za-z0-9._-]*)\s+(\d\S*)((?:\s+\S+)*)")
_MODULE = re.compile(r"[A-Za-z0-9][\w.+-]*(?:/[\w.+-]+)+")
# Lmod and Environment Modules number modules and mark them: 1) gcc/9.3.0 (D), 2) cuda/11.4 <aL>.
_MARKS = re.compile(r"\b\d+\)\s|\([\w,:\s]*\)|<[\w:]*>")
_HEADINGS = re.compile(
    r"(#.*|@.*|-+(\s+-+)*|package\s+version.*|currently loaded module.*|where:|no modules? loaded.*"
    r"|key:|.*:\s*)",
    re.IGNORECASE,
)


class ListedSoftware(NamedTuple):
    """One entry of a list. ``version``: None for a module, whose name contains it."""

    line: int
    name: str
    version: str | None
    origin: Origin


class UnreadLine(NamedTuple):
    """A line of a list that states no version that can be read."""

    line: int
    text: str


def read_software(text: str) -> Iterator[ListedSoftware | UnreadLine]:
    """Yield what each line of a list states, in its order."""
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped and not _HEADINGS.fullmatch(stripped):
            yield from _read_line(number, stripped)


def _read_line(number: int, line: str) -> Iterator[ListedSoftware | UnreadLine]:
    requirement, exported = _REQUIREMENT.match(line), _EXPORTED.fullmatch(line)
    row = _ROW.fullmatch(line)
    modules = _MARKS.sub(" ", line).split()
    if requirement:
        yield ListedSoftware(number, requirement[1], requirement[2], "pip")
    elif exported:
        from_index = exported[3] == "pypi_0"
        yield ListedSoftware(number, exported[1], exported[2], "pip" if from_index else "conda")
    elif modules and all(_MODULE.fullmatch(word) for word in modules):
        for module in modules:
            yield ListedSoftware(number, module, None, "module")
    elif row:
        columns = row[3].split()
        is_conda = bool(columns) and columns[-1] != "pypi" and not columns[0].startswith("/")
        yield ListedSoftware(number, row[1], row[2], "conda" if is_conda else "pip")
    else:
        yield UnreadLine(number, line)
