"""The timeline: valid JSON, right nesting, bounded, and no trouble for the program."""

import json
import os
import subprocess
import sys
import threading
import warnings

import pytest

from distributed_dl_training import _timeline
from distributed_dl_training._timeline import OFF, Timeline

from launching import HOME, wait_until


def read(path):
    with open(str(path), encoding="utf-8") as stream:
        return json.load(stream)


def nested(events):
    """Return the phases by row name, each as (depth, phase); fails if they do not nest."""
    rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    found, stacks, latest = {}, {}, {}
    for event in events:
        if event["ph"] not in "BE":
            continue
        row = rows[event["tid"]]
        stack = stacks.setdefault(row, [])
        assert event["ts"] >= latest.get(row, 0)
        latest[row] = event["ts"]
        if event["ph"] == "B":
            found.setdefault(row, []).append((len(stack), event["name"]))
            stack.append(event["name"])
        else:
            assert stack.pop() == event["name"]
    assert not any(stacks.values())
    return found


@pytest.fixture
def nothing_running():
    yield
    _timeline.stop_timeline()


def test_events_of_a_rank(tmp_path):
    timeline = Timeline(str(tmp_path / "t.{rank}.json"), 3, 8)
    timeline.begin("conv1/kernel", "NEGOTIATE")
    timeline.end("conv1/kernel", "NEGOTIATE")
    timeline.begin("conv1/kernel", "ALLREDUCE")
    timeline.begin("conv1/kernel", "MEMCPY_IN")
    timeline.begin('na"me\n\udcff é', "BROADCAST")
    timeline.end("conv1/kernel", "MEMCPY_IN")
    timeline.end('na"me\n\udcff é', "BROADCAST")
    timeline.end("conv1/kernel", "ALLREDUCE")
    timeline.close()
    events = read(tmp_path / "t.3.json")
    assert {event["pid"] for event in events} == {3}
    assert nested(events) == {
        "conv1/kernel": [(0, "NEGOTIATE"), (0, "ALLREDUCE"), (1, "MEMCPY_IN")],
        'na"me\n\udcff é': [(0, "BROADCAST")],
    }
    names = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert names == ["rank 3 of 8"]


def test_what_is_left_open_is_closed(tmp_path):
    timeline = Timeline(str(tmp_path / "t"), 0, 1)
    timeline.end("a", "NEVER_BEGUN")
    timeline.begin("a", "OUTER")
    timeline.begin("a", "INNER")
    timeline.close()
    assert nested(read(tmp_path / "t")) == {"a": [(0, "OUTER"), (1, "INNER")]}
    timeline.begin("a", "TOO_LATE")
    timeline.close()
    assert nested(read(tmp_path / "t")) == {"a": [(0, "OUTER"), (1, "INNER")]}


def test_empty_timeline_is_valid(tmp_path):
    Timeline(str(tmp_path / "t"), 0, 1).close()
    assert nested(read(tmp_path / "t")) == {}


def test_threads(tmp_path):
    timeline = Timeline(str(tmp_path / "t"), 0, 1)

    def work(name):
        for _ in range(2000):
            timeline.begin(name, "P")
            timeline.end(name, "P")

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    timeline.close()
    found = nested(read(tmp_path / "t"))
    assert {name: len(phases) for name, phases in found.items()} == {
        f"t{n}": 2000 for n in range(4)
    }


def test_memory_is_bounded_and_losses_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(_timeline, "LONGEST_QUEUE", 100)
    monkeypatch.setattr(_timeline, "MOST_ROWS", 5)
    monkeypatch.setattr(_timeline, "_INTERVAL", 60.0)
    timeline = Timeline(str(tmp_path / "t"), 0, 1)
    for n in range(150):
        timeline.begin(f"t{n}", "P")
        timeline.end(f"t{n}", "P")
    timeline.close()
    events = read(tmp_path / "t")
    found = nested(events)
    assert len(found) == 6 and len(found["(other tensors)"]) == 45
    assert "200 events were dropped" in [event["name"] for event in events]


def test_killed_program_leaves_a_file_that_viewers_load(tmp_path):
    """The array lacks its end only: with it added, everything written is there."""
    code = (
        "import os, sys, time\n"
        "from distributed_dl_training._timeline import Timeline\n"
        "t = Timeline(sys.argv[1], 0, 1)\n"
        "for n in range(500):\n"
        "    t.begin('a', 'P'); t.end('a', 'P')\n"
        "while open(sys.argv[1]).read().count('\"E\"') < 500:\n"
        "    time.sleep(0.02)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    path = tmp_path / "t"
    command = [sys.executable, "-c", code, str(path)]
    assert subprocess.call(command, env=dict(os.environ, PYTHONPATH=HOME)) == -9
    text = path.read_text()
    assert not text.rstrip().endswith("]")
    assert nested(json.loads(text + "]")) == {"a": [(0, "P")] * 500}


def test_forked_child_does_not_touch_the_file(tmp_path):
    timeline = Timeline(str(tmp_path / "t"), 0, 1)
    timeline.begin("a", "P")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads, from 3.12 on
        child = os.fork()
    if child == 0:
        timeline.end("a", "P")
        timeline.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    timeline.end("a", "P")
    timeline.close()
    assert nested(read(tmp_path / "t")) == {"a": [(0, "P")]}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_full_disk_is_one_warning():
    code = (
        "import time\n"
        "from distributed_dl_training._timeline import Timeline\n"
        "t = Timeline('/dev/full', 0, 1)\n"
        "t.begin('a', 'P'); t.end('a', 'P')\n"
        "while t.on:\n"
        "    time.sleep(0.02)\n"
        "t._thread.join()\n"
        "t.begin('a', 'P'); t.end('a', 'P')\n"
        "t.close()\n"
        "print('went on')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=dict(os.environ, PYTHONPATH=HOME),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    err = done.stderr.decode()
    assert done.returncode == 0 and done.stdout == b"went on\n", err
    assert err.count("the timeline /dev/full ends here") == 1 and "Traceback" not in err


def test_start_and_stop(tmp_path, nothing_running):
    assert _timeline.current is OFF and not OFF.on
    _timeline.start_timeline(str(tmp_path / "t"), 0, 2)
    assert _timeline.current.on
    _timeline.current.begin("a", "P")
    with pytest.raises(ValueError, match="running already"):
        _timeline.start_timeline(str(tmp_path / "u"), 0, 2)
    _timeline.stop_timeline()
    _timeline.stop_timeline()
    assert _timeline.current is OFF
    assert nested(read(tmp_path / "t")) == {"a": [(0, "P")]}
    for call in (OFF.begin, OFF.end):
        call("a", "P")
    OFF.close()


def test_only_rank_0_writes_unless_the_path_names_the_rank(tmp_path, nothing_running):
    _timeline.start_timeline(str(tmp_path / "t"), 1, 2)
    assert _timeline.current is OFF and os.listdir(str(tmp_path)) == []
    _timeline.start_timeline(str(tmp_path / "t.{rank}"), 1, 2)
    _timeline.stop_timeline()
    assert os.listdir(str(tmp_path)) == ["t.1"]


def test_environment(tmp_path, nothing_running):
    first, second = str(tmp_path / "ours"), str(tmp_path / "horovods")
    assert _timeline.wanted_path({}) is None
    assert _timeline.wanted_path({"HOROVOD_TIMELINE": second}) == second
    assert _timeline.wanted_path({"HOROVOD_TIMELINE": second, "DDLT_TIMELINE": first}) == first
    assert _timeline.wanted_path({"HOROVOD_TIMELINE": "DYNAMIC"}) is None
    _timeline.start_from_environ(0, 1, {})
    assert _timeline.current is OFF
    _timeline.start_from_environ(0, 1, {"HOROVOD_TIMELINE": second})
    assert os.path.exists(second) and _timeline.current.on


def test_file_that_cannot_be_opened(tmp_path, nothing_running):
    path = str(tmp_path / "no" / "t")
    with pytest.raises(OSError, match="the timeline cannot be written") as caught:
        _timeline.start_timeline(path, 0, 1)
    assert caught.value.filename == path
    assert _timeline.current is OFF


def test_writes_while_it_runs(tmp_path):
    timeline = Timeline(str(tmp_path / "t"), 0, 1)
    timeline.begin("a", "P")
    wait_until(lambda: '"ph": "B"' in (tmp_path / "t").read_text())
    text = (tmp_path / "t").read_text()
    timeline.close()
    assert '"ph": "B"' in text
