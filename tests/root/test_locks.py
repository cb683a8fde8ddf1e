"""Locks: one holder, a holder that is gone, one that is silent elsewhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envbuilder.errors import BuildError
from envbuilder.target_tools import proc, processes
from envbuilder.target_tools.root import locks

HOLDER = """
import os, subprocess, sys, time, pathlib
from envbuilder.target_tools.root import locks
path = pathlib.Path(sys.argv[1])
with locks.hold(path, say=lambda line: print(line, flush=True)) as held:
    print("held", flush=True)
    if len(sys.argv) > 2:
        env = held.environ(os.environ)
        print(subprocess.Popen(sys.argv[2:], env=env, start_new_session=True).pid, flush=True)
    time.sleep(60)
"""


def holder(path: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLDER, str(path), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def first_line(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    return started.stdout.readline().strip()


def end(started: subprocess.Popen[str], number: signal.Signals = signal.SIGKILL) -> None:
    started.send_signal(number)
    started.wait()
    assert started.stdout is not None
    started.stdout.close()


def test_a_lock_names_its_holder_and_goes_when_it_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "in-use.lock"
    with locks.hold(path, say=lambda line: None):
        written = json.loads(path.read_text())
        assert written["pid"] == os.getpid()
        assert written["host"] == os.uname().nodename
    assert list(tmp_path.iterdir()) == []


def test_a_second_one_waits_and_is_told_for_whom(tmp_path: Path) -> None:
    path = tmp_path / "in-use.lock"
    other = holder(path)
    try:
        assert first_line(other) == "held"
        said: list[str] = []
        with pytest.raises(BuildError, match=f"gave up waiting for process {other.pid} on"):
            with locks.hold(path, say=said.append, wait=0.3, poll=0.05):
                pass
        assert said == [
            f"waiting for process {other.pid} on {os.uname().nodename}, "
            "which is building the same environment"
        ]
    finally:
        end(other)


def test_the_lock_of_a_killed_process_is_taken_over_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "in-use.lock"
    other = holder(path)
    assert first_line(other) == "held"
    end(other)
    assert path.exists()
    said: list[str] = []
    with locks.hold(path, say=said.append):
        assert json.loads(path.read_text())["pid"] == os.getpid()
    assert said == [f"taking over from process {other.pid} on {os.uname().nodename}, which is gone"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["exec sleep 60", "trap '' TERM; setsid sleep 60; sleep 60"])
def test_what_a_killed_holder_left_running_is_ended(tmp_path: Path, command: str) -> None:
    """Also what has a session of its own, or does not want to end; and nothing else."""
    path = tmp_path / "in-use.lock"
    with subprocess.Popen(["sleep", "60"]) as bystander:
        other = holder(path, "sh", "-c", command)
        assert first_line(other) == "held"
        orphan = int(first_line(other))
        token = json.loads(path.read_text())["token"]
        end(other)
        said: list[str] = []
        with locks.hold(path, say=said.append):
            assert proc.birth(orphan) is None
            assert processes.end_marked(f"{locks.MARK}={token}") == 0
        assert said[0].startswith("ended ")
        assert said[0].endswith(
            f" processes that process {other.pid} on {os.uname().nodename} left running"
        )
        assert bystander.poll() is None
        bystander.kill()


def test_a_process_that_got_the_same_id_is_not_taken_for_the_holder(tmp_path: Path) -> None:
    path = tmp_path / "in-use.lock"
    stale = {"host": os.uname().nodename, "pid": os.getpid(), "birth": 1, "token": "t"}
    path.write_text(json.dumps(stale))
    with locks.hold(path, say=lambda line: None, wait=0.2):
        assert json.loads(path.read_text())["birth"] == proc.birth(os.getpid())


def test_a_silent_lock_of_another_host_is_named_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "in-use.lock"
    path.write_text(json.dumps({"host": "node7", "pid": 1, "birth": 1, "token": "t"}))
    long_ago = time.time() - 2 * locks.SILENT
    os.utime(path, (long_ago, long_ago))
    with pytest.raises(BuildError, match="held by process 1 on node7, silent for 600 s") as caught:
        with locks.hold(path, say=lambda line: None):
            pass
    assert caught.value.problems[0].hints[0].startswith("if that process is gone, remove the file")
    assert json.loads(path.read_text())["host"] == "node7"


def test_a_lock_nobody_can_read_is_an_error_and_not_a_wait_without_end(tmp_path: Path) -> None:
    path = tmp_path / "in-use.lock"
    path.write_text("half a li")
    long_ago = time.time() - 60
    os.utime(path, (long_ago, long_ago))
    with pytest.raises(BuildError, match="cannot be read"), locks.hold(path, say=lambda line: None):
        pass


CONTENDER = """
import sys, pathlib
from envbuilder.target_tools.root import locks
path, count = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
for _ in range(20):
    with locks.hold(path, say=lambda line: None, poll=0.001):
        before = int(count.read_text())
        count.write_text(str(before + 1))
"""


def test_many_contenders_never_hold_it_together(tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.write_text("0")
    command = [sys.executable, "-c", CONTENDER, str(tmp_path / "x.lock"), str(count)]
    contenders = [subprocess.Popen(command) for _ in range(4)]
    assert [contender.wait(60) for contender in contenders] == [0, 0, 0, 0]
    assert count.read_text() == "80"
