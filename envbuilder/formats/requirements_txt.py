"""requirements.txt and what ``pip freeze`` and ``uv export`` print: lines for pip.

https://pip.pypa.io, "Requirements File Format". Files that it includes with ``-r`` are read, and
the bounds of those with ``-c`` apply to its own packages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ..documents.source import Source
from ..errors import Place
from ..target_tools.names import normalize
from ..text import shown
from .environment_yml import EnvironmentFile
from .reading import Reading

Beside = Callable[[str], Source | None]
"""Returns a file by its path relative to the one that is read; None: it cannot be read."""

_LINE = re.compile(
    r"-\S.*|[A-Za-z0-9][A-Za-z0-9._-]*\s*(\[[^\]]*\]\s*)?(([@<>!~;(]|==|--[a-z]).*)?|\S+://\S+|\.\S*"
    r"|\S*/\S+\.(whl|tar\.gz|zip)"
)
_COMMENT = re.compile(r"(^|\s)#.*")
_HASH = re.compile(r"\s+--hash[= ]\S+")
_INCLUDE = re.compile(r"(-r|--requirement|-c|--constraint)[= ]?\s*(\S+)")
_BINDING = frozenset({"-c", "--constraint"})
_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?\s*([<>=!~][^;@]*)?")
_WHEEL = re.compile(r"([^/\\#\s]+\.whl)(#\S*)?$")
_MOST_FILES = 50


def is_one(text: str) -> bool:
    """Return whether nearly all lines of a text are such as pip reads."""
    lines = [line for _, line in _lines(text)]
    return bool(lines) and sum(bool(_LINE.fullmatch(line)) for line in lines) > len(lines) * 3 / 4


def first_other(text: str) -> tuple[int, str] | None:
    """Return number and text of the first line that pip does not read."""
    return next((line for line in _lines(text) if not _LINE.fullmatch(line[1])), None)


def read(source: Source, beside: Beside) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return what it asks for, and notes on what was left out."""
    files = _Files(beside)
    files.read(source)
    pip = files.reading.bounded(files.places, files.constraints)
    asked = EnvironmentFile(pip=tuple(pip), software=files.python(), only_pip=True, places=pip)
    return asked, tuple(files.reading.notes)


def included(line: str, beside: Beside) -> tuple[EnvironmentFile, tuple[str, ...]] | None:
    """Return what a line ``-r FILE`` includes; None: it is another line, or cannot be read."""
    found = _INCLUDE.fullmatch(line)
    source = beside(found[2]) if found and found[1] not in _BINDING else None
    return read(source, beside) if source else None


class _Reading(Reading):
    """A reading that binds packages by constraints."""

    def bounded(
        self, places: dict[str, Place], constraints: dict[str, tuple[str, Place]]
    ) -> dict[str, Place]:
        """Return the lines with the bounds of constraints, each with its place."""
        bound: dict[str, Place] = {}
        for text, place in places.items():
            line = text
            name = _NAME.match(line)
            key = normalize(name[1]) if name else ""
            bounds, _ = constraints.get(key, ("", place))
            if name and bounds and "@" not in line:
                begin, end = line[: name.end()].rstrip(), line[name.end() :]
                self.note(place, f"{shown(line)} is bound by a constraint: {shown(bounds)}")
                line = f"{begin}{',' if name[3] else ''}{bounds}{end and f' {end.strip()}'}"
            bound.setdefault(line, place)
        return bound


@dataclass(frozen=True)
class _Files:
    """The lines of a file and of those that it includes, each with its place."""

    beside: Beside
    reading: _Reading = field(default_factory=lambda: _Reading("pip freeze writes such a file"))
    places: dict[str, Place] = field(default_factory=dict)
    constraints: dict[str, tuple[str, Place]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    pythons: set[str] = field(default_factory=set)

    def read(self, source: Source, *, binds: bool = False) -> None:
        """Read a file. *binds*: its lines are constraints."""
        self.names.add(source.file)
        hashed = next((number for number, line in _lines(source.text) if _HASH.search(line)), None)
        if hashed:
            text = "the hashes are left out; a lock contains those of files"
            self.reading.note(Place(source.file, hashed, 1), text)
        for number, line in _lines(source.text):
            place = Place(source.file, number, 1)
            text = self.reading.clean(_HASH.sub("", line), place)
            found = _INCLUDE.fullmatch(text)
            if found:
                self._include(found[2], place, binds=binds or found[1] in _BINDING)
            elif binds:
                self._bind(text, place)
            elif text in self.places:
                self.reading.note(place, f"{shown(text)} is listed twice; it counts once")
            else:
                self.places[self._named_wheel(text)] = place

    def _include(self, name: str, place: Place, *, binds: bool) -> None:
        source = self.beside(name) if "://" not in name else None
        if source is None:
            self.reading.note(place, f"{shown(name)} is left out: the file cannot be read")
        elif source.file not in self.names and len(self.names) < _MOST_FILES:
            self.read(source, binds=binds)

    def _named_wheel(self, text: str) -> str:
        """Return a wheel outside an index with its name before it; other lines unchanged."""
        # lazy import: few files name wheels
        from packaging.utils import InvalidWheelFilename, parse_wheel_filename

        wheel = _WHEEL.search(text)
        if wheel is None or text.startswith("-"):
            return text
        try:
            name, _, _, tags = parse_wheel_filename(wheel[1].replace("%2B", "+"))
        except InvalidWheelFilename:
            return text
        self.pythons.update(tag.interpreter for tag in tags)
        return text if " @ " in text else f"{name} @ {text}"

    def python(self) -> tuple[tuple[str, str], ...]:
        """Return the Python that the wheels outside an index are for, if it is one."""
        found = [re.fullmatch(r"cp(\d)(\d+)", each) for each in self.pythons]
        series = {f"=={each[1]}.{each[2]}.*" for each in found if each}
        return (("python", series.pop()),) if len(series) == 1 else ()

    def _bind(self, text: str, place: Place) -> None:
        name = _NAME.fullmatch(text.partition(";")[0].strip())
        if name and name[3]:
            self.constraints[normalize(name[1])] = (name[3].strip(), place)
        elif not text.startswith("-"):
            self.reading.note(place, f"the constraint {shown(text)} is left out: not a version")


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
