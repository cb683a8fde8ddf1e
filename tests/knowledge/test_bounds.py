"""Every error row holds just inside each of its bounds, and not just outside of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from envbuilder.knowledge.ranges import matches
from envbuilder.knowledge.rows import Advisory, Coupling, FlagRule, Knowledge, Ranges, Selector
from envbuilder.knowledge.terms import Origin
from tests.shipped import read_shipped

from .bounds import around, bounds, inside
from .stacks import AnyRow, Part, Reader, Stack

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough

KNOWN = read_shipped().value
ROWS: tuple[AnyRow, ...] = (*KNOWN.advisories, *KNOWN.couplings, *KNOWN.flag_rules)
ERRORS = [row for row in ROWS if row.severity == "error"]


def each_range(ranges: Ranges) -> tuple[str, ...]:
    return (ranges,) if isinstance(ranges, str) else tuple(ranges)


def ranges_of(row: AnyRow) -> dict[str, tuple[str, ...]]:
    """Return the ranges of every component that a row looks at."""
    if isinstance(row, FlagRule):
        return {row.runtime: each_range(row.range)}
    found: dict[str, tuple[str, ...]] = {}
    if isinstance(row, Advisory):
        found[row.component] = each_range(row.affected)
    for name, which in (row.beside if isinstance(row, Advisory) else row.given).items():
        said = which.range if isinstance(which, Selector) else which
        # A row that names its own component beside itself is about an origin: '*' adds nothing.
        assert name not in found or said == "*", row.id
        found.setdefault(name, (said,))
    if isinstance(row, Coupling):
        found |= {
            name: (which.range if isinstance(which, Selector) else which,)
            for name, which in row.needs.items()
        }
    return found


def existing(known: Knowledge, component: str) -> list[str]:
    """Return the releases of a component that are on record anywhere, else none."""
    listed = [release.version for release in known.releases.get(component, ())]
    more = known.existing.get(component)
    return [*listed, *(more.versions if more else ())]


def every_bound() -> Iterator[tuple[AnyRow, str, str, str]]:
    for row in ERRORS:
        for component, ranges in ranges_of(row).items():
            for one in ranges:
                for bound in sorted(set(bounds(one))):
                    yield row, component, one, bound


BOUNDS = list(every_bound())
NAMES = [f"{row.id} {component} {one} at {bound}" for row, component, one, bound in BOUNDS]


@pytest.mark.parametrize(("row", "component", "one", "bound"), BOUNDS, ids=NAMES)
def test_a_bound_lies_where_it_is_written(
    row: AnyRow, component: str, one: str, bound: str
) -> None:
    near = around(bound, existing(KNOWN, component))
    told = {version: matches(version, one) for version in near}
    assert told == {version: inside(version, one) for version in near}
    assert set(told.values()) == {True, False}, "nothing on one side of the bound"
    for version, is_inside in told.items():
        if ".post" not in version:
            # As modules spell them: the toolchain is no part of the version.
            assert matches(f"{version}-gcccuda-2018b", one) is is_inside


def origin_of(row: AnyRow, component: str) -> Origin:
    if isinstance(row, FlagRule):
        return "build"
    selections = row.beside if isinstance(row, Advisory) else {**row.given, **row.needs}
    which = selections.get(component)
    return which.origin[0] if isinstance(which, Selector) and which.origin else "module"


def affected(row: AnyRow) -> Mapping[str, Part]:
    """Return the smallest stack that a row is about: a version inside of every range.

    Of what a coupling needs it holds a version outside, or nothing where none must be missing.
    """
    parts = {}
    for component, ranges in ranges_of(row).items():
        if isinstance(row, Coupling) and component in row.needs:
            if row.absent == "fine":
                parts[component] = Part(version_in(component, ranges[0], wanted=False))
        else:
            parts[component] = Part(version_in(component, ranges[0]), origin_of(row, component))
    return parts


def version_in(component: str, one: str, wanted: bool = True) -> str:
    near = {v for bound in bounds(one) for v in around(bound, ())} or {"1.0"}
    return min(version for version in near if inside(version, one) is wanted)


@pytest.mark.parametrize(("row", "component", "one", "bound"), BOUNDS, ids=NAMES)
def test_a_row_is_about_what_is_inside_and_not_about_what_is_outside(
    row: AnyRow, component: str, one: str, bound: str
) -> None:
    reader = Reader(KNOWN)
    needed = isinstance(row, Coupling) and component in row.needs
    all_ranges = ranges_of(row)[component]
    for version in around(bound, existing(KNOWN, component)):
        part = Part(version, origin_of(row, component))
        stack = Stack("made up", "test", {**affected(row), component: part})
        wanted = any(inside(version, each) for each in all_ranges)
        assert reader.fills(row, stack) is (wanted is not needed), version


def test_a_row_about_building_leaves_modules_alone() -> None:
    reader = Reader(KNOWN)
    seen = 0
    for row in ERRORS:
        if isinstance(row, Advisory) and origin_of(row, "horovod") == "build":
            parts = dict(affected(row))
            assert reader.fills(row, Stack("built here", "test", parts)), row.id
            parts["horovod"] = Part(parts["horovod"].version, "module")
            assert not reader.fills(row, Stack("built elsewhere", "test", parts)), row.id
            seen += 1
    assert seen > 10


# Announced (hwloc 3) or withdrawn from the index (setuptools 72.0.0): no list need hold them.
NOT_LISTED = {("OMPI-025", "hwloc"), ("PY-018", "setuptools")}


def test_ranges_fit_the_releases_that_exist() -> None:
    """A range that no release is in is a slip; one that all are in is written '*'."""
    wrong = []
    for row in ROWS:
        for component, ranges in ranges_of(row).items():
            there = existing(KNOWN, component)
            if not there or (row.id, component) in NOT_LISTED:
                continue
            for one in ranges:
                if not any(matches(version, one) for version in there):
                    wrong.append(f"{row.id}: no {component} is in {one}")
            all_in = all(any(matches(version, one) for one in ranges) for version in there)
            if all_in and ranges != ("*",):
                wrong.append(f"{row.id}: every {component} is in {ranges}: write '*'")
    assert wrong == []


def test_every_component_with_a_range_has_a_list_of_releases() -> None:
    bare = {
        component
        for row in ROWS
        for component, ranges in ranges_of(row).items()
        if ranges != ("*",) and not existing(KNOWN, component)
    }
    assert bare == set()
