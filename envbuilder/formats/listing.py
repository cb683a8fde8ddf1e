"""Tables of installed packages: ``conda list``, ``conda list --export``, ``pip list``.

https://docs.conda.io/projects/conda, "conda list".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..documents.source import Source
from ..errors import Place
from ..text import shown
from .environment_yml import EnvironmentFile
from .package_rows import channel_losses
from .packages import DEFAULTS
from .reading import Reading

_ROW = re.compile(r"([A-Za-z0-9_][\w.-]*)\s+([^\s/]\S*)(?:\s+(\S+))?(?:\s+(\S+))?\s*")
_EXPORTED = re.compile(r"([A-Za-z0-9_][\w.-]*)=([^=\s]+)=([^=\s]+)")
_PIP_ROW = re.compile(r"([A-Za-z0-9][\w.-]*)\s+(\d\S*)(?:\s+(\S+))?(?:\s+\S+)?\s*")
_OF_PIP = frozenset({"pypi", "<pip>"})
# What conda writes as the build of a package that pip installed from a folder.
_EDITABLE = "dev_0"
_HEADING = re.compile(r"#.*|@.*|[\s-]*|Package\s+Version.*")


class _Row(NamedTuple):
    name: str
    version: str
    build: str | None = None
    channel: str | None = None


def is_conda(text: str) -> bool:
    """Return whether a text is what conda lists: rows under its heading, or an export."""
    rows = [line for line in text.splitlines() if not _HEADING.fullmatch(line)]
    heading = re.search(r"^# Name +Version|^# packages in environment", text, re.MULTILINE)
    exported = [_EXPORTED.fullmatch(line.strip()) for line in rows]
    return bool(rows) and bool(heading or all(exported))


def is_pip(text: str) -> bool:
    """Return whether a text is what ``pip list`` prints."""
    return re.search(r"^Package +Version", text, re.MULTILINE) is not None


def read(source: Source) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return the packages with their versions and builds, and notes on what was left out."""
    reading = Reading("conda list writes such a file")
    pattern = _PIP_ROW if is_pip(source.text) else _ROW
    specs: dict[str, Place] = {}
    pip: dict[str, Place] = {}
    rows: list[tuple[str, str, Place]] = []
    for place, line in _rows(source):
        row = _row(line, pattern)
        if row is None or (row.channel or "").startswith("<dev"):
            reading.note(place, f"{shown(line)} is left out: not a package of a channel or index")
        elif (pattern is _PIP_ROW and row.build) or row.build == _EDITABLE:
            reading.note(place, f"{shown(line)} is left out: an editable package")
        elif pattern is _PIP_ROW or row.channel in _OF_PIP or row.build == "pypi_0":
            pip[f"{row.name}=={row.version}"] = place
        else:
            # An empty column means conda's own channels; an export has no such column.
            if not _EXPORTED.fullmatch(line):
                rows.append((row.channel or DEFAULTS, row.name, place))
            specs[f"{row.name}={row.version}={row.build}" if row.build else row.name] = place
    channels = list(dict.fromkeys(channel for channel, _, _ in rows))
    if len(channels) > 1:
        text = f"no order of channels is stated; using {', '.join(channels)}, as the rows have them"
        reading.note(rows[0][2], text)
        for place, loss in channel_losses(rows, channels[0]):
            reading.note(place, loss)
    elif not channels:
        _note_channels(reading, source, specs)
    return EnvironmentFile(
        channels=tuple(channels),
        specs=tuple(specs),
        pip=tuple(pip),
        only_pip=not specs,
        places={**specs, **pip},
    ), tuple(reading.notes)


def _note_channels(reading: Reading, source: Source, specs: dict[str, Place]) -> None:
    """Note the packages of an export whose build strings only other channels have."""
    if all(_EXPORTED.fullmatch(line) for _, line in _rows(source)):
        for spec, place in specs.items():
            if re.search(r"=py\d[.\d]*_cuda", spec):
                reading.note(place, f"no channel is named, and conda's own lack {shown(spec)}")


def _rows(source: Source) -> Iterator[tuple[Place, str]]:
    for number, line in enumerate(source.text.splitlines(), start=1):
        if not _HEADING.fullmatch(line):
            yield Place(source.file, number, 1), line.strip()


def _row(line: str, pattern: re.Pattern[str]) -> _Row | None:
    found = _EXPORTED.fullmatch(line) or pattern.fullmatch(line)
    return _Row(*found.groups()) if found else None
