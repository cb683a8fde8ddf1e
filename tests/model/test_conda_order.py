"""conda's order of versions: as conda's documentation of VersionOrder gives it."""

from __future__ import annotations

import itertools

import pytest

from envbuilder.model.conda_order import CondaKey, compare, conda_matches

# Oldest first; the versions of one line are equal. From the docstring of conda's VersionOrder.
ORDER = (
    ("0.4", "0.4.0"),
    ("0.4.1.rc",),
    ("0.4.1",),
    ("0.5a1",),
    ("0.5b3", "0.5B3"),
    ("0.5C1",),
    ("0.5",),
    ("0.9.6",),
    ("0.960923",),
    ("1.0",),
    ("1.1dev1",),
    ("1.1a1",),
    ("1.1.0dev1", "1.1.dev1"),
    ("1.1.a1",),
    ("1.1.0rc1",),
    ("1.1.0", "1.1"),
    ("1.1.0post1", "1.1.post1"),
    ("1.1post1",),
    ("1996.07.12",),
    ("1!0.4.1",),
    ("1!3.1.1.6",),
    ("2!0.4.1",),
)


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(range(len(ORDER)), 2)))
def test_versions_are_ordered_as_conda_does(one: int, other: int) -> None:
    for older, newer in itertools.product(ORDER[one], ORDER[other]):
        assert compare(older, newer) == -1, (older, newer)
        assert compare(newer, older) == 1, (older, newer)


@pytest.mark.parametrize("line", ORDER)
def test_what_is_missing_counts_as_nothing(line: tuple[str, ...]) -> None:
    assert all(compare(one, other) == 0 for one in line for other in line)


def test_versions_that_pep_440_does_not_know() -> None:
    named = ["1.0.2k", "1.0.2u", "1.0.2", "9e", "9b", "7.6.5_10.2", "7.6.5", "10.03", "10.3"]
    ordered = [key.version for key in sorted(map(CondaKey, named))]
    # A letter behind a number comes before the number alone.
    assert ordered == [
        "1.0.2k",
        "1.0.2u",
        "1.0.2",
        "7.6.5",
        "7.6.5_10.2",
        "9b",
        "9e",
        "10.03",
        "10.3",
    ]


@pytest.mark.parametrize(
    ("version", "constraint", "fits"),
    [
        ("7.6.5_10.2", ">=7", True),
        ("7.6.5_10.2", "==7.6.*", True),
        ("7.6.5_10.2", "==7.60.*", False),
        ("7.6.5_10.2", "==7.6.5", False),
        ("7.6.5_10.2", "!=7.5.*,<8", True),
        ("3.6", "==3.6.*", True),
        ("3.60", "==3.6.*", False),
        ("10.03", "==10.3.*", True),
        ("1.4.5", "~=1.4", True),
        ("2.0", "~=1.4", False),
        ("9e", "*", True),
        ("1.17.4", ">1.17.4", False),
        ("1.17.4", "<=1.17.4.0", True),
    ],
)
def test_ranges_are_in_that_order(version: str, constraint: str, fits: bool) -> None:
    assert conda_matches(version, constraint) is fits
