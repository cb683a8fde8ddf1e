"""The root: its stamp, its numbers, publishing, removing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envbuilder import files
from envbuilder.errors import UsageError
from envbuilder.root import usage
from envbuilder.target_tools.root import layout, publish, registry, store


def make_home(tmp_path: Path, name: str = "demo") -> layout.Home:
    root = store.open_root(tmp_path / "root", "local", "x86_64")
    return store.open_home(root, name)


def make_prefix(home: layout.Home, identity: str) -> None:
    publish.mark(home, identity)
    (home.prefix(identity) / "bin").mkdir(parents=True)
    (home.prefix(identity) / "bin" / "tool").write_text("x")


def publish_one(home: layout.Home, identity: str) -> layout.Version:
    make_prefix(home, identity)
    version = publish.reserve(home, identity, "lua")
    publish.publish(home, version, f"-- {identity}\n")
    publish.set_default(home, version)
    return version


def publish_named(home: layout.Home, identity: str) -> layout.Version:
    """Publish with a modulefile that names its prefix, as those of create do."""
    make_prefix(home, identity)
    version = publish.reserve(home, identity, "lua")
    publish.publish(home, version, f"-- {home.prefix(identity)}\n")
    return version


def test_a_root_is_stamped_and_refuses_another_architecture_and_site(tmp_path: Path) -> None:
    path = tmp_path / "root"
    store.open_root(path, "local", "x86_64")
    assert json.loads((path / ".envbuild.json").read_text()) == {
        "arch": "x86_64",
        "schema": 1,
        "site": "local",
    }
    with pytest.raises(UsageError) as raised:
        store.open_root(path, "local", "ppc64le")
    assert raised.value.id == "root.other-architecture"
    assert "x86_64" in str(raised.value)
    assert "ppc64le" in str(raised.value)
    with pytest.raises(UsageError) as raised:
        store.open_root(path, "taurus-ml", "x86_64")
    assert raised.value.id == "root.other-site"


@pytest.mark.parametrize("name", ["a;b", "$(touch pwned)", "$HOME", "`touch pwned`", 'a"b', "a\\b"])
def test_a_root_that_scripts_cannot_hold_is_refused_with_its_character(
    name: str, tmp_path: Path
) -> None:
    character = next(each for each in name if each in store.UNSAFE)
    with pytest.raises(UsageError) as refused:
        store.open_root(tmp_path / name, "local", "x86_64")
    assert refused.value.id == "root.unsafe-path"
    assert f"contains {character!r}: " in str(refused.value)
    assert list(tmp_path.iterdir()) == []
    store.open_root(tmp_path / "it's (good), ümläut & 100% [x]", "local", "x86_64")


def test_a_folder_with_other_things_in_it_is_not_made_a_root(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError) as raised:
        store.open_root(tmp_path, "local", "x86_64")
    assert raised.value.id == "root.not-empty"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": 3, "site": "local", "arch": "x86_64"}', "root.newer-schema"),
        ('{"schema": 2, "site": "local", "arch": "x86_64"}', "root.stamp-damaged"),
        ('{"schema": 1, "site": "a", "arch": "b", "group": "staff"}', "root.stamp-damaged"),
        ('{"schema": 2, "site": "a", "arch": "b", "group": " "}', "root.stamp-damaged"),
        ('{"schema": 1}', "root.stamp-damaged"),
        ("", "root.stamp-damaged"),
    ],
)
def test_a_stamp_of_the_future_or_a_damaged_one_is_said(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / ".envbuild.json").write_text(text)
    with pytest.raises(UsageError) as raised:
        store.read_root(tmp_path)
    assert raised.value.id == message


def test_numbers_count_up_and_are_never_given_twice(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    first, second = publish_one(home, "a" * 12), publish_one(home, "b" * 12)
    assert (first.number, second.number) == (1, 2)
    publish.withdraw(home, second)
    assert [v.number for v in publish.published(home)] == [1]
    assert publish.unpublished(home) == ("b" * 12,)
    publish.remove_prefix(home, second.id)
    assert not home.prefix("b" * 12).exists()
    third = publish_one(home, "b" * 12)
    assert third.number == 3
    assert [v.number for v in publish.published(home)] == [1, 3]


def test_a_publish_that_was_killed_after_the_number_was_reserved_finds_it_again(
    tmp_path: Path,
) -> None:
    home = make_home(tmp_path)
    make_prefix(home, "a" * 12)
    reserved = publish.reserve(home, "a" * 12, "lua")
    assert publish.published(home) == ()
    assert publish.unpublished(home) == ("a" * 12,)
    assert publish.reserve(home, "a" * 12, "lua") == reserved


def test_a_published_prefix_is_read_only(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    version = publish_one(home, "a" * 12)
    tool = home.prefix(version.id) / "bin" / "tool"
    assert [oct(p.stat().st_mode & 0o222) for p in (tool, tool.parent)] == ["0o0", "0o0"]


def test_the_default_is_what_the_file_says(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    assert registry.default_number(home) is None
    publish_one(home, "a" * 12)
    publish_one(home, "b" * 12)
    assert registry.default_number(home) == 2
    with pytest.raises(UsageError) as caught:
        publish.find_version(home, 7)
    assert caught.value.id == "environment.unknown-number"
    assert "demo/7" in str(caught.value)
    assert caught.value.problems[0].hints == ("published: demo/1, demo/2",)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"versions": 3}', "[" * 100_000, '{"versions": [{"number": 1}]}', "\x00"],
)
def test_a_damaged_registry_takes_nothing_away_and_is_written_anew(
    tmp_path: Path, text: str
) -> None:
    home = make_home(tmp_path)
    publish_named(home, "a" * 12)
    publish_named(home, "b" * 12)
    home.registry_file.write_text(text)
    assert [(v.number, v.id) for v in publish.published(home)] == [(1, "a" * 12), (2, "b" * 12)]
    [problem] = registry.problems(home)
    assert "envbuild create" in problem
    said: list[str] = []
    registry.heal_registry(home, said.append)
    assert registry.problems(home) == []
    assert home.registry_file.with_name(".envbuild.json.damaged").read_text() == text
    assert "damaged" in said[0]
    assert publish_named(home, "c" * 12).number == 3


def test_a_default_file_without_a_number_is_a_problem(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    publish_one(home, "a" * 12)
    default = home.modulefiles / ".modulerc.lua"
    default.write_text("-- cut off\n")
    assert registry.default_number(home) is None
    [problem] = registry.problems(home)
    assert str(default) in problem
    assert "envbuild rollback demo" in problem


def test_what_of_a_damaged_registry_can_be_read_counts(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    for identity in ("a" * 12, "b" * 12):
        publish_named(home, identity)
    publish.withdraw(home, publish.published(home)[1])
    told = json.loads(home.registry_file.read_text())
    told["versions"].append({"number": "three"})
    home.registry_file.write_text(json.dumps(told))
    assert [(v.number, v.removed) for v in registry.read_registry(home)] == [(1, False), (2, True)]


def test_a_registry_cannot_give_a_number_another_meaning(tmp_path: Path) -> None:
    """What is loaded is what the modulefile names: that is what is told of the number."""
    home = make_home(tmp_path)
    for identity in ("a" * 12, "b" * 12):
        publish_named(home, identity)
    good = json.loads(home.registry_file.read_text())
    for changes in ({"id": "b" * 12}, {"dialect": "tcl"}, {"removed": True}, {"number": 7}):
        told = json.loads(json.dumps(good))
        told["versions"][0].update(changes)
        home.registry_file.write_text(json.dumps(told))
        found = [(v.number, v.id) for v in publish.published(home)]
        assert found == [(1, "a" * 12), (2, "b" * 12)], changes
        reserved = publish.find_reserved(home, "a" * 12)
        assert reserved is not None
        assert reserved.number == 1


@pytest.mark.parametrize("lost", ["registry", "folder", "restored"])
def test_a_lost_registry_gives_no_number_away_again(tmp_path: Path, lost: str) -> None:
    home = make_home(tmp_path)
    publish_named(home, "a" * 12)
    before = home.registry_file.read_text()
    publish_named(home, "b" * 12)
    second = publish_named(home, "c" * 12)
    publish.withdraw(home, second)
    publish.remove_prefix(home, second.id)
    if lost == "folder":
        files.remove_tree(home.folder)
    elif lost == "restored":
        home.registry_file.write_text(before)
    else:
        home.registry_file.unlink()
    home = make_home(tmp_path)
    assert publish_named(home, "d" * 12).number == 4


def test_a_number_that_is_removed_while_the_registry_is_lost_is_used_up(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    version = publish_named(home, "a" * 12)
    home.registry_file.unlink()
    publish.withdraw(home, version)
    assert [(v.number, v.removed) for v in registry.read_registry(home)] == [(1, True)]


def test_writing_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    files.write_atomically(path, "old")

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        files.write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_files_obey_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        files.write_atomically(tmp_path / "file", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="Lmod hides unreadable modulefiles from root only")
def test_modulefiles_of_root_can_be_read_by_all_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        home = make_home(tmp_path)
        version = publish_one(home, "a" * 12)
    finally:
        os.umask(before)
    shown = [home.modulefiles, home.modulefile(version), home.modulefiles / ".modulerc.lua"]
    assert [oct(path.stat().st_mode & 0o777) for path in shown] == ["0o755", "0o644", "0o644"]
    assert home.prefix(version.id).stat().st_mode & 0o077 == 0


def test_work_folders_are_no_environments(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    home.scratch.mkdir()
    assert publish.unpublished(home) == ()


def test_a_process_that_was_started_with_a_prefix_loaded_is_found(tmp_path: Path) -> None:
    loaded = {**os.environ, "VIRTUAL_ENV": str(tmp_path)}
    with subprocess.Popen(["cat"], env=loaded, stdin=subprocess.PIPE, cwd="/") as running:
        # Until its program has replaced ours, a new process shows our own environment.
        while not usage.processes_using(tmp_path) and running.poll() is None:
            time.sleep(0.01)
        assert [user.pid for user in usage.processes_using(tmp_path)] == [running.pid]
        running.communicate()
    assert usage.processes_using(tmp_path) == ()


def test_a_process_that_runs_from_a_prefix_is_found(tmp_path: Path) -> None:
    script = "import sys; print('up', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        running.stdout.readline()
        assert [user.pid for user in usage.processes_using(tmp_path)] == [running.pid]
        running.communicate()
    assert usage.processes_using(tmp_path) == ()


def test_removing_all_leaves_nothing_but_the_used_numbers(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    publish_one(home, "a" * 12)
    publish_one(home, "b" * 12)
    make_prefix(home, "c" * 12)
    command = [sys.executable, "-m", "envbuilder", "remove", "demo", "--root", str(home.root)]
    default = [*command[:4], "demo/2", *command[-2:]]
    refused = subprocess.run(default, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert f"remove demo --all --root '{home.root}'" in refused.stderr
    one = subprocess.run([*command, "--all"], capture_output=True, text=True, check=True)
    assert one.stdout == "removed demo/1, demo/2\n"
    assert [entry.name for entry in home.folder.iterdir()] == [".envbuild.json"]
    assert [entry.name for entry in home.modulefiles.iterdir()] == [".last-number"]
    assert publish_one(home, "a" * 12).number == 3
