"""Git trees as archives: what is in them, that nothing of them runs, and what is refused."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from target_environments import TOOLS

from envbuilder.errors import BuildError, DriftError, EnvbuildError
from envbuilder.target_tools import proc
from envbuilder.target_tools.files import UNPACKED_VARIABLE, unpacked_limit
from envbuilder.target_tools.git_tree import (
    Revision,
    TreeFacts,
    _check_paths,
    _Entry,
    fetch_tree,
    module_url,
    shown,
)
from envbuilder.target_tools.tree_archive import TreeArchive
from tests.git_trees import ENVIRON, add_submodule, committed, git, needs_git, repository
from tests.pythons import NAMED, find_python
from tests.serving import serving_by

pytestmark = needs_git


def fetched(
    tmp_path: Path, revision: Revision, environ: Mapping[str, str] = ENVIRON
) -> tuple[TreeFacts, dict[str, str]]:
    """Fetch a tree; return its facts, and the files of its archive; a link is '-> TARGET'."""
    target = tmp_path / "out" / "it-1.0.tar"
    target.parent.mkdir(exist_ok=True)
    try:
        facts = fetch_tree(revision, target, environ)
    finally:
        left = {path.name for path in target.parent.iterdir()} - {target.name}
        assert left == set(), "nothing is left beside the archive"
    data = target.read_bytes()
    assert (facts.sha256, facts.size) == (hashlib.sha256(data).hexdigest(), len(data))
    return facts, members(data)


def members(data: bytes) -> dict[str, str]:
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for each in archive:
            assert (each.uid, each.gid, each.uname, each.gname) == (0, 0, "", "")
            stream = archive.extractfile(each) if each.isfile() else None
            found[each.name] = stream.read().decode() if stream else f"-> {each.linkname}"
    return found


def refusal(tmp_path: Path, revision: Revision, kind: type[EnvbuildError] = BuildError) -> str:
    with pytest.raises(kind) as refused:
        fetched(tmp_path, revision)
    assert not (tmp_path / "out" / "it-1.0.tar").exists()
    return str(refused.value)


def test_the_same_tree_has_the_same_bytes_everywhere(tmp_path: Path) -> None:
    """Another hash makes every lock with a git tree another one."""
    long = "/".join(["a-folder-with-a-long-name"] * 5) + "/file"
    source = tmp_path / "source"
    (source / "bin").mkdir(parents=True)
    git(source, "init", "-q")
    (source / "bin" / "run").write_text("#!/bin/sh\n")
    (source / "bin" / "run").chmod(0o755)
    (source / "link").symlink_to("bin/run")
    (source / "far").symlink_to("x" * 120)
    commit = repository(source, {"a": "first\n", "ä": "second\n", long: "third\n"}, "v1")
    assert commit == "c918c055b942e4c1f57cb4821f4f9a8c91c20436"
    facts, files = fetched(tmp_path, Revision(source.as_uri(), "v1", commit))
    assert files == {
        f"it-1.0/{long}": "third\n",
        "it-1.0/a": "first\n",
        "it-1.0/bin/run": "#!/bin/sh\n",
        "it-1.0/far": f"-> {'x' * 120}",
        "it-1.0/link": "-> bin/run",
        "it-1.0/ä": "second\n",
    }
    assert facts.tree == git(source, "rev-parse", "HEAD^{tree}")
    assert (facts.modules, facts.pointers) == ((), ())
    assert facts.sha256 == "2e90f1f0c6c12faaa62a9cd3c0e44be23b969938fa804fbe2a4291d0d6a11fc0"
    with tarfile.open(tmp_path / "out" / "it-1.0.tar") as archive:
        assert {each.mtime for each in archive} == {1580608922}
        modes = {each.name.rpartition("/")[2]: each.mode for each in archive}
    assert (modes["run"], modes["a"], modes["link"]) == (0o755, 0o644, 0o777)
    # What unpacks it in a build.
    unpack = ["tar", "-xf", str(tmp_path / "out" / "it-1.0.tar"), "-C", str(tmp_path / "out")]
    subprocess.run(unpack, check=True)
    assert (tmp_path / "out" / "it-1.0" / long).read_text() == "third\n"
    assert os.access(tmp_path / "out" / "it-1.0" / "link", os.X_OK)


def test_submodules_come_at_the_commits_that_the_tree_pins(tmp_path: Path) -> None:
    first = repository(tmp_path / "deep", {"deep": "one"})
    repository(tmp_path / "deep", {"deep": "two"})
    repository(tmp_path / "inner", {"inner": "text"})
    add_submodule(tmp_path / "inner", "below/deep", "../deep", first)
    inner = committed(tmp_path / "inner")
    outer = tmp_path / "outer"
    repository(outer, {"outer": "text"})
    add_submodule(outer, "inner", "../inner")
    add_submodule(outer, "deep", (tmp_path / "deep").as_uri())
    add_submodule(outer, "left-out", "../deep")
    git(outer, "config", "-f", ".gitmodules", "submodule.left-out.update", "none")
    commit = committed(outer, "v1")
    facts, files = fetched(tmp_path, Revision(outer.as_uri(), "v1", commit))
    files.pop("it-1.0/.gitmodules")
    files.pop("it-1.0/inner/.gitmodules")
    assert files == {
        "it-1.0/outer": "text",
        "it-1.0/deep/deep": "two",
        "it-1.0/inner/inner": "text",
        "it-1.0/inner/below/deep/deep": "one",
    }
    deep = (tmp_path / "deep").as_uri()
    assert facts.modules == (
        ("deep", deep, git(tmp_path / "deep", "rev-parse", "HEAD")),
        ("inner", (tmp_path / "inner").as_uri(), inner),
        ("inner/below/deep", deep, first),
    )


def test_a_tag_that_was_moved_is_refused_with_both_commits(tmp_path: Path) -> None:
    source = tmp_path / "source"
    before = repository(source, {"a": "1"}, "v1")
    now = repository(source, {"a": "2"}, "v1")
    said = refusal(tmp_path, Revision(source.as_uri(), "v1", before), DriftError)
    assert f"tag v1 of {source.as_uri()} " in said
    assert f"commit {now}" in said
    assert before in said
    said = refusal(tmp_path, Revision(source.as_uri(), "v2", before), DriftError)
    assert "tag v2" in said
    assert before in said
    # A branch, or a tag in another folder, is no tag of that name.
    git(source, "branch", "v3")
    git(source, "update-ref", "refs/else/refs/tags/v3", now)
    assert "has no tag v3" in refusal(tmp_path, Revision(source.as_uri(), "v3", now), DriftError)


def test_what_cannot_be_reached_is_said_without_credentials(tmp_path: Path) -> None:
    gone = (tmp_path / "gone").as_uri()
    said = refusal(tmp_path, Revision(gone, "v1", "c" * 40))
    assert f"{gone}:\n  | fatal:" in said
    assert shown("https://me:secret@git.example/x") == "https://git.example/x"
    assert shown("ssh://git:secret@git.example/x") == "ssh://git@git.example/x"


def test_a_server_that_gives_no_commit_by_its_id(tmp_path: Path) -> None:
    """One of before protocol 2: of a submodule all branches are fetched then, of the root a tag."""
    old = repository(tmp_path / "inner", {"a": "old"})
    repository(tmp_path / "inner", {"a": "new"})
    repository(tmp_path / "outer", {"b": "text"})
    add_submodule(tmp_path / "outer", "inner", "../inner", old)
    commit = committed(tmp_path / "outer", "v1")
    repository(tmp_path / "outer", {"b": "later"})
    before = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "protocol.version"}
    environ = {**ENVIRON, **before, "GIT_CONFIG_VALUE_0": "0"}
    revision = Revision((tmp_path / "outer").as_uri(), "v1", commit)
    _, files = fetched(tmp_path, revision, environ)
    assert (files["it-1.0/inner/a"], files["it-1.0/b"]) == ("old", "text")
    # What no branch and no tag has any more cannot be had.
    git(tmp_path / "inner", "checkout", "-q", "--orphan", "other")
    committed(tmp_path / "inner")
    git(tmp_path / "inner", "branch", "-q", "-D", "main")
    with pytest.raises(BuildError) as raised:
        fetched(tmp_path, revision, environ)
    assert raised.value.id == "git.tree-unreachable"


def test_a_server_of_plain_files_has_it_too(tmp_path: Path) -> None:
    commit = repository(tmp_path / "source", {"a": "text"}, "v1")
    repository(tmp_path / "source", {"a": "later"})
    git(tmp_path / "source", "update-server-info")
    folder = str(tmp_path / "source" / ".git")
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    handler.log_message = lambda *_: None  # type: ignore[attr-defined]
    with serving_by(handler) as url:  # type: ignore[arg-type]
        _, files = fetched(tmp_path, Revision(url.rstrip("/"), "v1", commit))
    assert files == {"it-1.0/a": "text"}


def test_nothing_of_the_tree_runs_and_no_attribute_counts(tmp_path: Path) -> None:
    """Filters of the user, hooks, LFS, ends of lines: the files are those that were committed."""
    ran = tmp_path / "ran"
    templates = tmp_path / "templates"
    (templates / "hooks").mkdir(parents=True)
    for hook in ("post-checkout", "reference-transaction", "pre-auto-gc"):
        (templates / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (templates / "hooks" / hook).chmod(0o755)
    settings = tmp_path / "gitconfig"
    settings.write_text(
        f'[filter "lfs"]\n  smudge = touch {ran}\n  process = touch {ran}\n  required = true\n'
        f"[core]\n  hooksPath = {templates}/hooks\n  autocrlf = true\n  fsmonitor = touch {ran}\n"
        f"[init]\n  templateDir = {templates}\n[log]\n  showSignature = true\n"
    )
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"
    files = {
        ".gitattributes": "* text eol=crlf\n*.bin filter=lfs\nsecret export-ignore\n"
        "version export-subst ident\n",
        "text": "one\ntwo\n",
        "model.bin": pointer,
        "secret": "kept\n",
        "version": "$Format:%H$ $Id$\n",
    }
    source = tmp_path / "source"
    commit = repository(source, files, "v1")
    environ = {
        **ENVIRON,
        "GIT_CONFIG_GLOBAL": str(settings),
        "GIT_TEMPLATE_DIR": str(templates),
        "GIT_DIR": str(tmp_path / "elsewhere"),
        "GIT_EXTERNAL_DIFF": f"touch {ran}",
    }
    facts, found = fetched(tmp_path, Revision(source.as_uri(), "v1", commit), environ)
    assert found == {f"it-1.0/{name}": text for name, text in files.items()}
    assert facts.pointers == ("model.bin",)
    assert not ran.exists()


def test_the_users_own_mirrors_count_and_credentials_of_a_tree_are_not_kept(
    tmp_path: Path,
) -> None:
    inner = repository(tmp_path / "inner", {"a": "text"})
    repository(tmp_path / "outer", {"b": "text"})
    add_submodule(tmp_path / "outer", "inner", "../inner")
    secret = "https://me:secret@git.example/inner"
    git(tmp_path / "outer", "config", "-f", ".gitmodules", "submodule.inner.url", secret)
    commit = committed(tmp_path / "outer", "v1")
    settings = tmp_path / "gitconfig"
    settings.write_text(
        f'[url "{tmp_path.as_uri()}/"]\n  insteadOf = https://git.example/\n'
        "  insteadOf = https://me:secret@git.example/\n"
    )
    environ = {**ENVIRON, "GIT_CONFIG_GLOBAL": str(settings)}
    revision = Revision("https://git.example/outer", "v1", commit)
    facts, _ = fetched(tmp_path, revision, environ)
    assert facts.modules == (("inner", "https://git.example/inner", inner),)


@pytest.mark.parametrize(
    ("parent", "url", "found"),
    [
        ("https://git.example/a/b.git", "../c.git", "https://git.example/a/c.git"),
        ("https://git.example/a/b/", "../../c", "https://git.example/c"),
        ("https://git.example/a", "./b", "https://git.example/a/b"),
        ("git@git.example:a/b", "../c", "git@git.example:a/c"),
        ("ssh://git@git.example/a/b", "../../../c", None),
        ("file:///srv/a", "../b", "file:///srv/b"),
        ("file:///srv/a", "file:///etc", "file:///etc"),
        ("https://git.example/a", "file:///etc", None),
        ("https://git.example/a", "/etc", None),
        ("file:///srv/a", "/etc", None),
        ("https://git.example/a", "ext::sh -c id", None),
        ("https://git.example/a", "-uhttps://x.example/", None),
        ("https://git.example/a", "ssh://-oProxyCommand=id/x", None),
        ("https://git.example/a", "-oProxyCommand=id@x:y", None),
        ("https://git.example/a", "git@git.example:b", "git@git.example:b"),
        ("https://git.example/a", "git://git.example/b", "git://git.example/b"),
    ],
)
def test_where_a_submodule_comes_from(parent: str, url: str, found: str | None) -> None:
    if found:
        assert module_url(parent, url, "it") == found
        return
    with pytest.raises(BuildError) as raised:
        module_url(parent, url, "it")
    assert raised.value.id == "git.submodule-unsafe-url"


def test_a_submodule_that_nobody_says_the_place_of(tmp_path: Path) -> None:
    source = tmp_path / "source"
    repository(source, {"a": "text"})
    git(source, "update-index", "--add", "--cacheinfo", f"160000,{'c' * 40},lost")
    git(source, "commit", "-q", "-m", "lost")
    git(source, "tag", "v1")
    commit = git(source, "rev-parse", "HEAD")
    said = refusal(tmp_path, Revision(source.as_uri(), "v1", commit))
    assert "'lost'" in said
    assert ".gitmodules" in said


def test_gitmodules_is_no_configuration(tmp_path: Path) -> None:
    """It includes nothing, and what it says beside submodules counts for nothing."""
    other = tmp_path / "other"
    other.write_text('[submodule "x"]\n  path = x\n  url = https://x.example/x\n')
    source = tmp_path / "source"
    repository(source, {".gitmodules": f"[include]\n  path = {other}\n[core]\n  pager = id\n"})
    git(source, "update-index", "--add", "--cacheinfo", f"160000,{'c' * 40},x")
    git(source, "commit", "-q", "-m", "x")
    git(source, "tag", "v1")
    commit = git(source, "rev-parse", "HEAD")
    said = refusal(tmp_path, Revision(source.as_uri(), "v1", commit))
    assert ".gitmodules" in said


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["../a"], "git.unsafe-path"),
        (["a/.GIT/config"], "git.unsafe-path"),
        (["/a"], "git.unsafe-path"),
        (["a", "a"], "git.duplicate-path"),
        (["a", "a/b"], "git.duplicate-path"),
        ([b"\xff"], "git.path-not-utf8"),
    ],
)
def test_paths_that_no_tree_has(paths: list[str | bytes], said: str) -> None:
    names = [each if isinstance(each, bytes) else each.encode() for each in paths]
    with pytest.raises(BuildError) as raised:
        _check_paths([_Entry(name, "100644", "0" * 40, None) for name in names])
    assert raised.value.id == said


def test_a_file_of_another_size_than_its_own_is_no_archive() -> None:
    archive = TreeArchive(io.BytesIO(), "it-1.0", 0)
    with pytest.raises(ValueError, match="3 bytes instead of 4"):
        archive.add_file(b"a", executable=False, size=4, chunks=[b"abc"])


PYTHONS = list(
    dict.fromkeys([sys.executable, *NAMED, *map(str, filter(None, [find_python("3.6")]))])
)
Tool = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(params=PYTHONS)
def tool(tmp_path: Path, request: pytest.FixtureRequest) -> Tool:
    """Return what runs fetch-trees on a list of trees."""
    (tmp_path / "wheelhouse").mkdir()

    def run(
        *trees: dict[str, str], environ: Mapping[str, str] = ENVIRON
    ) -> subprocess.CompletedProcess[str]:
        (tmp_path / "trees.json").write_text(json.dumps(trees))
        words = [request.param, "-I", str(TOOLS), "fetch-trees", "trees.json", "wheelhouse"]
        return subprocess.run(
            words, cwd=tmp_path, env=dict(environ), capture_output=True, text=True, check=False
        )

    return run


def test_a_build_fetches_what_is_locked_and_keeps_what_it_has(tmp_path: Path, tool: Tool) -> None:
    source = tmp_path / "source"
    commit = repository(source, {"a": "text"}, "v1")
    facts, _ = fetched(tmp_path, Revision(source.as_uri(), "v1", commit))
    tree = {"file": "it-1.0.tar", "url": source.as_uri(), "tag": "v1", "commit": commit}
    done = tool({**tree, "sha256": "0" * 64})
    assert done.returncode == 1
    assert f"it-1.0.tar is {facts.sha256}, " in done.stderr
    assert not (tmp_path / "wheelhouse" / "it-1.0.tar").exists()
    locked = {**tree, "sha256": facts.sha256}
    done = tool(locked)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"fetch {source.as_uri()} v1\n"
    # It is there, and whole: nobody is asked, and there need be no git.
    nowhere = {"PATH": "/nowhere"}
    assert tool(locked, environ=nowhere).stdout == ""
    archive = tmp_path / "wheelhouse" / "it-1.0.tar"
    archive.write_bytes(archive.read_bytes()[:-1])
    done = tool(locked, environ=nowhere)
    assert done.returncode == 1
    assert "error: git " in done.stderr
    now = repository(source, {"a": "other"}, "v1")
    done = tool(locked)
    assert done.returncode == 1
    assert now in done.stderr
    assert commit in done.stderr
    assert f"into {tmp_path / 'wheelhouse'}" in done.stderr


def test_whoever_ends_it_ends_git_and_what_git_started(tmp_path: Path) -> None:
    (tmp_path / "wheelhouse").mkdir()
    program = tmp_path / "ssh"
    pid = tmp_path / "pid"
    program.write_text(f"#!/bin/sh\necho $$ > {pid}.new\nmv {pid}.new {pid}\nexec sleep 600\n")
    program.chmod(0o755)
    tree = {"file": "it-1.0.tar", "url": "ssh://git@git.example/x", "tag": "v1"}
    tree |= {"commit": "c" * 40, "sha256": "0" * 64}
    (tmp_path / "trees.json").write_text(json.dumps([tree]))
    words = [sys.executable, "-I", str(TOOLS), "fetch-trees", "trees.json", "wheelhouse"]
    environ = {**ENVIRON, "GIT_SSH_COMMAND": str(program)}
    with subprocess.Popen(words, cwd=tmp_path, env=environ, stdout=subprocess.DEVNULL) as running:
        while not pid.exists():
            assert running.poll() is None
            time.sleep(0.02)
        running.terminate()
        assert running.wait(60) == 128 + signal.SIGTERM
    assert proc.is_gone(proc.status_fields(pid.read_text().strip()))
    assert list((tmp_path / "wheelhouse").iterdir()) == []


def nested(folder: Path, depth: int, width: int, size: int) -> str:
    """Make a repository whose folders all are one folder, and so on down to one file."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    entry = "100644 blob " + git(folder, "hash-object", "-w", "--stdin", stdin=bytes(size))
    for _ in range(depth):
        listing = "".join(f"{entry}\t{number}\n" for number in range(width))
        entry = "040000 tree " + git(folder, "mktree", stdin=listing.encode())
    commit = git(folder, "commit-tree", "-m", "a commit", entry.split()[-1])
    git(folder, "update-ref", "refs/heads/main", commit)
    git(folder, "tag", "v1", commit)
    return commit


def test_a_small_repository_that_unpacks_to_a_large_tree_is_refused(tmp_path: Path) -> None:
    """3 kB to 3 GB."""
    commit = nested(tmp_path / "source", 3, 10, 3 * 2**20)
    revision = Revision((tmp_path / "source").as_uri(), "v1", commit)
    with pytest.raises(BuildError) as refused:
        fetched(tmp_path, revision)
    assert refused.value.id == "git.tree-too-large"
    assert UNPACKED_VARIABLE in str(refused.value)


def test_a_limit_that_the_user_states_holds(tmp_path: Path) -> None:
    commit = nested(tmp_path / "source", 1, 3, 10)
    revision = Revision((tmp_path / "source").as_uri(), "v1", commit)
    for limit, problem in (("100", "git.tree-too-large"), ("much", "git.tree-unreadable")):
        with pytest.raises(BuildError) as refused:
            fetched(tmp_path, revision, {**ENVIRON, UNPACKED_VARIABLE: limit})
        assert refused.value.id == problem
    _, files = fetched(tmp_path, revision, {**ENVIRON, UNPACKED_VARIABLE: "10000"})
    assert len(files) == 3


def test_a_tree_of_endless_names_is_refused(tmp_path: Path) -> None:
    """Ten levels of ten folders: its names would fill the memory."""
    commit = nested(tmp_path / "source", 10, 10, 1)
    revision = Revision((tmp_path / "source").as_uri(), "v1", commit)
    with pytest.raises(BuildError) as refused:
        fetched(tmp_path, revision)
    assert refused.value.id == "git.tree-unreadable"


def test_what_an_archive_may_unpack_to_has_a_ratio_and_an_end() -> None:
    assert unpacked_limit(2**20, {}) == (64 + 200) * 2**20
    assert unpacked_limit(2**30, {}) == 16 * 2**30
    assert unpacked_limit(2**30, {UNPACKED_VARIABLE: "5"}) == 5
