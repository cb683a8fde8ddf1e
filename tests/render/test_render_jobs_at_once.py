"""How many jobs of make a build runs at once: what the plan's remedy says, else what fits here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from envbuilder.render.templates import render

# Says what a build is given, in the place of pip; of the cache it knows nothing.
PYTHON = """\
#!/bin/sh
case "$*" in *pip*) echo "$MAKEFLAGS $CMAKE_BUILD_PARALLEL_LEVEL" ;; esac
"""


@pytest.mark.parametrize(("remedy", "given"), [(None, "-j3 3\n"), ("-j1", "-j1 1\n")])
def test_a_remedy_says_it_before_the_machine(
    tmp_path: Path, remedy: str | None, given: str
) -> None:
    python = tmp_path / "prefix/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON, encoding="utf-8")
    python.chmod(0o755)
    functions = render("bash/sources.sh.j2", builds=True, links=False, scorep=False)
    script = f"say() {{ :; }}\n{functions}\nbuild_wheel horovod"
    env = {**os.environ, "PREFIX": str(tmp_path / "prefix"), "HERE": str(tmp_path)}
    env |= {"WHEEL_CACHE": str(tmp_path), "ENVBUILD_JOBS": "3", "CC": "sh", "CXX": "sh"}
    env.pop("MAKEFLAGS", None)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=env | ({"MAKEFLAGS": remedy} if remedy else {}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (given, "")
