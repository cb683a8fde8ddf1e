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


NONE = "the conda channels c0, c1 have no "
CUDA = "the site file states {} by facts: driver-cuda: '12.2', the newest CUDA that its driver runs"
# The pins after Python's; how the refusal begins; what it says besides.
CASES: dict[str, tuple[dict[str, str], tuple[VirtualPackage, ...], str, tuple[str, ...]]] = {
    "a Python that pip is not for": (
        {"python": "3.6.9", "numpy": "1.26.4"},
        (),
        "another python than 3.6.9 would do",
        ("pip 24.0 would require", "python >=3.8"),
    ),
    "a release that is not there": (
        {"python": "3.11.7", "numpy": "1.25"},
        (),
        "another numpy than 1.25 would do",
        ("numpy 1.19.0 | 1.26.4",),
    ),
    "a package that is not there": (
        {"python": "3.11.7", "libmissing": "1.0"},
        (),
        f"{NONE}libmissing that fits python 3.11.7 on x86_64",
        ("No candidates were found for libmissing *",),
    ),
    "a package for another architecture": (
        {"python": "3.11.7", "cmake": "3.28"},
        (),
        f"{NONE}cmake that fits python 3.11.7 on x86_64",
        ("No candidates were found for cmake *",),
    ),
    "what a package needs is nowhere": (
        {"python": "3.11.7", "ucx": "1.15"},
        (),
        f"{NONE}ucx that fits python 3.11.7 on x86_64",
        ("ucx 1.15 would require", "libnowhere >=3, for which no candidates were found"),
    ),
    "two packages that need different releases of a third": (
        {"python": "3.11.7", "scipy": "1.11", "h5py": "3.10"},
        (),
        f"{NONE}h5py that fits python 3.11.7, scipy 1.11 on x86_64",
        ("libblas <4", "libblas >=4"),
    ),
    "what a metapackage holds at another release": (
        {"python": "3.11.7", "powerai": "1.7.0", "openmpi": "4.1.4"},
        (),
        f"{NONE}openmpi that fits python 3.11.7, powerai 1.7.0 on x86_64",
        ("powerai-release 1.7.0 would constrain", "openmpi 3.1.*"),
    ),
    "no driver": (
        {"python": "3.11.7", "pytorch": "2.4.0"},
        (),
        f"{NONE}pytorch that fits python 3.11.7 on x86_64",
        ("__cuda >=12", f"the target has no __cuda: {CUDA.format('none')}"),
    ),
    "a driver that is too old": (
        {"python": "3.11.7", "pytorch": "2.4.0"},
        (("__cuda", "11.4", "0"),),
        f"{NONE}pytorch that fits python 3.11.7 on x86_64",
        ("__cuda >=12", f"the target's __cuda is 11.4; {CUDA.format('it')}"),
    ),
    "a glibc that is too old": (
        {"python": "3.11.7", "mpich": "4.2.3"},
        (),
        f"{NONE}mpich that fits python 3.11.7 on x86_64",
        ("the target's __glibc is 2.28; the site file states it by facts: glibc: ",),
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
        text = f"another {error.component} than {error.version} would do\n{error}"
    else:
        (problem,) = error.problems
        text = "\n".join([problem.message, *problem.hints])
    assert text.splitlines()[0] == first
    assert [each for each in said if each not in text] == []


def test_a_channel_that_hides_what_would_do_is_named(folders: list[Path], tmp_path: Path) -> None:
    channels = dict(zip(("near", "far"), folders, strict=True))
    with pytest.raises(NoSolutionError) as caught:
        planned(tmp_path, channels, wmlce=">=1.8")
    text = " ".join(str(caught.value).split())
    assert "wmlce >=1.8" in text
    assert "1.7.0 (conda)" in text
    hidden = (
        "channel far has powerai 1.8.0, which channel near hides: it comes first and has powerai"
    )
    assert hidden in text
    # What is hidden and would not do is not named.
    with pytest.raises(NoSolutionError) as caught:
        planned(tmp_path, channels, wmlce=">=2")
    assert "hides" not in str(caught.value)
