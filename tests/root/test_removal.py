"""Deletion by evidence: only what is known to be ours goes, and what it was is not forgotten."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import traceback
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.errors import UsageError
from envbuilder.root import removal, usage
from envbuilder.target_tools import files
from envbuilder.target_tools.root import layout, locks, publish, registry, store
from tests.small_disk import fill, small_disk

__all__ = ["small_disk"]

NOW = datetime.now(timezone.utc)


def silent(_: str) -> None:
    """Say nothing."""


def make_home(folder: Path, name: str = "demo") -> layout.Home:
    return store.open_home(store.open_root(folder / "root", "local", "x86_64"), name)


def build(home: layout.Home, identity: str) -> None:
    publish.mark(home, identity)
    logs = home.build(identity) / "logs"
    logs.mkdir()
    for number in range(4):
        (logs / f"{number}.log").write_text("x" * 5000, encoding="utf-8")
    (home.prefix(identity) / "bin").mkdir(parents=True)
    (home.prefix(identity) / "bin" / "tool").write_text("x", encoding="utf-8")


def publish_one(home: layout.Home, identity: str, dialect: str = "lua") -> layout.Version:
    build(home, identity)
    version = publish.reserve(home, identity, dialect)
    publish.publish(home, version, f'prepend_path("PATH", "{home.prefix(identity)}/bin")\n')
    publish.set_default(home, version)
    return version


@pytest.fixture
def home(tmp_path: Path) -> layout.Home:
    return make_home(tmp_path)


def run(home: layout.Home, *words: str) -> str:
    done = CliRunner().invoke(app, [*words, "--root", str(home.root)], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.output


def test_a_folder_of_the_users_is_left_alone_and_that_is_said(home: layout.Home) -> None:
    build(home, "a" * 12)
    names = ("my-results", "my.build", "0123456789ab", "ba9876543210.build")
    for name in names:
        (home.folder / name).mkdir()
        (home.folder / name / "thesis.tex").write_text("years of work", encoding="utf-8")
    assert publish.unpublished(home) == ("a" * 12,)
    told = run(home, "remove", "demo", "--unfinished")
    assert f"removed {'a' * 12}" in told
    assert "mark of envbuild" in told
    for name in names:
        assert name in told
        assert (home.folder / name / "thesis.tex").is_file()
    assert not home.prefix("a" * 12).exists()


def test_a_build_from_before_there_were_marks_is_known_by_script_and_lock(
    home: layout.Home,
) -> None:
    build(home, "a" * 12)
    home.mark("a" * 12).unlink()
    assert publish.unpublished(home) == ()
    for name in ("build.sh", "lock.json"):
        (home.build("a" * 12) / name).touch()
    assert publish.unpublished(home) == ("a" * 12,)


@pytest.mark.parametrize("text", [None, '{"schema": 1, "versions": []}'])
def test_a_lost_or_old_registry_takes_nothing_away(home: layout.Home, text: str | None) -> None:
    """It was restored from a backup, or nobody knows where it is: the modulefiles say it all."""
    versions = [publish_one(home, character * 12) for character in "abc"]
    versions.append(publish_one(home, "d" * 12, "tcl"))
    home.registry_file.unlink()
    if text is not None:
        home.registry_file.write_text(text, encoding="utf-8")
    assert publish.published(home) == tuple(versions)
    assert publish.unpublished(home) == ()
    assert [each.name for each in store.read_root(home.root).homes()] == ["demo"]
    removal.remove_unfinished(home, silent)
    assert all(home.prefix(each.id).is_dir() for each in versions)
    assert publish_one(home, "e" * 12).number == 5
    assert [each.number for each in registry.read_registry(home)] == [1, 2, 3, 4, 5]


def test_what_a_modulefile_names_is_no_unfinished_build(home: layout.Home) -> None:
    build(home, "a" * 12)
    home.modulefiles.mkdir(parents=True)
    kept = home.modulefiles / "of-mine.lua"
    kept.write_text(f'setenv("HERE", "/mnt{home.prefix("a" * 12)}")\n', encoding="utf-8")
    assert publish.unpublished(home) == ()
    kept.unlink()
    assert publish.unpublished(home) == ("a" * 12,)


def test_a_number_whose_prefix_another_modulefile_names_leaves_it(home: layout.Home) -> None:
    first = publish_one(home, "a" * 12)
    publish_one(home, "b" * 12)
    shutil.copyfile(home.modulefile(first), home.modulefiles / "stable.lua")
    said: list[str] = []
    removal.remove_number(home, first, said.append)
    assert home.prefix("a" * 12).is_dir()
    assert "refers to it" in said[0]


@pytest.mark.parametrize("name", [".scratch", "a" * 12])
def test_links_are_not_followed(home: layout.Home, tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "thesis.tex").write_text("years of work", encoding="utf-8")
    elsewhere.chmod(0o555)
    publish.mark(home, "a" * 12)
    (home.folder / name).symlink_to(elsewhere)
    assert removal.remove_unfinished(home, silent) == ("a" * 12,)
    assert not (home.folder / name).is_symlink()
    assert (elsewhere / "thesis.tex").is_file()
    assert elsewhere.stat().st_mode & 0o777 == 0o555


def as_nobody(act: Callable[[], None]) -> int:
    """Run something as another user; return its exit code: 0, 7 for UsageError, else 1."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        act()
        code = 0
    except UsageError as error:
        code = 7 if error.id == "environment.not-owner" else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_processes_that_a_user_may_not_look_into_are_counted() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as running:
        # This process, and the one that runs.
        assert as_nobody(lambda: check(usage.count_unexamined() >= 2)) == 0
        running.communicate()


def check(holds: bool) -> None:
    assert holds


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("theirs", ["prefix", "build", "modulefiles"])
def test_what_one_may_not_remove_is_not_withdrawn(tmp_path: Path, theirs: str) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    home = make_home(tmp_path)
    version = publish_one(home, "a" * 12)
    publish_one(home, "b" * 12)
    for each in (home.root, *home.root.rglob("*")):
        os.chown(each, 65534, 65534)
    kept = {"prefix": home.prefix(version.id) / "bin", "build": home.build(version.id) / "logs"}
    os.chown(kept.get(theirs, home.modulefiles), 0, 0)
    assert as_nobody(lambda: removal.remove_number(home, version, silent)) == 7
    assert publish.published(home)[0] == version
    assert home.modulefile(version).is_file()
    os.chown(kept.get(theirs, home.modulefiles), 65534, 65534)
    assert as_nobody(lambda: removal.remove_number(home, version, silent)) == 0
    assert not home.prefix(version.id).exists()


@pytest.mark.parametrize("what", ["number", "unfinished", "all"])
def test_on_a_full_disk_things_can_be_removed(small_disk: Path, what: str) -> None:
    home = make_home(small_disk)
    version = publish_one(home, "a" * 12)
    publish_one(home, "b" * 12)
    build(home, "c" * 12)
    fill(small_disk)
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "more").write_bytes(b"x")
    (small_disk / "more").unlink()
    before = sorted(home.folder.iterdir())
    removals: dict[str, Callable[[], object]] = {
        "number": lambda: removal.remove_number(home, version, silent),
        "unfinished": lambda: removal.remove_unfinished(home, silent),
        "all": lambda: removal.remove_all(home, silent),
    }
    removals[what]()
    after = sorted(home.folder.iterdir())
    assert set(after) < set(before)
    assert [each.number for each in publish.published(home)] == {
        "number": [2],
        "unfinished": [1, 2],
        "all": [],
    }[what]


@pytest.mark.parametrize(
    "words",
    [
        ("rollback", "demo"),
        ("remove", "demo/1"),
        ("remove", "demo", "--all"),
        ("remove", "demo", "--unfinished"),
        ("remove", "demo", "--keep", "1"),
    ],
)
def test_a_read_only_root_is_said_to_be_one_and_can_be_looked_at(
    small_disk: Path, words: tuple[str, ...]
) -> None:
    home = make_home(small_disk)
    publish_one(home, "a" * 12)
    publish_one(home, "b" * 12)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    done = CliRunner().invoke(app, [*words, "--root", str(home.root)], env={"COLUMNS": "200"})
    assert done.exit_code == 5, done.output
    assert f"file system: {home.root}\n" in done.stderr
    assert "hint: " in done.stderr
    assert "demo/2" in run(home, "list")
    assert [each.number for each in publish.published(home)] == [1, 2]


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EDQUOT])
def test_over_a_quota_what_goes_makes_room_for_the_lock(
    home: layout.Home, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    """As on a full disk: logs go first, and only where nobody builds."""
    version = publish_one(home, "a" * 12)
    publish_one(home, "b" * 12)
    write = Path.write_text

    def over_quota(path: Path, text: str, encoding: str) -> int:
        if (home.build(version.id) / "logs" / "0.log").exists():
            raise OSError(reason, os.strerror(reason))
        return write(path, text, encoding)

    monkeypatch.setattr(Path, "write_text", over_quota)
    removal.remove_number(home, version, silent)
    assert [each.number for each in publish.published(home)] == [2]
    (home.build(version.id) / "logs").mkdir(parents=True)
    (home.build(version.id) / "logs" / "0.log").touch()
    with pytest.raises(OSError, match=os.strerror(reason)) as failed:
        with locks.hold(home.lock_file, say=silent):
            pass
    assert failed.value.filename == str(home.lock_file)


def test_a_lock_that_cannot_be_written_leaves_no_file(
    home: layout.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str, encoding: str) -> None:
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"), locks.hold(home.lock_file, say=silent):
        pass
    assert [each.name for each in home.folder.iterdir()] == [".envbuild.json"]


def aged(home: layout.Home, version: layout.Version, days: int) -> None:
    seconds = (NOW - timedelta(days=days)).timestamp()
    os.utime(home.modulefile(version), (seconds, seconds))


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (("--keep", "2"), [4, 5]),
        (("--keep", "0"), [5]),
        (("--older-than", "30"), [3, 4, 5]),
        (("--older-than", "5", "--keep", "3"), [3, 4, 5]),
        (("--older-than", "365"), [1, 2, 3, 4, 5]),
    ],
)
def test_old_numbers_go_and_the_default_stays(
    home: layout.Home, words: tuple[str, ...], left: list[int]
) -> None:
    for character, days in zip("abcde", (90, 60, 20, 10, 0), strict=True):
        aged(home, publish_one(home, character * 12), days)
    run(home, "remove", "demo", *words)
    assert [each.number for each in publish.published(home)] == left
    first = publish.published(home)[0]
    publish.set_default(home, first)
    run(home, "remove", "demo", "--keep", "0")
    assert publish.published(home) == (first,)


def refused_as_default(home: layout.Home, name: str) -> list[str]:
    """Return the commands that the refusal names, as a shell takes them."""
    done = CliRunner().invoke(
        app, ["remove", name, "--root", str(home.root)], env={"COLUMNS": "300"}
    )
    assert done.exit_code == 2, done.output
    lines = [line for line in done.stderr.splitlines() if line.startswith("hint: envbuild ")]
    assert all(f"--root '{home.root}'" in line for line in lines)
    return [line.removeprefix("hint: envbuild ").partition(" --root")[0] for line in lines]


def test_what_is_said_to_take_the_default_away_does(home: layout.Home) -> None:
    first = publish_one(home, "a" * 12)
    assert refused_as_default(home, "demo/1") == ["remove demo --all"]
    publish_one(home, "b" * 12)
    publish_one(home, "c" * 12)
    assert refused_as_default(home, "demo") == ["rollback demo --to 2", "remove demo --all"]
    publish.set_default(home, first)
    # There is nothing before it: a later number has to take its place.
    words = refused_as_default(home, "demo/1")
    assert words == ["rollback demo --to 3", "remove demo --all"]
    run(home, *words[0].split())
    run(home, "remove", "demo/1")
    assert [each.number for each in publish.published(home)] == [2, 3]


def test_different_removals_are_not_asked_for_together(home: layout.Home) -> None:
    publish_one(home, "a" * 12)
    for words in (("demo", "--all", "--keep", "1"), ("demo/1", "--keep", "1"), ("demo/1", "--all")):
        done = CliRunner().invoke(app, ["remove", *words, "--root", str(home.root)])
        assert done.exit_code == 2, done.output
    assert len(publish.published(home)) == 1


def test_removing_a_file_or_nothing_is_no_error(tmp_path: Path) -> None:
    files.remove_tree(tmp_path / "nothing")
    (tmp_path / "file").touch()
    files.remove_tree(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []
