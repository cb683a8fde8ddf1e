"""fetch --missing: what of a list is not in a folder, or not whole."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from target_environments import TOOLS

from tests.pythons import NAMED, find_python

pytestmark = pytest.mark.integration

PYTHONS = [sys.executable, *NAMED, *filter(None, [find_python("3.6")])]
FILES = {"a.whl": b"a" * 3_000_000, "two words.whl": b"", "b-1+cpu.whl": b"b"}
URLS = {
    "a.whl": "https://index.example/files/a.whl",
    "two words.whl": "file:///wheels/two%20words.whl",
    "b-1+cpu.whl": "https://index.example/b-1%2Bcpu.whl",
}
LINES = {
    name: f"{URLS[name]} --hash=sha256:{hashlib.sha256(content).hexdigest()}\n"
    for name, content in FILES.items()
}


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Path:
    """Return a folder that has all, beside the list."""
    folder = tmp_path / "wheelhouse"
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    (tmp_path / "fetch.txt").write_text("".join(LINES.values()), encoding="utf-8")
    return folder


def missing(wheelhouse: Path, python: str | Path = sys.executable) -> str:
    words = [python, "-I", TOOLS, "fetch", "--missing", wheelhouse.parent / "fetch.txt", wheelhouse]
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.mark.parametrize("python", PYTHONS)
def test_all_are_there(wheelhouse: Path, python: str | Path) -> None:
    assert missing(wheelhouse, python) == ""


def test_nothing_is_asked_for(wheelhouse: Path) -> None:
    (wheelhouse.parent / "fetch.txt").write_text("", encoding="utf-8")
    assert missing(wheelhouse) == ""


def test_no_folder(tmp_path: Path, wheelhouse: Path) -> None:
    wheelhouse.rename(tmp_path / "elsewhere")
    assert missing(wheelhouse) == "".join(LINES.values())


@pytest.mark.parametrize("name", FILES)
def test_one_is_missing(wheelhouse: Path, name: str) -> None:
    (wheelhouse / name).unlink()
    assert missing(wheelhouse) == LINES[name]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("python", PYTHONS)
def test_one_is_not_what_was_locked(wheelhouse: Path, name: str, python: str | Path) -> None:
    with (wheelhouse / name).open("ab") as stream:
        stream.write(b"x")
    assert missing(wheelhouse, python) == LINES[name]


def test_a_folder_is_no_file(wheelhouse: Path) -> None:
    (wheelhouse / "a.whl").unlink()
    (wheelhouse / "a.whl").mkdir()
    assert missing(wheelhouse) == LINES["a.whl"]


def test_usage() -> None:
    done = subprocess.run(
        [sys.executable, TOOLS, "fetch", "--missing"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "usage: target_tools fetch" in done.stderr) == (2, True)
