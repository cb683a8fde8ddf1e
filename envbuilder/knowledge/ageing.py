"""How far rows were confirmed: ranges without an upper end also contain releases of the future."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from .matching import ranges, rows, subjects
from .ranges import ANY_VERSION, series, sort_key, version
from .rows import Coupling, Knowledge, Ranges, Row

MAX_DAYS = 180
"""Days after which knowledge counts as old."""

_MAX_RELEASES = 2
_UPPER_ENDS = frozenset({"<", "<=", "==", "~="})


class OutdatedEnd(NamedTuple):
    """An open range of a row, and the releases since the one that it was confirmed for."""

    row: Row
    component: str
    confirmed_to: str | None
    later: tuple[str, ...]


def confirmed_releases(row: Row) -> Mapping[str, str]:
    """Return the last release of each component that the row was confirmed for."""
    if isinstance(row.confirmed_to, str):
        return {next(iter(subjects(row))): row.confirmed_to}
    return row.confirmed_to or {}


def is_confirmed(release: str, limit: str) -> bool:
    """Whether a release is no later than *limit*; 13.3 includes 13.3.1."""
    parsed = version(limit)
    parts = len(parsed.release) if parsed else 1
    return series(release, parts) <= series(limit, parts)


def open_ends(row: Row, knowledge: Knowledge) -> tuple[str, ...]:
    """Return the components of which a row means all later releases, if releases are recorded."""
    # Which releases are needed holds for those of the others.
    return tuple(
        name
        for name, bounds in ranges(row).items()
        if not (isinstance(row, Coupling) and name not in row.given)
        and _is_open(bounds)
        and recorded_releases(knowledge, name)
    )


def _is_open(ranges: Ranges) -> bool:
    several = (ranges,) if isinstance(ranges, str) else ranges
    return any(
        each == ANY_VERSION
        or not any(specifier.operator in _UPPER_ENDS for specifier in SpecifierSet(each))
        for each in several
    )


def outdated_ends(knowledge: Knowledge) -> Iterator[OutdatedEnd]:
    """Yield the open ranges that were not confirmed for more than two of the recorded releases."""
    for row in rows(knowledge):
        limits = confirmed_releases(row)
        for name in open_ends(row, knowledge) if row.replaced_by is None else ():
            limit = limits.get(name)
            later = tuple(
                release
                for release in recorded_releases(knowledge, name)
                if limit is None or not is_confirmed(release, limit)
            )
            if limit is None or len(later) > _MAX_RELEASES:
                yield OutdatedEnd(row, name, limit, later)


def recorded_releases(knowledge: Knowledge, component: str) -> list[str]:
    """Return all releases of a component that are recorded, oldest first."""
    existing = knowledge.existing.get(component)
    releases = {release.version for release in knowledge.releases.get(component, ())}
    return sorted(releases.union(existing.versions if existing else ()), key=sort_key)


def days_old(knowledge: Knowledge, today: date) -> int:
    """Return the age of the recorded releases; 0: not recorded."""
    if knowledge.recorded is None:
        return 0
    return (today - date.fromisoformat(knowledge.recorded)).days
