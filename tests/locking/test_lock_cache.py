"""Keeping locks: how long, how whole, and that nothing else in the folder is touched."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from envbuilder.model.plan import Lock, Plan
from envbuilder.runtimes import RUNTIMES
from envbuilder.workflow.root_lock import LIFETIME, cache_file, find_cached, store_cached
from tests.cli.published import planned
from tests.made_up_files import locked

# What is written has the machine's own time.
NOW = datetime.now(timezone.utc)
NAME = f"lock-{'0123456789abcdef' * 4}.json"


@pytest.fixture(scope="module")
def lock() -> Lock:
    return locked(Plan.model_validate_json(json.dumps(planned("allreduce"))))


def aged(path: Path, age: timedelta) -> Path:
    """Let a file have been written so long before NOW."""
    path.touch()
    seconds = (NOW - age).timestamp()
    os.utime(path, (seconds, seconds))
    return path


@pytest.mark.parametrize(
    ("age", "told"),
    [
        (timedelta(0), "just now"),
        (timedelta(seconds=80), "1 min ago"),
        (timedelta(minutes=-2), "2 min ago"),
        (timedelta(minutes=59), "59 min ago"),
        (LIFETIME, None),
        (-LIFETIME, None),
        (timedelta(days=400), None),
    ],
    ids=str,
)
def test_a_lock_is_found_for_an_hour(
    lock: Lock, tmp_path: Path, age: timedelta, told: str | None
) -> None:
    file = tmp_path / "folder" / "locks" / NAME
    store_cached(file, lock, NOW)
    found = find_cached(aged(file, age), NOW, RUNTIMES)
    assert (found and found.age_text()) == told
    assert found is None or found.lock == lock


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1}', "\udcff"])
def test_what_is_not_a_lock_is_as_if_it_were_not_there(
    lock: Lock, tmp_path: Path, text: str
) -> None:
    file = tmp_path / NAME
    assert find_cached(file, NOW, RUNTIMES) is None
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert find_cached(aged(file, timedelta(0)), NOW, RUNTIMES) is None
    store_cached(file, lock, NOW)
    assert find_cached(aged(file, timedelta(0)), NOW, RUNTIMES)


def test_old_ones_are_removed_and_nothing_else(lock: Lock, tmp_path: Path) -> None:
    old = timedelta(hours=2)
    gone = [aged(tmp_path / name, old) for name in (NAME.replace("0", "1"), f".{NAME}.a1b2c3_x")]
    others = [f"{NAME}{end}" for end in (".orig", ".gz", "l")]
    others += ["thesis.json", f"copy-of-{NAME}", f".{NAME}", NAME[5:], NAME.removesuffix(".json")]
    stay = [aged(tmp_path / name, old) for name in others]
    stay.append(aged(tmp_path / NAME.replace("0", "2"), timedelta(minutes=5)))
    folder = tmp_path / NAME.replace("0", "3")
    folder.mkdir()
    aged(folder, old)
    store_cached(tmp_path / NAME, lock, NOW)
    assert [path for path in gone if path.exists()] == []
    assert [path for path in (*stay, folder) if not path.exists()] == []


def test_what_cannot_be_removed_is_left(
    lock: Lock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = [aged(tmp_path / NAME.replace("0", digit), timedelta(hours=2)) for digit in "123"]

    def refuse(path: Path) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        store_cached(tmp_path / NAME, lock, NOW)
    assert [path.exists() for path in old] == [True, True, True]
    store_cached(tmp_path / NAME, lock, NOW)
    assert [path.exists() for path in old] == [False, False, False]
    assert find_cached(tmp_path / NAME, NOW, RUNTIMES)


def test_a_lock_of_somebody_else_is_not_taken(
    lock: Lock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_cached(tmp_path / NAME, lock, NOW)
    assert find_cached(tmp_path / NAME, NOW, RUNTIMES)
    if os.geteuid() == 0:
        os.chown(tmp_path / NAME, 65534, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert find_cached(tmp_path / NAME, NOW, RUNTIMES) is None


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"ENVBUILD_LOCK_CACHE": "/scratch/locks", "HOME": "/home/me"}, "/scratch/locks"),
        ({"ENVBUILD_LOCK_CACHE": "", "HOME": "/home/me"}, "/home/me/.cache/envbuild/locks"),
        ({"XDG_CACHE_HOME": "/xdg", "HOME": "/home/me"}, "/xdg/envbuild/locks"),
    ],
    ids=["named", "home", "XDG"],
)
def test_where_locks_are_kept(environ: dict[str, str], folder: str) -> None:
    one, other = (cache_file(each, environ, Path("/here")) for each in ("one", "other"))
    assert one
    assert other
    assert one != other
    assert {str(one.parent), str(other.parent)} == {folder}
    assert cache_file(None, environ, Path("/here")) is None


def test_a_folder_is_named_from_where_one_is_and_without_any_nothing_is_kept(
    tmp_path: Path,
) -> None:
    file = cache_file("one", {"ENVBUILD_LOCK_CACHE": "mine"}, tmp_path)
    assert file
    assert file.parent == tmp_path / "mine"
    assert cache_file("one", {}, tmp_path) is None


def test_another_envbuild_does_not_find_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = {"HOME": "/home/me"}
    before = cache_file("one", here, Path("/"))
    monkeypatch.setattr("envbuilder.workflow.root_lock.__version__", "9.9")
    assert cache_file("one", here, Path("/")) != before


def test_a_place_that_cannot_be_written_is_an_error(lock: Lock) -> None:
    with pytest.raises(OSError, match="/dev/null"):
        store_cached(Path("/dev/null/locks") / NAME, lock, NOW)
