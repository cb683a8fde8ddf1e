"""Ranges: as PEP 440 has them, also where they are compared the quick way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from envbuilder.knowledge.ranges import matches, series, version

numbers = st.integers(0, 4)
releases = st.lists(numbers, min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
versions = st.one_of(
    releases,
    st.builds("{}{}".format, releases, st.sampled_from(["rc1", ".post1", ".dev0", "a2", "+cpu"])),
)
clauses = st.builds(
    "{}{}".format,
    st.sampled_from([">=", "<=", ">", "<", "==", "!="]),
    st.one_of(releases, st.builds("{}{}".format, releases, st.sampled_from([".post1", "rc1"]))),
)
wild = st.builds("{}{}.*".format, st.sampled_from(["==", "!="]), releases)
ranges = st.lists(st.one_of(clauses, wild), min_size=1, max_size=3).map(",".join)


@given(versions, ranges)
def test_a_range_means_what_packaging_takes_it_for(text: str, constraint: str) -> None:
    specifiers = SpecifierSet(constraint)
    expected = specifiers.contains(text, prereleases=bool(specifiers.prereleases))
    assert matches(text, constraint) is expected


@pytest.mark.parametrize(
    ("text", "parts", "expected"),
    [("3.1.4", 2, (3, 1)), ("3", 2, (3, 0)), ("9.2.88-GCC-7.3.0", 2, (9, 2)), ("x", 1, (0,))],
)
def test_a_series_is_the_first_numbers(text: str, parts: int, expected: tuple[int, ...]) -> None:
    assert series(text, parts) == expected


def test_what_is_behind_the_first_hyphen_is_no_part_of_a_version() -> None:
    assert str(version("1.7.0-3")) == "1.7.0"
    assert version("2018b-x") is not None
    assert version("system") is None
