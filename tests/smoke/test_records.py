"""Reading records back: what is damaged or not of this run counts for nothing."""

from __future__ import annotations

import json
from pathlib import Path

from smoke_ranks import LARGE, NONCE, SMALL, Rank

from envbuilder.target_tools.proving.records import read_ranks
from envbuilder.target_tools.smoke.recorder import Recorder
from tests.golden_texts import Golden


def test_the_folder_of_the_records_may_be_a_new_one(tmp_path: Path) -> None:
    """By hand: ``bash smoke.sh --out DIR``."""
    folder = tmp_path / "new" / "records"
    for _ in range(2):
        recorder = Recorder(folder, NONCE)
        recorder.write("start")
        recorder.stream.close()
    [record] = folder.iterdir()
    assert len(record.read_text().splitlines()) == 2


def test_records_come_in_the_order_of_ranks(tmp_path: Path) -> None:
    Rank(1, pid=50).write(tmp_path)
    Rank(0, pid=60, host="node2").write(tmp_path)
    Rank(None, pid=7, stop_in=("import", None, None)).write(tmp_path)
    ranks = read_ranks(tmp_path, NONCE).ranks
    assert [(record.rank, record.start.pid) for record in ranks] == [(0, 60), (1, 50), (None, 7)]
    assert [record.ended for record in ranks] == [True, True, False]


def test_a_line_cut_by_a_kill_is_left_out(tmp_path: Path) -> None:
    Rank(0).write(tmp_path)
    path = tmp_path / Rank(0).source
    for cut in range(1, len(path.read_bytes().splitlines()[-1]) + 1):
        path.write_bytes(path.read_bytes()[:-1])
        (record,) = read_ranks(tmp_path, NONCE).ranks
        assert record.ended == (cut == 1), "without its line break the last line is still whole"
        assert len(record.done) == 9


def test_every_cut_of_a_record_is_read(tmp_path: Path) -> None:
    Rank(0).write(tmp_path)
    path = tmp_path / Rank(0).source
    whole = path.read_bytes()
    first = len(whole.splitlines()[0])
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        records = read_ranks(tmp_path, NONCE)
        assert len(records.ranks) == (size >= first)
        assert len(records.ignored) == (size < first)


def test_where_a_rank_stopped(tmp_path: Path) -> None:
    Rank(0, stop_in=LARGE).write(tmp_path)
    Rank(1, stop_after=SMALL).write(tmp_path)
    inside, between = read_ranks(tmp_path, NONCE).ranks
    assert inside.current is not None
    assert inside.current.label == "allreduce float32 of 4096 bytes"
    assert between.current is None
    assert between.done[-1].label == "allreduce int32 of 4 bytes"


def test_lines_of_another_run_are_left_out(tmp_path: Path) -> None:
    Rank(0, nonce="old").write(tmp_path)
    path = tmp_path / Rank(0).source
    old = path.read_text()
    Rank(0, stop_in=SMALL).write(tmp_path)
    path.write_text(old + path.read_text())
    (record,) = read_ranks(tmp_path, NONCE).ranks
    assert not record.ended
    assert all(event.nonce == NONCE for event in record.events)


def test_what_is_no_record_is_named(golden: Golden, tmp_path: Path) -> None:
    (tmp_path / "rank-a-1.jsonl").write_text("")
    (tmp_path / "rank-b-2.jsonl").write_bytes(b"\xff\xfe\x00\n[]\n{}\n12\n")
    Rank(0, nonce="old", host="c", pid=3).write(tmp_path)
    missing = Rank(0, host="d", pid=4).lines()[1:]
    text = "".join(json.dumps({**line, "nonce": NONCE, "time": 1}) + "\n" for line in missing)
    (tmp_path / "rank-d-4.jsonl").write_text(text)
    records = read_ranks(tmp_path, NONCE)
    assert records.ranks == ()
    golden(*records.ignored)


def test_the_stack_beside_a_record_is_read_with_it(tmp_path: Path) -> None:
    Rank(0, host="a-b", stack="Thread 0x1").write(tmp_path)
    (record,) = read_ranks(tmp_path, NONCE).ranks
    assert record.stack == "Thread 0x1"
