"""A real conda makes the same prefix as py-rattler, and reads ours without complaint.

conda is on no package index, so these tests run where ENVBUILD_TEST_CONDA names one:
docs/testing.md says how one is had.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest
from test_engines import FILES, Build

from tests.conda_channel import File, Package, from_wheel, movable_python

CONDA = os.environ.get("ENVBUILD_TEST_CONDA")
pytestmark = pytest.mark.skipif(
    not CONDA, reason="ENVBUILD_TEST_CONDA names no conda: docs/testing.md says how one is had"
)
CHECKS = ("altered-files", "consistency", "missing-files", "pinned")
"""Those of conda's doctor that are about a prefix, and need no network."""
LINKED = {"lib/libtool.so.1": File(b"\x7fELF1"), "lib/libtool.so": File(b"", link="libtool.so.1")}
MORE = {"empty": File(b""), "share/a file": File(b"spaces\n"), "etc/tool.conf": File(b"a = 1\n")}


@dataclass(frozen=True)
class Made:
    """What one engine made: its files, and what conda says of them."""

    contents: dict[str, str]
    links: dict[str, str]
    modes: dict[str, int]
    listed: list[dict[str, object]]
    explicit: str
    doctor: list[str]


def asked(build: Build, *words: str) -> str:
    """Return what conda says of a prefix, without what this machine's user has set."""
    own = {"PATH": os.environ["PATH"], "HOME": str(build.home)}
    command = [str(CONDA), *words, "-p", str(build.prefix)]
    done = subprocess.run(command, env=own, capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    assert "warning" not in done.stderr.lower(), done.stderr
    return done.stdout


def made(build: Build, **env: str) -> Made:
    done = build.run(**env)
    assert done.returncode == 0, done.stderr
    paths = {str(each.relative_to(build.prefix)): each for each in build.prefix.rglob("*")}
    outside = {name: path for name, path in paths.items() if not name.startswith("conda-meta")}
    said = json.loads(asked(build, "list", "--json"))
    contents = {name: sha for name, sha in build.contents().items() if not name.endswith(".pyc")}
    return Made(
        contents,
        {name: str(path.readlink()) for name, path in outside.items() if path.is_symlink()},
        {
            name: path.stat().st_mode
            for name, path in outside.items()
            if path.is_file() and name in contents
        },
        said,
        asked(build, "list", "--explicit", "--sha256"),
        asked(build, "doctor", *CHECKS).splitlines(),
    )


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Made, Made]:
    """Return what py-rattler made, and what conda made, of the same packages in the same place."""
    folder = tmp_path_factory.mktemp("real")
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
    subprocess.run([*words, "--only-binary", ":all:", "pip"], check=True)
    wheel = next(folder.glob("pip-*.whl"))
    packages = [
        movable_python(),
        Package("tool", "1.0", {**FILES, **LINKED, **MORE}),
        from_wheel(wheel, name="pip", depends=["python >=3.9"], noarch=True),
    ]
    build = Build(folder, packages)
    return made(build), made(build, ENVBUILD_CONDA=str(CONDA))


def test_it_makes_the_same_files(both: tuple[Made, Made]) -> None:
    ours, theirs = both
    assert theirs.contents == ours.contents
    assert theirs.links == ours.links
    assert theirs.modes == ours.modes
    assert {"bin/pip", "bin/tool", "lib/tool.so"} <= ours.contents.keys()


def test_it_lists_ours_as_its_own(both: tuple[Made, Made]) -> None:
    ours, theirs = both
    assert ours.listed == theirs.listed
    assert {each["name"] for each in ours.listed} == {"python", "tool", "pip"}
    assert ours.explicit == theirs.explicit
    assert ours.explicit.count("#sha256:") + ours.explicit.count(".conda#") >= 3


def test_its_doctor_finds_nothing_missing_or_altered(both: tuple[Made, Made]) -> None:
    ours, theirs = both
    assert ours.doctor == theirs.doctor
    said = "\n".join(ours.doctor)
    assert "no packages with altered files" in said
    assert "no packages with missing files" in said
    assert "environment is consistent" in said
