"""whole.py: every file of a list is there and whole, or not."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from program_tools import PROGRAMS

from tests.pythons import NAMED, find_python

pytestmark = pytest.mark.integration

PROGRAM = PROGRAMS / "whole.py"
FILES = {"wheelhouse/a.whl": b"a" * 3_000_000, "wheelhouse/two words.whl": b"", "b.tar.gz": b"b"}


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    """Return a list, beside the files that it is of."""
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    listing = tmp_path / "SHA256SUMS"
    lines = [f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in FILES.items()]
    listing.write_text("".join(lines), encoding="utf-8")
    return listing


def code(sums: Path, python: str = sys.executable) -> int:
    words = [python, "-I", str(PROGRAM), sums.name]
    return subprocess.run(words, cwd=sums.parent, check=False).returncode


@pytest.mark.parametrize("python", [sys.executable, *NAMED, *filter(None, [find_python("3.6")])])
def test_all_are(sums: Path, python: str) -> None:
    assert code(sums, python) == 0


def test_no_files_are_whole(sums: Path) -> None:
    sums.write_text("", encoding="utf-8")
    assert code(sums) == 0


@pytest.mark.parametrize("name", FILES)
def test_one_is_missing(sums: Path, name: str) -> None:
    (sums.parent / name).unlink()
    assert code(sums) == 1


@pytest.mark.parametrize("name", FILES)
def test_one_is_not_what_it_was(sums: Path, name: str) -> None:
    with (sums.parent / name).open("ab") as stream:
        stream.write(b"x")
    assert code(sums) == 1


def test_a_folder_is_no_file(sums: Path) -> None:
    (sums.parent / "b.tar.gz").unlink()
    (sums.parent / "b.tar.gz").mkdir()
    assert code(sums) == 1


def test_usage(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, "whole.py SHA256SUMS" in done.stderr) == (2, True)
