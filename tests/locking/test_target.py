"""Another Python, as pip and requirements see it; packaging says the same of this one."""

from __future__ import annotations

import itertools
import os
import platform
import sys

import pytest
from packaging import markers, tags

from envbuilder.locking.target import TargetPlatform


def words_after(target: TargetPlatform, option: str) -> list[str]:
    words = target.pip_options()
    return [word for before, word in itertools.pairwise(words) if before == option]


def this_one() -> TargetPlatform:
    said = os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else None
    if not (said or "").startswith("glibc"):
        pytest.skip("needs a system with glibc")
    return TargetPlatform(platform.python_version(), platform.machine(), str(said).split()[1])


def test_platforms_are_those_that_packaging_tells_of_this_machine() -> None:
    assert words_after(this_one(), "--platform") == list(tags.platform_tags())


def test_markers_are_those_that_packaging_tells_of_this_python() -> None:
    if sys.implementation.name != "cpython" or sys.version_info.releaselevel != "final":
        pytest.skip("needs a final CPython")
    own = {name: value for name, value in markers.default_environment().items() if name != "extra"}
    ours = this_one().markers()
    assert ours.keys() == own.keys()
    of_the_machine = {"platform_release", "platform_version"}
    assert {k: v for k, v in ours.items() if k not in of_the_machine} == {
        k: v for k, v in own.items() if k not in of_the_machine
    }


@pytest.mark.parametrize(
    ("python", "abi", "full"),
    [("3.6", "cp36m", "3.6.0"), ("3.7.16", "cp37m", "3.7.16"), ("3.12.1", "cp312", "3.12.1")],
)
def test_abi_and_version(python: str, abi: str, full: str) -> None:
    target = TargetPlatform(python, "x86_64")
    assert words_after(target, "--abi") == [abi]
    assert words_after(target, "--python-version") == [full]
    assert target.markers()["python_version"] == python.rpartition(".")[0] or python == "3.6"


@pytest.mark.parametrize(
    ("arch", "glibc", "platforms"),
    [
        (
            "ppc64le",
            "2.19",
            [
                "linux_ppc64le",
                "manylinux_2_19_ppc64le",
                "manylinux_2_18_ppc64le",
                "manylinux_2_17_ppc64le",
                "manylinux2014_ppc64le",
            ],
        ),
        ("ppc64le", "2.12", ["linux_ppc64le"]),
        ("x86_64", "2.5", ["linux_x86_64", "manylinux_2_5_x86_64", "manylinux1_x86_64"]),
    ],
)
def test_platforms_end_with_the_sites_glibc(arch: str, glibc: str, platforms: list[str]) -> None:
    assert words_after(TargetPlatform("3.6", arch, glibc), "--platform") == platforms
