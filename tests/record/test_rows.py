"""What list need not read and judge again, and that no change of a record or lock escapes it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime, timezone
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from envbuilder import record
from envbuilder.commands.environments import info, list_all
from envbuilder.model.outcome import EnvironmentEntry, Listing
from envbuilder.record import rows
from envbuilder.reporter import Report
from envbuilder.target_tools.proving.recheck import Worth, nonce_of
from envbuilder.target_tools.root import publish, registry, store
from envbuilder.target_tools.root.layout import Home
from envbuilder.workflow.context import Context
from envbuilder.workflow.image_contents import OpenedRoot
from tests.cli.published import planned, publish_plan
from tests.record.proofs import proved, subject
from tests.smoke.smoke_ranks import LARGE, LIBMPI, Rank

NOW = 2 * 10**18
ROW = EnvironmentEntry(
    environment="demo",
    number=1,
    default=False,
    id="a" * 12,
    summary="One",
    tier="several ranks",
    proved=None,
    last_failed=False,
)


@pytest.fixture
def at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let records count as written long ago."""
    monkeypatch.setattr(rows, "_FRESH", -(10**15))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the runs that were judged, as they are."""
    made: list[str] = []
    judge_again = record.judge_again

    def counted(run: Path, *about: Any) -> Worth:
        made.append(run.name)
        return judge_again(run, *about)

    monkeypatch.setattr(record, "judge_again", counted)
    return made


def test_every_change_of_a_file_is_another_state(tmp_path: Path) -> None:
    evidence, lock = tmp_path / "evidence", tmp_path / "lock.json"
    run = proved(evidence)
    lock.write_text("{p}")
    states = {rows.state_of(evidence, [lock], NOW)}
    for path in (lock, run / "evidence.json", *sorted(run.glob("ranks/*.jsonl"))):
        before = path.stat()
        data = path.read_bytes()
        path.write_bytes(data.replace(b"p", b"q"))
        # Whoever may write a file may set this time, and not that of its last change.
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        states.add(rows.state_of(evidence, [lock], NOW))
        path.write_bytes(data)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        states.add(rows.state_of(evidence, [lock], NOW))
    path.unlink()
    states.add(rows.state_of(evidence, [lock], NOW))
    (run / "evidence.json").unlink()
    states.add(rows.state_of(evidence, [lock], NOW))
    (evidence / "0002" / "ranks").mkdir(parents=True)
    (evidence / "0002" / "evidence.json").touch()
    states.add(rows.state_of(evidence, [lock], NOW))
    assert len(states) == 12
    assert None not in states


def test_what_was_changed_just_now_or_has_no_lock_has_no_state(tmp_path: Path) -> None:
    evidence, lock = tmp_path / "evidence", tmp_path / "lock.json"
    lock.touch()
    assert rows.state_of(evidence, [lock], NOW) is not None
    proved(evidence)
    last = max(path.stat().st_ctime_ns for path in tmp_path.rglob("*.json*"))
    assert rows.state_of(evidence, [lock], last) is None
    assert rows.state_of(evidence, [lock], last + 10**9) is None
    assert rows.state_of(evidence, [lock], last + 3 * 10**9) is not None
    lock.unlink()
    assert rows.state_of(evidence, [lock], NOW) is None


@pytest.mark.parametrize("text", ["", "{", "7", '{"one": 3}', '{"one": {}}', "[" * 100_000])
def test_a_damaged_cache_holds_nothing(tmp_path: Path, text: str) -> None:
    file = tmp_path / "listed.json"
    rows.store(file, {"one": ROW, "two": ROW})
    assert rows.load(file) == {"one": ROW, "two": ROW}
    file.write_text(text, encoding="utf-8")
    assert rows.load(file) == {}
    assert rows.load(None) == rows.load(tmp_path / "none") == {}


def test_a_cache_that_others_can_write_holds_nothing(tmp_path: Path) -> None:
    file = tmp_path / "listed.json"
    rows.store(file, {"one": ROW})
    file.chmod(0o666)
    assert rows.load(file) == {}


def test_each_root_and_each_envbuild_has_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    file = rows.cache_file(tmp_path / "root", environ)
    assert file == rows.cache_file(tmp_path / "x" / ".." / "root", environ)
    assert file is not None
    assert file.parent == tmp_path / "envbuild" / "listed"
    (tmp_path / "code.py").touch()
    with monkeypatch.context() as other:
        other.setattr(rows, "_CODE", tmp_path)
        edited = rows.cache_file(tmp_path / "root", environ)
    monkeypatch.setattr(rows, "__version__", "another")
    others = {rows.cache_file(tmp_path / name, environ) for name in ("root", "other")}
    assert len({file, edited, *others}) == 4
    assert rows.cache_file(tmp_path, {}) is None


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "root"
    found = Home(root, "allreduce")
    plan = planned("allreduce", "--site", "local")
    version = publish_plan(root, plan, {"lib/data": "x"})
    proved(found.evidence(version.id), subject(found, version))
    return found


Lists = Callable[[], Listing]


@pytest.fixture
def lists(home: Home, tmp_path: Path) -> Callable[[Path | None], Lists]:
    """Return what lists the root, with or without a folder for its cache."""

    def of(cache: Path | None) -> Lists:
        environ = {"XDG_CACHE_HOME": str(cache)} if cache else {}
        report = Report(out=StringIO(), err=StringIO(), as_json=False)
        context = Context(environ, tmp_path, lambda: datetime.now(timezone.utc), report)
        return lambda: list_all(store.read_root(home.root), context)

    return of


@pytest.mark.usefixtures("at_rest")
@pytest.mark.parametrize("cached", [True, False])
def test_list_says_of_a_turned_verdict_what_info_says(
    home: Home,
    lists: Callable[[Path | None], Lists],
    calls: list[str],
    tmp_path: Path,
    cached: bool,
) -> None:
    """A test that failed is called passed, by who knows that list has seen it."""
    listed = lists(tmp_path if cached else None)
    for _ in range(2):
        [entry] = listed().environments
        assert (entry.tier, entry.damaged, entry.default) == ("several ranks", (), True)
    assert len(calls) == (1 if cached else 2)

    # As it would be after a run that failed, whose verdict somebody turned.
    [run] = home.folder.glob("*.evidence/0001")
    nonce = str(nonce_of(run / "ranks"))
    problems = {LARGE: "3 numbers differ"}
    Rank(1, libraries=[LIBMPI], problems=problems, nonce=nonce).write(run / "ranks")
    [entry] = listed().environments
    assert entry.tier is None
    assert "rank 1: allreduce float32" in entry.claimed[0]
    assert info(OpenedRoot(store.read_root(home.root), "allreduce/1")).claimed == entry.claimed
    # It is told each time, not once.
    assert listed().environments == (entry,)
    assert json.loads((run / "evidence.json").read_text())["result"]["verdict"] == "passed"


@pytest.mark.usefixtures("at_rest")
def test_list_says_of_an_edited_lock_that_it_is_damaged(
    home: Home, lists: Callable[[Path | None], Lists], tmp_path: Path
) -> None:
    listed = lists(tmp_path)
    [before] = listed().environments
    [lock] = home.folder.glob("*.build/lock.json")
    lock.write_text(lock.read_text().replace('"arch": "', '"arch": "x'))
    [entry] = listed().environments
    assert (before.damaged, before.site, entry.site) == ((), "local", None)
    assert "lock of allreduce/1" in entry.damaged[0]
    assert listed().environments == (entry,)


@pytest.mark.usefixtures("at_rest")
def test_which_is_the_default_is_no_part_of_what_is_kept(
    home: Home, lists: Callable[[Path | None], Lists], calls: list[str], tmp_path: Path
) -> None:
    listed = lists(tmp_path)
    [before] = listed().environments
    publish.unset_default(home)
    assert registry.default_number(home) is None
    assert listed().environments == (before.model_copy(update={"default": False}),)
    assert calls == ["0001"]
