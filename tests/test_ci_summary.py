"""What ci/test.sh says last: which lanes failed, in which tests, and what was skipped and why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# It runs on the Python of the tests' own environment alone.
pytestmark = pytest.mark.thorough

SUMMARY = Path(__file__).parent.parent / "ci" / "summary.py"

TESTS = """
import pytest

def test_good():
    pass

@pytest.mark.parametrize("rank", [3])
def test_bad(rank):
    print("what the rank wrote")
    for line in range(200):
        print("line", line)
    assert rank == 4

class TestSmall:
    def test_method(self):
        raise OSError("of a method")

@pytest.fixture
def nothing():
    raise OSError("of a fixture")

def test_without(nothing):
    pass

@pytest.mark.parametrize("engine", ["mpi", "gloo"])
def test_skipped(engine):
    pytest.skip(f"engine {engine} with torch: ModuleNotFoundError: No module named 'torch'")
"""


def add_lane(folder: Path, name: str, code: int | None, log: str) -> None:
    (folder / f"{name}.log").write_text(log, encoding="utf-8")
    if code is not None:
        (folder / f"{name}.code").write_text(f"{code}\n", encoding="utf-8")


def summary(folder: Path) -> list[str]:
    words = [sys.executable, str(SUMMARY), str(folder)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return what is said of four lanes, one of them a real pytest that fails."""
    folder = tmp_path_factory.mktemp("ci")
    tests = folder / "tests" / "test_made_up.py"
    tests.parent.mkdir()
    tests.write_text(TESTS, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    found = folder / "reports"
    found.mkdir()
    name = "runtime, Python 3.13.0"
    words = ["-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "-o", "junit_logging=all"]
    done = subprocess.run(
        [sys.executable, *words, f"--junitxml={found / name}.xml", "tests"],
        cwd=folder,
        env={
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "",
            "PYTEST_DEBUG_TEMPROOT": str(folder),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    add_lane(found, name, done.returncode, done.stdout)
    add_lane(found, "mypy", 0, "Success: no issues found\n\n")
    (found / "mypy.cpu").write_text("12.250 1.500\n", encoding="utf-8")
    (found / "the tool elsewhere.cpu").touch()
    add_lane(found, "the tool", 2, "\n".join(f"no package {n}" for n in range(90)))
    add_lane(found, "the tool elsewhere", None, "....\n")
    return summary(found)


def test_the_names_stand_last_after_how_each_lane_ended(told: list[str]) -> None:
    lanes = told[told.index("== lanes") + 1 :]
    assert lanes[0] == "passed      mypy: Success: no issues found (14 CPU s)"
    assert lanes[1].startswith(
        "FAILED (1)  runtime, Python 3.13.0: 2 failed, 1 passed, 2 skipped, 1 error in "
    )
    assert lanes[2] == "FAILED (2)  the tool: no package 89"
    assert lanes[3] == "did not end the tool elsewhere: ...."
    assert lanes[4:] == [
        f"FAILED runtime, Python 3.13.0: tests/test_made_up.py::{name}"
        for name in ("test_bad[3]", "TestSmall::test_method", "test_without")
    ]


def test_each_failure_comes_with_its_end_and_what_was_written(told: list[str]) -> None:
    text = "\n".join(told)
    assert "assert 3 == 4" in text
    assert "line 199" in text
    assert "line 5\n" not in text
    assert "OSError: of a method" in text
    assert "OSError: of a fixture" in text
    # A lane that fails without a failed test: the end of what it said.
    assert "no package 50\n" in text
    assert "no package 49\n" not in text


def test_a_reason_is_told_once_for_all_that_it_skips(told: list[str]) -> None:
    assert told[told.index("== skipped") + 1] == (
        "    2 No module named 'torch' (runtime, Python 3.13.0)"
    )
    assert "No module named 'torch'" not in "".join(told[told.index("== lanes") :])


def test_of_nothing_nothing_is_said(tmp_path: Path) -> None:
    assert summary(tmp_path) == []
