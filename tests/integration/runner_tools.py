"""gitlab-ci-local, which runs the jobs of a GitLab pipeline on this machine.

npm installs it below ENVBUILD_GITLAB_CI_LOCAL, or in a folder of the test. Its dependency re2 is
compiled for an hour or more on a small machine: ``runner/re2`` wraps the regular expressions of
JavaScript in its place, which differ only for patterns that could take forever.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from emulated_tools import SECONDS
from image_tools import QUICK
from integration_tools import Done, run
from module_tools import new_shell, start_lines
from registry_tools import needed

RUNNER = Path(__file__).with_name("runner")
ORIGIN = "https://gitlab.example.org/group/project.git"


def runner_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program."""
    needed("apptainer", "npm", "rsync", "git")
    named = os.environ.get("ENVBUILD_GITLAB_CI_LOCAL")
    folder = Path(named) if named else tmp_path_factory.mktemp("runner") / "runner"
    program = folder / "node_modules" / ".bin" / "gitlab-ci-local"
    if not program.exists():
        shutil.copytree(RUNNER, folder, dirs_exist_ok=True)
        done = run(["npm", "install", "--no-audit", "--no-fund"], cwd=folder, timeout=SECONDS)
        if done.code != 0:
            pytest.skip(f"npm cannot install gitlab-ci-local: {done.err.splitlines()[-1:]}")
    return program


def commit(folder: Path) -> None:
    """Commit all that is in a folder, as a repository with an origin."""
    lines = [("add", "-A")]
    if not (folder / ".git").exists():
        (folder / ".gitignore").write_text("envbuild-ci/\n.cache/\n.gitlab-ci-local/\n")
        lines = [("init", "-q", "-b", "main"), ("remote", "add", "origin", ORIGIN), *lines]
    author = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for line in (*lines, (*author, "commit", "-q", "--allow-empty", "-m", "A commit")):
        done = run(["git", *line], cwd=folder)
        assert done.code == 0, done.text


def run_pipeline(program: Path, folder: Path, env: dict[str, str] | None = None) -> Done:
    """Run the pipeline of a repository to its end, one job at a time."""
    line = [program, "--shell-executor-no-image", "--no-color", "--concurrency", "1"]
    return run(line, cwd=folder, env={**QUICK, **(env or {})}, timeout=6 * SECONDS)


def ended(done: Done) -> dict[str, bool]:
    """Return the jobs that ended, and whether they passed."""
    marks = re.findall(r"^\s*(PASS|FAIL)\s+([\w.-]+)", done.out, re.MULTILINE)
    return {job: mark == "PASS" for mark, job in marks}


def load_image(images: Path, number: dict[str, Any], system: str, shell: str) -> None:
    """Fail unless a shell loads a published image, whose help names the MPI and each proof."""
    name = number["environment"]
    lines = [
        f"module use {images}/modulefiles",
        f"module load {name}",
        f"module help {name}",
        "python -c 'import mpi4py; print(mpi4py.__name__)'",
    ]
    done = new_shell(shell, [*start_lines(system, shell), *lines], images.parent)
    assert (done.code, done.out.splitlines()[-1]) == (0, "mpi4py"), done.text
    for proof in number["evidence"]:
        assert f"MPI: {proof['result']['mpi'] or 'unknown'}" in done.text
        for check in proof["result"]["checks"]:
            assert f"  {check['name']}: " in done.text
