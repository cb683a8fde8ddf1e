"""Packages in the rows of a list or lock: of conda by their URLs, of pip by name and version."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..documents.tree import Pairs
from ..errors import Place
from ..redaction.secret_queries import without_secret_query
from ..text import shown
from .packages import CondaEntry, PipEntry, url_fault
from .reading import Reading

_HASHES = {"sha256": re.compile(r"[0-9a-f]{64}"), "md5": re.compile(r"[0-9a-f]{32}")}


def _hash(reading: Reading, holder: Pairs | None, name: str) -> str | None:
    """Return a hash of a package, None where there is none."""
    text = reading.text(holder, name, required=False) if holder else None
    if holder and text is not None and not _HASHES[name].fullmatch(text):
        place = holder.index[name][1].place
        reading.wrong("package-list.malformed-hash", place, f"not a {name}: {shown(text)}")
        return None
    return text


def conda_entry(
    reading: Reading,
    url: str,
    place: Place,
    hashes: Pairs | None = None,
    size: str | None = None,
    depends: tuple[str, ...] = (),
) -> CondaEntry | None:
    """Return a conda package; None, and a problem, where the URL is none of one."""
    found = reading.clean(url, place)
    fault = url_fault(found)
    if fault:
        message = f"not the URL of a conda package: {shown(found)}: {fault}"
        reading.wrong("package-list.malformed-url", place, message)
        return None
    sums = {name: _hash(reading, hashes, name) for name in _HASHES}
    number = int(size) if size and size.isdecimal() else None
    return CondaEntry(found, size=number, depends=depends, place=place, **sums)


def pip_entry(
    reading: Reading, holder: Pairs, url: str, hashes: Pairs | None, depends: tuple[str, ...]
) -> PipEntry | None:
    """Return a file of the package index; None, and a note, where it is none."""
    name = reading.text(holder, "name", required=False) or url
    # A signed link is one of an index, and pip is asked for the file's release.
    found = reading.clean(without_secret_query(url), holder.place)
    if not re.match(r"(https?|file)://", found):
        reading.note(holder.place, f"{shown(name)} is left out: {shown(found)} is not of an index")
        return None
    version = reading.text(holder, "version")
    if version is None:
        return None
    if not found.endswith(".whl"):
        place = holder.index["url"][1].place if "url" in holder.index else holder.place
        reading.note(place, f"{shown(name)} has no wheel: it is compiled")
    sha256 = _hash(reading, hashes, "sha256")
    return PipEntry(name, version, found, sha256, depends, holder.place)


def channel_losses(
    rows: Iterable[tuple[str, str, Place]], first: str
) -> Iterator[tuple[Place, str]]:
    """Yield a loss for each channel but the first one. A row: channel, package, place."""
    names: dict[str, list[str]] = {}
    places: dict[str, Place] = {}
    for channel, name, place in rows:
        # A package of the first channel is solved from there anyway.
        if channel != first and not channel.endswith(f"/{first}"):
            names.setdefault(channel, []).append(name)
            places.setdefault(channel, place)
    for channel, place in places.items():
        text = f"{shown(', '.join(names[channel]), 240)}: that the channel is {shown(channel)}"
        yield place, f"{text} is left out"
