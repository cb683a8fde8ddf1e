"""requirements.txt and what ``pip freeze`` prints: lines for pip, some with hashes.

https://pip.pypa.io, "Requirements File Format".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.source import Source
from ..errors import Place
from .environment_yml import EnvironmentFile
from .reading import Reading

_LINE = re.compile(
    r"-\S.*|[A-Za-z0-9][A-Za-z0-9._-]*\s*(\[[^\]]*\]\s*)?([@<>=!~;(].*)?|\S+://\S+|\.\S*"
)
_COMMENT = re.compile(r"(^|\s)#.*")
_HASH = re.compile(r"\s+--hash[= ]\S+")


def is_one(text: str) -> bool:
    """Return whether each line of a text is one that pip reads."""
    lines = [line for _, line in _lines(text)]
    return bool(lines) and all(_LINE.fullmatch(line) for line in lines)


def read(source: Source) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return what it asks for, and notes on what was left out."""
    reading = Reading("pip freeze writes such a file")
    places: dict[str, Place] = {}
    for number, line in _lines(source.text):
        place = Place(source.file, number, 1)
        without_hashes = _HASH.sub("", line)
        if without_hashes != line:
            reading.note(place, "its hashes are left out; a lock contains those of the files")
        places.setdefault(reading.clean(without_hashes, place), place)
    return EnvironmentFile(pip=tuple(places), only_pip=True, places=places), tuple(reading.notes)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line; a backslash joins it with the next one."""
    begin = 0
    parts: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        begin = begin if parts else number
        parts.append(_COMMENT.sub("", line).strip())
        if parts[-1].endswith("\\"):
            parts[-1] = parts[-1][:-1].strip()
            continue
        joined = " ".join(filter(None, parts))
        parts = []
        if joined:
            yield begin, joined
