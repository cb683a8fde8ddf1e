"""What pip chose for another Python is looked through with that Python's eyes."""

from __future__ import annotations

import pytest

from envbuilder.errors import BuildError
from envbuilder.locking import pip_report
from envbuilder.locking.target import TargetPlatform

PYTHON36 = TargetPlatform("3.6.15", "ppc64le")


def check_closure(
    installs: list[dict[str, object]], roots: list[str], target: TargetPlatform
) -> None:
    found = pip_report.closure_of(installs, roots, target.markers())
    pip_report.check_closure(installs, found, target)


def entry(name: str, version: str, *needs: str, python: str | None = None) -> dict[str, object]:
    return {
        "metadata": {
            "name": name,
            "version": version,
            "requires_dist": list(needs),
            **({"requires_python": python} if python else {}),
        }
    }


H5PY = entry("h5py", "3.1.0", "numpy>=1.12 ; python_version == '3.6'", "cached-property")
CACHED = entry("cached_property", "1.5.2")


def test_requirements_hold_or_not_as_they_do_on_the_target() -> None:
    numpy = entry(
        "numpy",
        "1.19.5",
        "dataclasses ; python_version >= '3.7'",
        "windows-only ; sys_platform == 'win32'",
        "intel-only ; platform_machine == 'x86_64'",
        "pytest ; extra == 'tests'",
        python=">=3.6",
    )
    check_closure([H5PY, CACHED, numpy], ["h5py==3.1.0"], PYTHON36)


def test_extras_are_followed_and_circles_end() -> None:
    one = entry("one", "1", "two[fast]", "three ; extra == 'more'")
    two = entry("two", "2", "one[more]", "four ; extra == 'fast'")
    check_closure([one, two, entry("three", "3"), entry("four", "4")], ["one"], PYTHON36)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([H5PY, CACHED], "numpy>=1.12"),
        ([H5PY, CACHED, entry("numpy", "1.11")], "numpy 1.11"),
        (
            [H5PY, CACHED, entry("numpy", "1.19.5", python=">=3.7")],
            "numpy 1.19.5 requires Python >=3.7",
        ),
        (
            [H5PY, CACHED, entry("numpy", "1.19.5"), entry("typing-extensions", "4")],
            "typing-extensions",
        ),
    ],
)
def test_an_answer_that_is_not_right_there_is_no_lock(
    entries: list[dict[str, object]], message: str
) -> None:
    with pytest.raises(BuildError) as caught:
        check_closure(entries, ["h5py==3.1.0"], PYTHON36)
    assert caught.value.id == "pip.wrong-files"
    assert message in str(caught.value)
    assert "Python 3.6.15 on ppc64le" in str(caught.value)
    assert caught.value.problems[0].hints
