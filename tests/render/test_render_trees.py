"""What is built from a git tree: its archive is fetched by git, and unpacked like any sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.errors import UsageError
from envbuilder.knowledge.artifacts import Submodule
from envbuilder.locking.lock_check import contradictions
from envbuilder.model.plan import Lock, Plan
from envbuilder.render.build import builds_text
from envbuilder.render.requirements import requirement_files
from envbuilder.runtimes import RUNTIMES
from tests.cli.published import planned
from tests.made_up_files import locked

COMMIT = "57bffc3a8e4fee0cce31e1ff1f662ccf7b16db57"
URL = "https://github.com/pytorch/pytorch"
# The recipe is for this architecture alone.
POWER = ("--arch", "ppc64le")


def envbuild(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(words), env={"COLUMNS": "100"})
    return done.exit_code, done.stdout, " ".join(done.stderr.split())


@pytest.fixture(scope="module")
def lock() -> Lock:
    return locked(Plan.model_validate_json(json.dumps(planned("pytorch-source", *POWER))))


def test_build_sh_unpacks_what_git_fetched() -> None:
    code, text, said = envbuild(
        "render", "pytorch-source", *POWER, "--as", "script", "--root", "/apps"
    )
    assert code == 0, said
    step = text.partition("step_build-pytorch() {")[2].partition("\n}\n")[0]
    assert "unpack_source pytorch pytorch-1.7.1.tar\n" in step
    assert "export PYTORCH_BUILD_VERSION=1.7.1" in step
    fetch = text.partition("step_fetch() {")[2].partition("\n}\n")[0]
    assert "target_tools fetch-trees trees.json wheelhouse" in fetch
    assert text.index("step_build-pyyaml()") < text.index("step_build-pytorch()")
    assert text.index("step_build-pytorch()") < text.index("step_build-horovod()")


def test_no_other_build_asks_for_trees() -> None:
    words = ("horovod-nccl", "--arch", "ppc64le", "--as", "script", "--root", "/apps")
    code, text, said = envbuild("render", *words)
    assert code == 0, said
    assert "fetch-trees" not in text


def test_environment_yml_names_the_commit() -> None:
    code, text, _ = envbuild("render", "pytorch-source", *POWER, "--as", "environment.yml")
    assert code == 0
    assert f"git+{URL}@{COMMIT}" in text


def test_the_lists_of_files_name_the_archive(lock: Lock) -> None:
    [tree] = lock.git_trees
    files = requirement_files(lock)
    [told] = json.loads(files["trees.json"])
    assert told == {
        "file": "pytorch-1.7.1.tar",
        "url": URL,
        "tag": "v1.7.1",
        "commit": COMMIT,
        "sha256": tree.sha256,
    }
    assert f"{tree.sha256}  wheelhouse/pytorch-1.7.1.tar\n" in files["SHA256SUMS"]
    assert "pytorch-1.7.1" not in files["sources.txt"]
    expected = {each["name"]: each["version"] for each in json.loads(files["expected.json"])}
    assert expected["pytorch"] == "1.7.1"
    build = next(
        each for each in json.loads(builds_text(lock, RUNTIMES)) if each["component"] == "pytorch"
    )
    assert (build["sdist"], build["sha256"]) == ("pytorch-1.7.1.tar", tree.sha256)


@pytest.mark.parametrize("name", ["a b", "../x", "$(id)"])
def test_a_file_name_that_scripts_cannot_hold(lock: Lock, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        requirement_files(with_tree(lock, filename=f"{name}.tar"))
    assert caught.value.id == "lock.invalid-artifact"


def submodules(*paths: str) -> tuple[Submodule, ...]:
    where = {"url": "https://x.example/x", "commit": "c" * 40}
    return tuple(Submodule(path=path, **where) for path in paths)


def with_tree(lock: Lock, **changes: object) -> Lock:
    others = [each for each in lock.artifacts if each.kind != "git-tree"]
    [tree] = lock.git_trees
    return lock.model_copy(update={"artifacts": (*others, tree.model_copy(update=changes))})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"commit": "c" * 40}, "git tree"),
        ({"commit": "c" * 40}, "uses pytorch-1.7.1.tar"),
        ({"url": "https://x.example/pytorch"}, "git tree"),
        ({"tag": "v1.7.0"}, "git tree"),
        ({"version": "1.7.0"}, "pytorch-1.7.1.tar"),
        ({"filename": "else.tar"}, "else.tar"),
        ({"submodules": submodules("a", "a")}, "distinct paths"),
        ({"submodules": submodules("a/../b")}, "distinct paths"),
        ({"submodules": submodules("/a")}, "distinct paths"),
    ],
)
def test_a_lock_that_contradicts_itself(lock: Lock, changes: dict[str, object], said: str) -> None:
    assert contradictions(lock) == ()
    assert any(said in line for line in contradictions(with_tree(lock, **changes)))


def test_a_lock_without_its_tree(lock: Lock) -> None:
    files = tuple(each for each in lock.artifacts if each.kind != "git-tree")
    said = contradictions(lock.model_copy(update={"artifacts": files}))
    (line,) = said
    assert "pytorch 1.7.1" in line


@pytest.mark.parametrize(
    "url",
    [
        "https://me:secret@git.example/x",
        "https://me@git.example/x",
        "ssh://git:secret@git.example/x",
        "ext::sh -c id",
        "ssh://-oProxyCommand=id/x",
        "git://git.example/x",
        "/srv/x",
    ],
)
def test_a_url_that_knowledge_may_not_have(url: str, tmp_path: Path) -> None:
    file = tmp_path / "knowledge" / "versions.yaml"
    file.parent.mkdir()
    file.write_text(
        'schema: 1\nrecorded: "2026-01-01"\nsource: the test\nsource-trees:\n  pytorch:\n'
        f"    url: {json.dumps(url)}\n    source: the test\n    trees:\n"
        f"      - {{version: 1.7.1, tag: v1, commit: {COMMIT}}}\n"
    )
    code, _, said = envbuild("plan", "pytorch-source", *POWER, "--recipes", str(tmp_path))
    assert code == 2
    assert "versions.yaml:6:10" in said
    assert "secret" not in said


def test_sshs_user_is_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "knowledge" / "versions.yaml"
    file.parent.mkdir()
    url = "ssh://git@git.example/pytorch.git"
    file.write_text(
        'schema: 1\nrecorded: "2026-01-01"\nsource: the test\nsource-trees:\n  pytorch:\n'
        f"    url: {url}\n    source: the test\n    trees:\n"
        f"      - {{version: 1.7.1, tag: v1, commit: {COMMIT}}}\n"
    )
    code, out, said = envbuild(
        "plan", "pytorch-source", *POWER, "--recipes", str(tmp_path), "--json"
    )
    assert code == 0, said
    assert url in out
