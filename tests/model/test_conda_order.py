"""conda's order of versions, for all pairs of a list that rattler (mamba, pixi) has ordered."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from envbuilder.model.conda_order import compare, conda_key, conda_matches

VERSIONS = Path(__file__).with_name("conda_versions.txt")
# Oldest first; the versions of one line are equal.
ORDER = [
    line.split() for line in VERSIONS.read_text(encoding="utf-8").splitlines() if line[0] != "#"
]


def test_every_pair_is_ordered_as_conda_does() -> None:
    wrong = [
        (older, newer)
        for one, other in itertools.combinations(ORDER, 2)
        for older, newer in itertools.product(one, other)
        if (compare(older, newer), compare(newer, older)) != (-1, 1)
    ]
    assert wrong == []


def test_what_is_missing_counts_as_nothing() -> None:
    unequal = [
        (one, other)
        for line in ORDER
        for one, other in itertools.combinations(line, 2)
        if compare(one, other) != 0
    ]
    assert unequal == []


def test_the_list_is_in_the_order_that_rattler_gives() -> None:
    rattler = pytest.importorskip("rattler")
    versions = [[rattler.Version(version) for version in line] for line in ORDER]
    assert all(one == line[0] for line in versions for one in line)
    assert all(one[0] < other[0] for one, other in itertools.pairwise(versions))


def test_versions_that_pep_440_does_not_know() -> None:
    named = ["1.0.2k", "1.0.2u", "1.0.2", "9e", "9b", "7.6.5_10.2", "7.6.5", "10.03", "10.3"]
    ordered = sorted(named, key=conda_key)
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
        ("9e", "==9.*", True),
        ("1.0.2u", "==1.0.2.*", True),
        ("1.1rc1", "==1.1.*", True),
        ("1.0.1_", "<1.0.1a", True),
        ("1!1.2", "==1.*", False),
        ("1", "==1.0.*", True),
        ("1.17.4", ">1.17.4", False),
        ("1.17.4", "<=1.17.4.0", True),
    ],
)
def test_ranges_are_in_that_order(version: str, constraint: str, fits: bool) -> None:
    assert conda_matches(version, constraint) is fits
