"""What list has judged once it need not judge again, and no change of a record escapes it."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from io import StringIO
from pathlib import Path

import pytest

from envbuilder import record
from envbuilder.commands.context import Context
from envbuilder.commands.environments import info, list_all
from envbuilder.record import judged, read_all
from envbuilder.report import Report
from envbuilder.target_tools.root import layout, publish, store
from tests.cli.published import planned, publish_plan
from tests.record.proofs import proved
from tests.smoke.smoke_ranks import LARGE, LIBMPI, Rank

NOW = 2 * 10**18


@pytest.fixture
def at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let records count as written long ago."""
    monkeypatch.setattr(judged, "_FRESH", -(10**15))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the runs that were judged, as they are."""
    made: list[str] = []
    refuted = record.refuted

    def counted(run: Path, execution: str, result: dict[str, object]) -> str | None:
        made.append(run.name)
        found: str | None = refuted(run, execution, result)
        return found

    monkeypatch.setattr(record, "refuted", counted)
    return made


def test_every_change_of_a_record_is_another_state(tmp_path: Path) -> None:
    run = proved(tmp_path)
    states = {judged.state_of(run, NOW)}
    for path in (run / "evidence.json", *sorted(run.glob("ranks/*.jsonl"))):
        before = path.stat()
        data = path.read_bytes()
        path.write_bytes(data.replace(b"p", b"q"))
        # Whoever may write a file may set this time, and not that of its last change.
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        states.add(judged.state_of(run, NOW))
        path.write_bytes(data)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        states.add(judged.state_of(run, NOW))
    path.unlink()
    states.add(judged.state_of(run, NOW))
    assert len(states) == 8
    assert None not in states


def test_what_has_no_records_or_was_changed_just_now_has_no_state(tmp_path: Path) -> None:
    run = proved(tmp_path)
    last = max(path.stat().st_ctime_ns for path in run.rglob("*.json*"))
    assert judged.state_of(run, last) is None
    assert judged.state_of(run, last + 10**9) is None
    assert judged.state_of(run, last + 3 * 10**9) is not None
    for path in run.glob("ranks/*"):
        path.unlink()
    assert judged.state_of(run, NOW) is None
    (run / "ranks").rmdir()
    assert judged.state_of(run, NOW) is None


@pytest.mark.usefixtures("at_rest")
def test_what_was_judged_is_not_judged_again(tmp_path: Path, calls: list[str]) -> None:
    proved(tmp_path)
    found = read_all(tmp_path)
    assert (len(found.evidence), len(found.judged), calls) == (1, 1, ["0001"])
    assert read_all(tmp_path, found.judged) == found
    assert calls == ["0001"]


@pytest.mark.parametrize("text", ["", "{", "7", "[3, null]", "[" * 100_000])
def test_a_damaged_cache_holds_nothing(tmp_path: Path, text: str) -> None:
    file = tmp_path / "judged.json"
    judged.store(file, {"one", "two"})
    assert judged.load(file) == {"one", "two"}
    file.write_text(text, encoding="utf-8")
    assert judged.load(file) == frozenset()
    assert judged.load(None) == judged.load(tmp_path / "none") == frozenset()


def test_a_cache_that_others_can_write_holds_nothing(tmp_path: Path) -> None:
    file = tmp_path / "judged.json"
    judged.store(file, {"one"})
    file.chmod(0o666)
    assert judged.load(file) == frozenset()


def test_each_root_and_each_judge_has_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    file = judged.cache_file(tmp_path / "root", environ)
    assert file == judged.cache_file(tmp_path / "x" / ".." / "root", environ)
    assert file is not None
    assert file.parent == tmp_path / "envbuild" / "judged"
    monkeypatch.setattr(judged, "__version__", "another")
    others = {judged.cache_file(tmp_path / name, environ) for name in ("root", "other")}
    assert len({file, *others}) == 3
    assert judged.cache_file(tmp_path, {}) is None


@pytest.mark.usefixtures("at_rest")
@pytest.mark.parametrize("cached", [True, False])
def test_list_says_of_a_turned_verdict_what_info_says(
    tmp_path: Path, calls: list[str], cached: bool
) -> None:
    """A test that failed is called passed, by who knows that list has seen it."""
    root = tmp_path / "root"
    plan = planned("allreduce", "--site", "local")
    home = layout.Home(root, "allreduce")
    identity = publish_plan(root, plan, {"lib/data": "x"}).id
    run = proved(home.evidence(identity))
    stamped = store.read_root(root)
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")} if cached else {}
    context = Context(environ, tmp_path, lambda: datetime.now(timezone.utc), _reporter())

    for _ in range(2):
        [entry] = list_all(stamped, context).environments
        assert (entry.tier, entry.damaged) == ("several ranks", ())
    assert len(calls) == (1 if cached else 2)

    # As it would be after a run that failed, whose verdict somebody turned.
    Rank(1, libraries=[LIBMPI], problems={LARGE: "3 numbers differ"}).write(run / "ranks")
    [entry] = list_all(stamped, context).environments
    assert entry.tier is None
    assert "rank 1: allreduce float32 of 4096 bytes: 3 numbers differ" in entry.damaged[0]
    assert info(stamped, "allreduce/1").damaged == entry.damaged
    # It is told each time, not once.
    assert list_all(stamped, context).environments == (entry,)
    assert publish.published(home)[0].id == identity
    assert json.loads((run / "evidence.json").read_text())["result"]["verdict"] == "passed"


def _reporter() -> Report:
    return Report(StringIO(), StringIO())
