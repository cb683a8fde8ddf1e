"""Hostile conda packages through the real engine: nothing outside of a prefix is read or changed.

What is not refused is in the prefix as its packages hold it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from envbuilder import data
from envbuilder.target_tools.relocate import PLACEHOLDER as PACKED
from tests.hostile_packages import (
    CASES,
    ENDINGS,
    Case,
    Outside,
    actual_tree,
    expected_tree,
    write_package,
)

# What the engine alone would carry out or publish, and what must stay possible.
QUICK = {
    "a second list, and a link",
    "a link as a file with a placeholder",
    "a link that is copied",
    "modules in @OUT@",
    "a link inside, and a file below",
    "a link out, and a file below",
    "a file that is not listed",
    "a hard link to a file of its package",
}
assert CASES.keys() >= QUICK
PARAMETERS = [
    pytest.param(
        case,
        ending,
        id=f"{name}{ending}",
        marks=() if name in QUICK and ending == (case.only or ".conda") else (pytest.mark.long,),
    )
    for name, case in CASES.items()
    for ending in ENDINGS
    if case.only in (None, ending)
]


class Build:
    """A build folder with the packages of a case, as they are fetched."""

    def __init__(self, folder: Path, case: Case, ending: str) -> None:
        self.folder, self.prefix, self.cache = folder, folder / "prefix", folder / "build" / "cache"
        self.outside = folder / "outside"
        self.outside.mkdir()
        self.files = folder / "build" / "packages"
        self.files.mkdir(parents=True)
        names = [write_package(self.files, each, ending, self.outside) for each in case.packages]
        listed = [
            {
                "name": each.name,
                "version": each.version,
                "build": "0",
                "filename": path.name,
                "sha256": "0" * 64,
            }
            for each, path in zip(case.packages, names, strict=True)
        ]
        self.list = folder / "build" / "conda.json"
        self.list.write_text(json.dumps({"platform": "linux-64", "packages": listed}))

    def expected(self, case: Case) -> dict[str, tuple[object, ...]]:
        return expected_tree(case.packages, str(self.prefix), self.outside)

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        home, scratch = self.outside / "home", self.folder / "tmp"
        scratch.mkdir(exist_ok=True)
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(scratch)}
        command = [sys.executable, "-I", data.TARGET_TOOLS, *words]
        return subprocess.run(
            [str(each) for each in command],
            env=environ,
            cwd=self.list.parent,
            capture_output=True,
            text=True,
            timeout=240,
            umask=0o002,
        )

    def link(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Make the prefix, as the step ``conda`` and a bundle do."""
        done = self.run(
            "conda-engine", "link", *words, self.prefix, self.cache, self.list, self.files
        )
        if done.returncode == 0:
            done = self.run("conda-packages", "check", self.prefix, self.list)
        return done


@pytest.mark.parametrize(("case", "ending"), PARAMETERS)
@pytest.mark.sample(2)
def test_nothing_outside_is_read_or_changed_and_nothing_else_is_published(
    case: Case, ending: str, tmp_path: Path
) -> None:
    build = Build(tmp_path, case, ending)
    outside = Outside(build.outside)
    done = build.link()
    assert outside.changes() == []
    assert {path.name for path in tmp_path.iterdir()} <= {"outside", "build", "prefix", "tmp"}
    assert "Traceback" not in done.stderr
    if case.refused:
        assert done.returncode == 1, done.stdout
        assert done.stderr.startswith("error: ")
        return
    assert done.returncode == 0, done.stderr
    assert actual_tree(build.prefix) == build.expected(case)


@pytest.mark.long
@pytest.mark.parametrize(("case", "ending"), PARAMETERS)
def test_the_same_in_a_bundle(case: Case, ending: str, tmp_path: Path) -> None:
    build = Build(tmp_path, case, ending)
    outside = Outside(build.outside)
    done = build.link("--as", PACKED)
    archive, table = tmp_path / "build" / "p.tar.gz", tmp_path / "build" / "p.json"
    if done.returncode == 0:
        done = build.run("relocate", "pack", build.prefix, build.cache, archive, table)
    if done.returncode == 0:
        new = tmp_path / "new" / "prefix"
        done = build.run("relocate", "unpack", archive, table, new)
        build.prefix = new
    assert outside.changes() == []
    assert "Traceback" not in done.stderr
    assert done.returncode == (1 if case.refused else 0), done.stderr
    if not case.refused:
        assert actual_tree(build.prefix) == build.expected(case)
