"""Git repositories for tests, the same on every machine: with days and names of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not on PATH")

ENVIRON = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (
            ("NAME", "A Test"),
            ("EMAIL", "a.test@example.org"),
            ("DATE", "2020-02-02T02:02:02Z"),
        )
    },
}


def git(folder: Path, *words: str, stdin: bytes = b"") -> str:
    """Run git in a folder; return what it prints."""
    command = ["git", "-c", "protocol.file.allow=always", "-C", str(folder), *words]
    done = subprocess.run(command, check=True, capture_output=True, env=ENVIRON, input=stdin)
    return done.stdout.decode().strip()


def repository(folder: Path, files: Mapping[str, str], tag: str | None = None) -> str:
    """Make a repository, or the next commit of one; return its commit."""
    if not (folder / ".git").is_dir():
        folder.mkdir(parents=True)
        git(folder, "init", "-q", "-b", "main")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return committed(folder, tag)


def committed(folder: Path, tag: str | None = None) -> str:
    """Commit what lies in a folder; return the commit."""
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "a commit")
    if tag:
        git(folder, "tag", "--force", "-a", "-m", tag, tag)
    return git(folder, "rev-parse", "HEAD")


def add_submodule(folder: Path, path: str, url: str, commit: str | None = None) -> None:
    """Add a submodule, which is committed with what comes next."""
    git(folder, "submodule", "--quiet", "add", "--name", path, url, path)
    if commit:
        git(folder / path, "checkout", "-q", commit)
