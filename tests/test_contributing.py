"""CONTRIBUTING.md tried from its text alone: its files are written, its commands run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
TEXT = (CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8")

# Nothing in the text depends on the Python.
pytestmark = pytest.mark.thorough

# A fenced block and its language, wherever it is indented to.
_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
DOCUMENTS = (
    *("Adding a recipe", "Adding a site", "Adding an advisory, a component or a release"),
    *("Adding a framework", "Adding a symptom"),
)
# What is added to a checkout, and tried in a copy of it.
ENTRIES = (
    *("Adding a backend", "Adding a render form", "Adding a runtime"),
    *("Adding a launcher", "Adding a scheduler", "Adding a CI provider", "Adding a check"),
)


def blocks(title: str) -> list[tuple[str, str]]:
    """Return the blocks of a section as (language, text). Fails where there is no such section."""
    section = TEXT.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    return [(language, dedent(text)) for _, language, text in _BLOCK.findall(section)]


def write_files(title: str, folder: Path) -> None:
    """Write the files of a section: the first line of each block is a comment with its path."""
    for language, text in blocks(title):
        if language == "diff":
            change_lines(text, folder)
        elif language != "sh":
            first, rest = text.split("\n", 1)
            path = folder / first.removeprefix("# ")
            path.parent.mkdir(parents=True, exist_ok=True)
            # A template has no room for a comment before its first line.
            path.write_text(rest if language == "jinja" else text, encoding="utf-8")


def change_lines(text: str, folder: Path) -> None:
    """Replace each '-' line, which must be there once, by the '+' lines behind it."""
    for part in text.split("+++ ")[1:]:
        name, changes = part.split("\n", 1)
        file = folder / name
        for old, new in re.findall(r"^-(.*\n)((?:\+.*\n)+)", changes, re.MULTILINE):
            found = file.read_text(encoding="utf-8")
            assert found.count(old) == 1, f"{name} has not just one line {old!r}"
            file.write_text(found.replace(old, re.sub("^\\+", "", new, flags=re.M)), "utf-8")


@pytest.mark.parametrize("title", DOCUMENTS)
@pytest.mark.sample(2)
def test_documents_can_be_added_from_the_text_alone(title: str, tmp_path: Path) -> None:
    write_files(title, tmp_path)
    run_commands(title, tmp_path, CHECKOUT)


@pytest.mark.parametrize("title", ENTRIES)
@pytest.mark.sample(2)
def test_entries_can_be_added_from_the_text_alone(title: str, tmp_path: Path) -> None:
    for name in ("envbuilder", "templates", "recipes", "runtime", "docs", "tests", "modulefiles"):
        shutil.copytree(
            CHECKOUT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    write_files(title, tmp_path)
    run_commands(title, tmp_path, tmp_path)


def run_commands(title: str, folder: Path, checkout: Path) -> None:
    """Run the commands of a section in *folder* with the envbuild of a checkout."""
    commands = [text for language, text in blocks(title) if language == "sh"]
    assert commands
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for name, words in (("envbuild", "-m envbuilder"), ("python", "")):
        (bin_folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (bin_folder / name).chmod(0o755)
    environ = {
        **os.environ,
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(checkout),
        "ENVBUILD_PATH": str(folder / "recipes"),
        "XDG_DATA_HOME": str(folder / "data"),
        # A session of pytest ends with an error where it cannot clean up after those beside it.
        "PYTEST_DEBUG_TEMPROOT": str(folder),
    }
    for text in commands:
        for line in text.splitlines():
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", line],
                cwd=folder,
                env=environ,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
