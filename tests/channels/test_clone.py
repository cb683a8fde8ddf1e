"""A clone is a recipe and a lock of what a prefix holds; the prefix stays as it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from channel_tools import context, one_engine, package, pip
from linked_prefix import link_prefix

from envbuilder.clone import command as clone_command
from envbuilder.clone.command import clone
from envbuilder.errors import BuildError, DocumentError, UsageError
from envbuilder.model.plan import Lock
from envbuilder.workflow.lock import LOCKS
from envbuilder.workflow.options import CloneOptions, CreateOptions
from tests.conda_channel import PLACEHOLDER, SERIES, File, Package

P = PLACEHOLDER.encode()
NEXT = f"{SERIES.split('.')[0]}.{int(SERIES.split('.')[1]) + 1}.0a0"
PY = f"python >={SERIES},<{NEXT}"
SITE = f"lib/python{SERIES}/site-packages"
PACKAGES = [
    Package(
        "python",
        f"{SERIES}.1",
        {
            f"bin/python{SERIES}": File(b"\x7fELF", executable=True),
            "bin/python": File(b"", link=f"python{SERIES}"),
            f"{SITE}/README.txt": File(b"\n"),
        },
    ),
    package("numpy", "1.26.4", PY, build="py_0"),
    package("mpi4py", "4.0.1", PY, "mpich", build="py_0"),
    package("mpich", "4.2.3"),
    package("flit-core", "3.9.0", subdir="noarch", noarch="generic"),
    Package("tool", "1.0", {"bin/tool": File(P + b"\0\0", mode="binary")}),
    pip(),
]


@pytest.fixture(autouse=True, scope="module")
def _one_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with one_engine(tmp_path_factory.mktemp("cache")):
        yield


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the prefix ``env``, its ``channel`` and rattler's ``cache``."""
    return link_prefix(tmp_path_factory.mktemp("linked"), PACKAGES).parent


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Lock]:
    """Return the locks that are built, in place of their environments."""
    locks: list[Lock] = []

    def create(options: CreateOptions, *_: object) -> Any:
        assert options.locked
        locks.append(LOCKS.load(options.locked))

    monkeypatch.setattr(clone_command, "create", create)
    return locks


def tree(folder: Path) -> dict[str, str]:
    """Return every file of a folder, its mode, and its hash or where it leads to."""
    return {
        str(path.relative_to(folder)): f"{path.lstat().st_mode} "
        + (str(path.readlink()) if path.is_symlink() else sha256(path.read_bytes()).hexdigest())
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def cloned(folder: Path, prefix: Path, **options: Any) -> str:
    """Clone a prefix; return what was said."""
    around, said = context(folder)
    clone(CloneOptions(str(prefix), "ours", site="local", **options), around)
    return said.getvalue()


def test_the_packages_come_from_their_channel(
    linked: Path, tmp_path: Path, made: list[Lock]
) -> None:
    before = tree(linked / "env")
    cloned(tmp_path, linked / "env")
    assert tree(linked / "env") == before
    (lock,) = made
    channel = (linked / "channel").as_uri()
    assert {each.name: each.url for each in lock.conda_packages} == {
        each.name: f"{channel}/{each.subdir}/{each.stem}.conda" for each in PACKAGES
    }
    text = (tmp_path / "ours.yaml").read_text(encoding="utf-8")
    assert f"channels:\n- {channel}\n" in text
    assert "- tool ==1.0 0\n" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "ours.yaml"]
    with pytest.raises(UsageError) as raised:
        cloned(tmp_path, linked / "env")
    assert raised.value.id == "clone.file-exists"
    assert "ours.yaml" in str(raised.value)


def test_what_the_channel_lacks_is_put_together_again(
    linked: Path, tmp_path: Path, made: list[Lock]
) -> None:
    prefix, channel = linked / "env", linked / "channel"
    index = channel / "linux-64" / "repodata.json"
    text = index.read_text(encoding="utf-8")
    said = json.loads(text)
    said["packages.conda"] = {
        name: each for name, each in said["packages.conda"].items() if not name.startswith("tool-")
    }
    index.write_text(json.dumps(said), encoding="utf-8")
    before = tree(prefix)
    try:
        told = cloned(tmp_path, prefix)
    finally:
        index.write_text(text, encoding="utf-8")
    assert tree(prefix) == before
    assert "tool-1.0-0.conda: repacking" in told
    (tool,) = (each for each in made[0].conda_packages if each.name == "tool")
    own = tmp_path / "ours.packages"
    assert tool.url == f"{own.as_uri()}/linux-64/tool-1.0-0.tar.bz2"
    file = own / "linux-64" / "tool-1.0-0.tar.bz2"
    assert sha256(file.read_bytes()).hexdigest() == tool.sha256
    recipe = (tmp_path / "ours.yaml").read_text(encoding="utf-8")
    assert f"channels:\n- {own.as_uri()}\n- {channel.as_uri()}\n" in recipe


def test_a_clone_that_fails_leaves_nothing(
    linked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create(*_: object) -> Any:
        assert {"ours.yaml", "ours.packages"} <= {each.name for each in tmp_path.iterdir()}
        raise BuildError("file.disk-full", "a full disk")

    monkeypatch.setattr(clone_command, "create", create)
    (linked / "channel").rename(linked / "gone")
    try:
        with pytest.raises(BuildError, match="a full disk"):
            cloned(tmp_path, linked / "env")
    finally:
        (linked / "gone").rename(linked / "channel")
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


@pytest.mark.parametrize("key", ["name", "version", "build"])
def test_a_record_of_another_file_is_refused_and_nothing_is_written(
    linked: Path, tmp_path: Path, made: list[Lock], key: str
) -> None:
    """By its name a package that no channel serves would be put together again, anywhere."""
    prefix, outside = tmp_path / "env", tmp_path / "outside"
    shutil.copytree(linked / "env", prefix, symlinks=True)
    outside.mkdir()
    (outside / "repodata.json").write_text("kept")
    path = prefix / "conda-meta" / "mpich-4.2.3-0.json"
    said = json.loads(path.read_text(encoding="utf-8"))
    url = (tmp_path / "gone" / "linux-64" / "mpich-4.2.3-0.conda").as_uri()
    path.write_text(json.dumps({**said, key: "../../outside/mpich", "url": url}))
    with pytest.raises(DocumentError) as raised:
        cloned(tmp_path / "work", prefix)
    assert raised.value.id == "conda.record-mismatch"
    assert "mpich-4.2.3-0.conda" in str(raised.value)
    assert [each.name for each in outside.iterdir()] == ["repodata.json"]
    assert made == []


def test_a_channel_that_is_gone_is_no_matter_where_another_has_its_packages(
    linked: Path, tmp_path: Path, made: list[Lock]
) -> None:
    prefix = tmp_path / "env"
    shutil.copytree(linked / "env", prefix, symlinks=True)
    path = prefix / "conda-meta" / "mpich-4.2.3-0.json"
    said = json.loads(path.read_text(encoding="utf-8"))
    gone = (tmp_path / "gone").as_uri()
    said |= {"url": f"{gone}/linux-64/mpich-4.2.3-0.conda", "channel": gone}
    path.write_text(json.dumps(said))
    assert "cannot read" in cloned(tmp_path / "work", prefix)
    channel = (linked / "channel").as_uri()
    assert {each.channel for each in made[0].conda_packages} == {channel}


@pytest.mark.long
def test_a_channel_that_is_gone_is_left_out(linked: Path, tmp_path: Path, made: list[Lock]) -> None:
    (linked / "channel").rename(linked / "gone")
    try:
        told = cloned(tmp_path, linked / "env")
    finally:
        (linked / "gone").rename(linked / "channel")
    assert "cannot read" in told
    own = (tmp_path / "ours.packages").as_uri()
    assert all(each.url.startswith(own) for each in made[0].conda_packages)
    assert f"channels:\n- {own}\nstack:" in (tmp_path / "ours.yaml").read_text()


def dist(prefix: Path, name: str, version: str, direct: str | None = None) -> None:
    """Install a distribution as pip does."""
    site = prefix / SITE
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (site / f"{name}.py").write_text("x = 1\n")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    rows = [f"{name}.py,,", f"{info.name}/METADATA,,", f"{info.name}/RECORD,,"]
    (info / "RECORD").write_text("".join(f"{each}\n" for each in rows))
    if direct:
        (info / "direct_url.json").write_text(direct)


EDITABLE = json.dumps({"url": "file:///home/me/own", "dir_info": {"editable": True}})


def changed_file(prefix: Path) -> None:
    # The linked file is one with that of the cache.
    path = prefix / "bin" / "tool"
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content + b"more")


def test_what_a_clone_would_not_have_is_refused_or_left_behind(
    linked: Path, tmp_path: Path, made: list[Lock]
) -> None:
    prefix = tmp_path / "env"
    shutil.copytree(linked / "env", prefix, symlinks=True)
    changed_file(prefix)
    (prefix / "share" / "mpich").unlink()
    (prefix / "share" / "mine").write_text("x")
    dist(prefix, "own", "1.0", EDITABLE)
    dist(prefix, "tqdm", "4.67.1")
    dist(prefix, "distributed_dl_training", "0.1", EDITABLE)
    with pytest.raises(DocumentError) as refused:
        cloned(tmp_path, prefix)
    said = [each.message for each in refused.value.problems]
    ids = [each.id for each in refused.value.problems]
    assert ids == ["clone.not-from-index", *3 * ["clone.file-changed"]]
    values = ("own 1.0", "share/mpich of mpich", "bin/tool of tool", "share/mine")
    assert all(value in message for value, message in zip(values, said, strict=True))
    assert "file:///home/me/own" in said[0]
    assert made == []
    assert not (tmp_path / "ours.yaml").exists()
    told = cloned(tmp_path, prefix, leave=True)
    lines = [line for line in told.splitlines() if "not cloned" in line]
    assert lines[:-1] == [f"warning: not cloned: {each}" for each in said[1:]]
    assert "own 1.0" in lines[-1]
    # What an index has is asked of it again; a new environment gets a runtime of its own.
    assert "packages:\n- tqdm==4.67.1\n" in (tmp_path / "ours.yaml").read_text()
    assert made[0].plan.packages == ("tqdm==4.67.1",)


def test_what_is_no_conda_environment(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        cloned(tmp_path, tmp_path)
    assert raised.value.id == "conda.not-an-environment"
    with pytest.raises(UsageError) as raised:
        clone(CloneOptions(str(tmp_path), "Ours"), context(tmp_path)[0])
    assert raised.value.id == "environment.malformed-name"
