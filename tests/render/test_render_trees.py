"""What is built from a git tree: cloned at its commit in build.sh, and never locked or created."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.render.templates import render

COMMIT = "57bffc3a8e4fee0cce31e1ff1f662ccf7b16db57"
URL = "https://github.com/pytorch/pytorch"


def envbuild(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(words), env={"COLUMNS": "100"})
    return done.exit_code, done.stdout, " ".join(done.stderr.split())


def test_build_sh_clones_the_commit_that_is_on_record() -> None:
    code, text, said = envbuild("render", "pytorch-source", "--as", "script", "--root", "/apps")
    assert code == 0, said
    step = text.partition("step_build-pytorch() {")[2].partition("\n}\n")[0]
    assert f"clone_source pytorch {URL} v1.7.1 {COMMIT}" in step
    assert "export PYTORCH_BUILD_VERSION=1.7.1" in step
    assert "unpack_source" not in step
    assert text.index("step_build-pyyaml()") < text.index("step_build-pytorch()")
    assert text.index("step_build-pytorch()") < text.index("step_build-horovod()")


def test_environment_yml_names_the_commit() -> None:
    code, text, _ = envbuild("render", "pytorch-source", "--as", "environment.yml")
    assert code == 0
    assert f"git+{URL}@{COMMIT}" in text


@pytest.mark.parametrize("verb", ["create", "lock"])
def test_a_tree_is_not_locked_and_the_refusal_says_what_can_be_done(
    verb: str, tmp_path: Path
) -> None:
    words = ("--root", str(tmp_path / "root")) if verb == "create" else ()
    code, out, said = envbuild(verb, "pytorch-source", *words)
    assert (code, out) == (2, "")
    assert "builds pytorch 1.7.1 from its git tree v1.7.1" in said
    assert "envbuild render pytorch-source --as script" in said
    assert not (tmp_path / "root").exists()


def git(folder: Path, *words: str) -> str:
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    named = (
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b.example",
        "-c",
        "protocol.file.allow=always",
    )
    command = ["git", "-C", str(folder), *named, *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environ)
    return done.stdout.strip()


@pytest.mark.integration
def test_a_clone_has_its_submodules_and_a_moved_tag_is_refused(tmp_path: Path) -> None:
    inner, outer, work = (tmp_path / name for name in ("inner", "outer", "work"))
    for each in (inner, outer, work):
        each.mkdir()
    for each in (inner, outer):
        git(each, "init", "-q")
        (each / "file").write_text(each.name)
        git(each, "add", "file")
        git(each, "commit", "-q", "-m", "first")
    git(outer, "submodule", "add", "-q", f"file://{inner}", "third_party")
    git(outer, "commit", "-q", "-m", "with a submodule")
    git(outer, "tag", "v1")
    commit = git(outer, "rev-parse", "HEAD")

    def clone(wanted: str) -> subprocess.CompletedProcess[str]:
        functions = render("bash/sources.sh.j2", trees=True, links=False, scorep=False)
        script = (
            f'say() {{ echo "$*" >&2; }}\n{functions}\nclone_source it {outer.as_uri()} v1 {wanted}'
        )
        counted = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "protocol.file.allow"}
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=work,
            capture_output=True,
            text=True,
            env={**os.environ, **counted, "GIT_CONFIG_VALUE_0": "always"},
            check=False,
        )

    done = clone(commit)
    assert done.returncode == 0, done.stderr
    assert (work / "sources" / "it" / "third_party" / "file").read_text() == "inner"
    moved = clone("0" * 40)
    assert moved.returncode == 1
    assert f"is {commit}, and was {'0' * 40}" in moved.stderr
