"""What cannot be had of conda channels is refused with a text that names what is in the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from channel_tools import GLIBC, engine, package, pip, plan, planned, python

from envbuilder.conda.solve import ChannelRefusal, solve
from envbuilder.errors import NoSolutionError
from envbuilder.knowledge.channels import VirtualPackage
from tests.conda_channel import write_channel

PY = "python >=3.11,<3.12.0a0"
CHANNELS = {
    "first": [
        python("3.6.9"),
        python("3.11.7"),
        package("numpy", "1.26.4", PY),
        package("numpy", "1.19.0", "python >=3.6,<3.7.0a0"),
        package("libold", "1.0"),
        package("powerai-release", "1.7.0", constrains=("pytorch ==1.3.1", "openmpi ==3.1.*")),
        package("powerai", "1.7.0", "powerai-release 1.7.0"),
        package("openmpi", "4.1.4"),
        package("ucx", "1.15", "libnowhere >=3"),
        package("mpich", "4.2.3", "__glibc >=2.36"),
        package("libblas", "3.9"),
        package("libblas", "4.0"),
        package("scipy", "1.11", PY, "libblas <4"),
        package("h5py", "3.10", PY, "libblas >=4"),
        package("cmake", "3.28", subdir="linux-ppc64le"),
        pip(),
    ],
    "second": [
        package("powerai", "1.8.0"),
        package("pytorch", "2.4.0", PY, "__cuda >=12"),
    ],
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    top = tmp_path_factory.mktemp("channels")
    return [write_channel(top / name, packages) for name, packages in CHANNELS.items()]


# The pins after Python's; what is refused; what the refusal says besides.
CASES: dict[str, tuple[dict[str, str], tuple[VirtualPackage, ...], str, tuple[str, ...]]] = {
    "a Python that pip is not for": (
        {"python": "3.6.9", "numpy": "1.26.4"},
        (),
        "python 3.6.9",
        ("pip 24.0 would require", "python >=3.8"),
    ),
    "a release that is not there": (
        {"python": "3.11.7", "numpy": "1.25"},
        (),
        "numpy 1.25",
        ("numpy 1.19.0 | 1.26.4",),
    ),
    "a package that is not there": (
        {"python": "3.11.7", "libmissing": "1.0"},
        (),
        "libmissing",
        ("No candidates were found for libmissing *",),
    ),
    "a package for another architecture": (
        {"python": "3.11.7", "cmake": "3.28"},
        (),
        "cmake",
        ("No candidates were found for cmake *",),
    ),
    "what a package needs is nowhere": (
        {"python": "3.11.7", "ucx": "1.15"},
        (),
        "ucx",
        ("ucx 1.15 would require", "libnowhere >=3, for which no candidates were found"),
    ),
    "two packages that need different releases of a third": (
        {"python": "3.11.7", "scipy": "1.11", "h5py": "3.10"},
        (),
        "h5py",
        ("libblas <4", "libblas >=4"),
    ),
    "what a metapackage holds at another release": (
        {"python": "3.11.7", "powerai": "1.7.0", "openmpi": "4.1.4"},
        (),
        "openmpi",
        ("powerai-release 1.7.0 would constrain", "openmpi 3.1.*"),
    ),
    "no driver": (
        {"python": "3.11.7", "pytorch": "2.4.0"},
        (),
        "pytorch",
        ("__cuda >=12", "no __cuda: ", "driver-cuda: "),
    ),
    "a driver that is too old": (
        {"python": "3.11.7", "pytorch": "2.4.0"},
        (("__cuda", "11.4", "0"),),
        "pytorch",
        ("__cuda >=12", "__cuda is 11.4", "driver-cuda: "),
    ),
    "a glibc that is too old": (
        {"python": "3.11.7", "mpich": "4.2.3"},
        (),
        "mpich",
        ("__glibc is 2.28", "facts: glibc: "),
    ),
}


@pytest.mark.parametrize(("pins", "virtual", "first", "said"), CASES.values(), ids=CASES)
def test_a_conflict_names_what_is_in_the_way(
    folders: list[Path],
    tmp_path: Path,
    pins: dict[str, str],
    virtual: tuple[VirtualPackage, ...],
    first: str,
    said: tuple[str, ...],
) -> None:
    with pytest.raises((ChannelRefusal, NoSolutionError)) as caught:
        solve(plan(folders, **pins), (*GLIBC, *virtual), {}, engine(tmp_path))
    error = caught.value
    if isinstance(error, ChannelRefusal):
        assert first == f"{error.component} {error.version}"
        text = str(error)
    else:
        (problem,) = error.problems
        assert problem.id == "channel.no-solution"
        assert f"c0, c1 have no {first} " in problem.message
        assert all(f"{name} {pins[name]}" in problem.message for name in pins if name != first)
        text = "\n".join([problem.message, *problem.hints])
    assert [each for each in said if each not in text] == []


def test_a_channel_that_hides_what_would_do_is_named(folders: list[Path], tmp_path: Path) -> None:
    channels = dict(zip(("near", "far"), folders, strict=True))
    with pytest.raises(NoSolutionError) as caught:
        planned(tmp_path, channels, wmlce=">=1.8")
    text = " ".join(str(caught.value).split())
    assert "wmlce >=1.8" in text
    assert "1.7.0 (conda)" in text
    hidden = "channel near hides powerai 1.8.0 of channel far: it comes first and also has powerai"
    assert hidden in text
    # What is hidden and would not do is not named.
    with pytest.raises(NoSolutionError) as caught:
        planned(tmp_path, channels, wmlce=">=2")
    assert "hides" not in str(caught.value)
