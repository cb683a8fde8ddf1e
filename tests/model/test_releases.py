"""Where a release runs: machine, glibc and Python."""

from __future__ import annotations

import pytest

from envbuilder.knowledge.components import Release
from envbuilder.knowledge.releases import admits, glibc_suffices, has_wheels_for, runs, runs_on
from envbuilder.model.site import Site, SiteFacts, Snapshot, glibc_of

SITE = {"schema": 1, "name": "here", "summary": "A site", "arch": ["x86_64"]}


@pytest.mark.parametrize(
    ("needed", "there", "fits"),
    [
        ("2.17", "2.17", True),
        ("2.17", "2.5", False),
        ("2.28", "2.17", False),
        ("2.5", "2.36", True),
        (None, "2.5", True),
        ("2.28", None, True),
    ],
)
def test_a_glibc(needed: str | None, there: str | None, fits: bool) -> None:
    assert glibc_suffices(Release(version="1.0", glibc=needed), there) is fits


def test_wheels_are_for_architectures() -> None:
    release = Release(version="1.0", arch=("x86_64", "aarch64"))
    assert runs_on(release, "x86_64", None)
    assert not runs_on(release, "ppc64le", None)
    assert runs_on(Release(version="1.0"), "ppc64le", None)
    assert not runs_on(Release(version="1.0", wheels=False), "x86_64", None)


@pytest.mark.parametrize(
    ("release", "python", "admitted", "wheels"),
    [
        (Release(version="1.0"), "3.6", True, True),
        (Release(version="1.0", pythons=("3.11",)), "3.11.4", True, True),
        (Release(version="1.0", pythons=("3.11",)), "3.12", True, False),
        (Release(version="1.0", requires_python=">=3.8"), "3.6.15", False, False),
        (Release(version="1.0", requires_python="what"), "3.11", False, False),
    ],
)
def test_a_python(release: Release, python: str, admitted: bool, wheels: bool) -> None:
    assert (admits(release, python), has_wheels_for(release, python)) == (admitted, wheels)


def test_all_of_it_together() -> None:
    release = Release(version="1.0", arch=("x86_64",), pythons=("3.11",), glibc="2.28")
    assert runs(release, "x86_64", "2.36", "3.11.4")
    assert not runs(release, "x86_64", "2.17", "3.11.4")
    assert not runs(release, "aarch64", "2.36", "3.11.4")
    assert not runs(release, "x86_64", "2.36", "3.12.1")


def test_what_a_part_of_the_site_states_of_its_glibc_wins() -> None:
    found = Snapshot(glibc="2.36")
    plain, stated = (
        Site.model_validate({**SITE, "facts": facts}) for facts in ({}, {"glibc": "2.28"})
    )
    assert glibc_of(plain, SiteFacts(), Snapshot()) is None
    assert glibc_of(plain, SiteFacts(), found) == "2.36"
    assert glibc_of(stated, SiteFacts(), found) == "2.28"
    assert glibc_of(stated, SiteFacts(glibc="2.17"), found) == "2.17"
