"""What is built from a git tree with a submodule: locked, built, bundled, refused when it changed.

The repositories are the test's own; git, gcc, pip, MPI and the ranks are real.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from integration_tools import Envbuild, run, without_network
from test_sources import CODE, COMPONENTS, SETUP

from envbuilder.model.plan import Lock
from tests.git_trees import add_submodule, committed, needs_git, repository

pytestmark = [
    needs_git,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc compiles; it is not on PATH"),
]

TREES = """\
schema: 1
recorded: "2026-01-01"
source: the test
{releases}
source-trees:
  {component}:
    url: {url}
    source: the test
    trees: [{{version: "{version}", tag: v1, commit: {commit}}}]
"""
RELEASES = """\
releases:
  answer-ext: [{version: "1.0", wheels: false}]
"""
RECIPE = """\
schema: 1
name: answers
summary: With an extension that is compiled from a git tree
arch: [x86_64, aarch64]
stack: {python: ">=3.9", numpy: "*", mpi4py: ">=4", mpich: ">=4.2", answer-ext: "*"}
from-source: [answer-ext]
smoke: {ranks: 2, max-bytes: 65536}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a repository whose extension includes a header of its submodule."""
    repository(tmp_path / "git" / "header", {"answer.h": "#define ANSWER 42\n"})
    source = tmp_path / "git" / "source"
    code = CODE.replace("#include <Python.h>", '#include <Python.h>\n#include "header/answer.h"')
    repository(source, {"setup.py": SETUP, "answer_ext.c": code})
    add_submodule(source, "header", "../header")
    committed(source, "v1")
    return source


def write_recipes(folder: Path, source: Path, commit: str) -> Path:
    """Write a folder of recipes that knows the extension by its tree."""
    (folder / "knowledge").mkdir(parents=True, exist_ok=True)
    trees = TREES.format(
        releases=RELEASES, component="answer-ext", version="1.0", url=source.as_uri(), commit=commit
    )
    (folder / "knowledge" / "components.yaml").write_text(COMPONENTS)
    (folder / "knowledge" / "versions.yaml").write_text(trees)
    (folder / "answers.yaml").write_text(RECIPE)
    return folder


def answer(root: Path) -> str:
    """Return what the extension of the published environment says."""
    [module] = root.glob("modulefiles/answers/1.lua")
    [python] = root.glob("answers/*/bin/python")
    assert str(python.parent.parent) in module.read_text()
    return run([python, "-I", "-c", "import answer_ext; print(answer_ext.answer())"]).out.strip()


@pytest.mark.long
def test_from_the_plan_to_a_bundle_that_builds_without_network(
    envbuild: Envbuild, tmp_path: Path, source: Path
) -> None:
    commit = committed_head(source)
    recipes = write_recipes(tmp_path / "recipes", source, commit)
    words = ("answers", "--recipes", recipes)
    root, file = tmp_path / "root", tmp_path / "lock.json"
    own = {"ENVBUILD_WHEEL_CACHE": str(tmp_path / "cache")}
    done = envbuild("create", *words, "--root", root, env=own)
    assert done.code == 0, done.text
    assert answer(root) == "42"
    # git fetched it once, to lock it.
    [log] = root.glob("answers/*.build/logs/*-fetch.log")
    assert source.as_uri() not in log.read_text()

    last = root / "answers" / "lock.json"
    [tree] = Lock.model_validate_json(last.read_text()).git_trees
    assert (tree.name, tree.filename, tree.commit) == ("answer-ext", "answer-ext-1.0.tar", commit)
    assert [each.path for each in tree.submodules] == ["header"]
    shutil.copyfile(last, file)
    made = envbuild("create", *words, "--locked", file, "--bundle", "--output", tmp_path, "--json")
    assert made.code == 0, made.text
    told = json.loads(made.out)
    assert envbuild("bundle", "verify", told["archive"]).code == 0

    # Its builder has neither the repositories nor git.
    source.parent.rename(tmp_path / "away")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "git").write_text("#!/bin/sh\necho git was started >&2\nexit 1\n")
    (bin_ / "git").chmod(0o755)
    there = tmp_path / "there"
    words_there = ["bash", Path(told["folder"]) / "install.sh", there]
    path = f"{bin_}:/usr/local/bin:/usr/bin:/bin"
    built = run(
        [*without_network(), *words_there],
        env={"PATH": path, "ENVBUILD_WHEEL_CACHE": str(tmp_path / "other-cache")},
    )
    assert built.code == 0, built.text
    assert answer(there) == "42"
    (tmp_path / "away").rename(source.parent)

    # The tag is moved upstream: nothing is locked, and nothing fetched by the lock.
    now = repository(source, {"more": "text"}, "v1")
    both = f"commit {now}, recorded is {commit}"
    done = envbuild("create", *words, "--root", root, "--relock", env=own)
    assert done.code == 8, done.text
    assert both in done.err
    done = envbuild("create", *words, "--root", tmp_path / "new", "--locked", file, env=own)
    assert done.code == 5, done.text
    assert both in done.err
    assert not list((tmp_path / "new").glob("modulefiles/answers/*"))


def committed_head(source: Path) -> str:
    return run(["git", "-C", source, "rev-parse", "HEAD"]).out.strip()


@pytest.mark.long
def test_pytorch_source_locks_and_its_bundle_is_complete(
    envbuild: Envbuild, tmp_path: Path
) -> None:
    """With a small tree in PyTorch's place; the rest is the index's own, for ppc64le."""
    repository(tmp_path / "nested", {"LICENSE": "text"})
    repository(tmp_path / "gloo", {"gloo/gloo.h": ""})
    add_submodule(tmp_path / "gloo", "third-party/nested", "../nested")
    committed(tmp_path / "gloo")
    source = tmp_path / "pytorch"
    repository(source, {"setup.py": "", "torch/__init__.py": ""})
    add_submodule(source, "third_party/gloo", "../gloo")
    commit = committed(source, "v1")
    (tmp_path / "recipes" / "knowledge").mkdir(parents=True)
    (tmp_path / "recipes" / "knowledge" / "versions.yaml").write_text(
        TREES.format(
            releases="",
            component="pytorch",
            version="1.7.1",
            url=source.as_uri(),
            commit=commit,
        )
    )
    words = ("create", "pytorch-source", "--recipes", tmp_path / "recipes", "--output", tmp_path)
    done = envbuild(*words, "--arch", "ppc64le", "--json")
    assert done.code == 0, done.text
    told = json.loads(done.out)
    build = Path(told["folder"]) / "build"
    lock = Lock.model_validate_json((build / "lock.json").read_text())
    [tree] = lock.git_trees
    assert (tree.name, tree.imports) == ("torch", "torch")
    paths = [each.path for each in tree.submodules]
    assert paths == ["third_party/gloo", "third_party/gloo/third-party/nested"]
    wheelhouse = {each.name for each in (build / "wheelhouse").iterdir()}
    assert wheelhouse == {each.filename for each in lock.wheelhouse}
    assert len(lock.wheelhouse) == len(lock.artifacts)
    checked = run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=build)
    assert checked.code == 0, checked.text
