"""conda's order of versions, for all pairs of a list that rattler (mamba, pixi) has ordered."""

from __future__ import annotations

import hashlib
import itertools
import random
from pathlib import Path

import pytest

from envbuilder.knowledge.conda_order import compare, conda_key, conda_matches, spec_admits

VERSIONS = Path(__file__).with_name("conda_versions.txt")
# Oldest first; those of one entry are equal.
ORDER = [
    entry.split("=")
    for line in VERSIONS.read_text(encoding="utf-8").splitlines()
    if line[0] != "#"
    for entry in line.split()
]
RANK = {version: rank for rank, entry in enumerate(ORDER) for version in entry}
# Of the 2.7 million pairs every one is decided by the neighbours, as both orders are transitive;
# these are held against each other besides.
FAR_APART = [
    (one, other)
    for start, one in enumerate(RANK)
    for other in itertools.islice(RANK, start % 97, None, 97)
]


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


def test_the_list_is_of_two_thousand_versions() -> None:
    assert len(RANK) == sum(map(len, ORDER)) > 2000


def test_sorting_them_gives_the_list() -> None:
    mixed = sorted(RANK, key=lambda version: hashlib.sha256(version.encode()).digest())
    assert [RANK[each] for each in sorted(mixed, key=conda_key)] == sorted(RANK.values())
    for older, newer in itertools.pairwise(RANK):
        assert compare(older, newer) == RANK[older] - RANK[newer], f"{older} {newer}"


def test_every_pair_is_ordered_as_conda_does() -> None:
    wrong = [
        (one, other)
        for one, other in FAR_APART
        if compare(one, other) != sign(RANK[one] - RANK[other])
    ]
    assert wrong == []


def test_the_list_is_in_the_order_that_rattler_gives() -> None:
    rattler = pytest.importorskip("rattler")
    versions = {version: rattler.Version(version) for version in RANK}
    for one, other in [*itertools.pairwise(RANK), *FAR_APART]:
        found = (versions[one] > versions[other]) - (versions[one] < versions[other])
        assert found == sign(RANK[one] - RANK[other]), f"{one} {other}"
        assert (versions[one] == versions[other]) is (RANK[one] == RANK[other])


@pytest.mark.long
def test_every_pair_is_ordered_as_rattler_orders_it() -> None:
    """Without a word on transitivity: five CPU seconds."""
    rattler = pytest.importorskip("rattler")
    pairs = itertools.combinations([(each, rattler.Version(each)) for each in RANK], 2)
    asked, wrong = 0, []
    for (one, his), (other, hers) in pairs:
        asked += 1
        if compare(one, other) != (his > hers) - (his < hers):
            wrong.append((one, other))
    assert wrong == []
    assert asked == len(RANK) * (len(RANK) - 1) // 2 > 2_000_000


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


SPECS = (
    *(">={0}", "<{0}", ">{0}", "<={0}", "=={0}", "!={0}", "={0}", "{0}", "{0}.*", "{0}*", "~={0}"),
    *(">={0},<{1}", ">={0}|{1}.*", "!={0}.*", "*", ">={0},<{1}|=={0}", ">={0}.*", "=={0}.*"),
)


def test_the_version_of_a_match_spec_is_read_as_rattler_does() -> None:
    rattler = pytest.importorskip("rattler")
    dice, named = random.Random(18), list(RANK)
    asked = 0
    for _ in range(3000):
        place = dice.randrange(len(named))
        near = named[max(0, place - 6) : place + 7]
        version, other = dice.choice([*near, dice.choice(named)]), dice.choice(named)
        spec = dice.choice(SPECS).format(named[place], other)
        wanted = rattler.VersionSpec(spec).matches(rattler.Version(version))
        found = spec_admits(version, spec)
        asked += found is not None
        assert found in (wanted, None), f"{version} {spec}"
    assert asked > 2500


@pytest.mark.parametrize(
    ("version", "spec", "fits"),
    [
        ("3.11.4", ">=3.11,<3.12.0a0", True),
        ("3.12.0", ">=3.11,<3.12.0a0", False),
        ("1.0.2k", "1.1.*", False),
        ("1.2rc4", "1.2.0.*", None),
        ("2.0", "1.*|2.0.*", True),
        ("2.0", "1.*|>=3", False),
        ("2.0", "^2.*$", None),
        ("2.0", "(1|2).*", None),
        ("2.0", ">=3,(1)", False),
    ],
)
def test_the_version_of_a_match_spec(version: str, spec: str, fits: bool | None) -> None:
    assert spec_admits(version, spec) is fits
