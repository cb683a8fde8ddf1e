"""The one place that starts processes."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from envbuilder import process
from envbuilder.errors import MissingToolError
from envbuilder.target_tools import proc, processes

ENV = {"PATH": os.environ["PATH"]}


def gone(pid: int) -> bool:
    until = time.monotonic() + 5
    while time.monotonic() < until:
        if proc.birth(pid) is None:
            return True
        time.sleep(0.02)
    return False


def test_what_was_printed_and_the_exit_code_come_back() -> None:
    done = process.run(["sh", "-c", "echo out; echo err >&2; exit 3"], env=ENV)
    assert (done.code, done.stdout, done.stderr, done.ok) == (3, "out\n", "err\n", False)


def test_only_the_given_environment_is_passed_on() -> None:
    done = process.run(["/usr/bin/env"], env={"ONLY": "this"})
    assert done.stdout == "ONLY=this\n"


def test_a_program_that_is_not_there_is_a_missing_tool() -> None:
    with pytest.raises(MissingToolError, match="no-such-program"):
        process.run(["no-such-program"], env=ENV)


def test_time_that_runs_out_ends_the_whole_group(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/child; echo before; wait"
    done = process.run(["sh", "-c", script], env=ENV, timeout=0.5)
    assert (done.code, done.stdout) == (None, "before\n")
    assert gone(int((tmp_path / "child").read_text()))


def test_a_grandchild_that_keeps_the_pipe_does_not_hold_us(tmp_path: Path) -> None:
    script = f"setsid sleep 30 & echo $! > {tmp_path}/child; sleep 30"
    began = time.monotonic()
    done = process.run(["sh", "-c", script], env=ENV, timeout=0.3)
    assert done.code is None
    assert time.monotonic() - began < 20
    child = int((tmp_path / "child").read_text())
    processes.send(child, signal.SIGKILL)
    assert gone(child)


def test_following_hands_over_each_line_and_keeps_them_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    lines: list[str] = []
    script = "printf 'half '; sleep 0.3; echo line; echo second; exit 7"
    code = process.follow(["sh", "-c", script], env=ENV, log=log, on_line=lines.append)
    assert (code, lines) == (7, ["half line", "second"])
    assert log.read_text() == "half line\nsecond\n"


def test_leaving_the_block_ends_what_was_started(tmp_path: Path) -> None:
    command = ["sh", "-c", "trap '' TERM; sleep 60 & sleep 60"]
    with process.start(command, env=ENV, log=tmp_path / "log") as running:
        assert running.wait(0.2) is None
        pid = running.pid
    assert gone(pid)


def test_a_zombie_counts_as_gone() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    until = time.monotonic() + 5
    while proc.birth(pid) is not None and time.monotonic() < until:
        time.sleep(0.01)
    assert proc.birth(pid) is None
    os.waitpid(pid, 0)


def test_birth_survives_a_name_with_brackets(tmp_path: Path) -> None:
    program = tmp_path / "a) b (c"
    program.write_text("#!/bin/sh\nsleep 30 & wait\n")
    program.chmod(0o755)
    with process.start([str(program)], env=ENV, log=tmp_path / "log") as running:
        assert proc.birth(running.pid) is not None


STARTER = """
import os, signal, sys
from envbuilder import process

class Stop(BaseException):
    pass

def stop(number, frame):
    raise Stop

signal.signal(signal.SIGTERM, stop)
real = process._popen

def interrupted(*arguments):
    started = real(*arguments)
    print(started.pid, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    return started

process._popen = interrupted
try:
    process.run(["sleep", "60"], env=dict(os.environ))
except Stop:
    sys.exit(7)
"""


def test_a_signal_right_after_the_start_does_not_lose_the_process() -> None:
    done = process.run([sys.executable, "-c", STARTER], env=dict(os.environ))
    assert done.code == 7, done.stderr
    assert gone(int(done.stdout))


ECHO = """
import sys
for line in sys.stdin:
    word = line.strip()
    if word == "die":
        sys.exit("it has died")
    if word != "wait":
        print(word * 400_000, flush=True)
"""


def echo() -> process.Answering:
    return process.Answering([sys.executable, "-I", "-c", ECHO], ENV)


def test_a_process_is_asked_line_by_line_and_ends_when_nobody_asks() -> None:
    asked = echo()
    for word in ("one", "two"):
        done = asked.ask(word, 20)
        assert (done.ok, done.stdout) == (True, word * 400_000 + "\n")
    assert asked.end() == 0
    assert asked.end() is None


def test_who_does_not_answer_is_ended_and_says_why() -> None:
    asked = echo()
    done = asked.ask("die", 20)
    assert (done.ok, done.code, done.stderr) == (False, 1, "it has died\n")
    assert echo().ask("wait", 0.3).code is None


def test_what_answers_ends_with_what_asked(tmp_path: Path) -> None:
    asks = "import os, sys, envbuilder.process as p\n"
    asks += "asked = p.Answering([sys.executable, '-I', '-c', sys.argv[1]], os.environ)\n"
    asks += "print(asked._running.pid, flush=True)\nos.kill(os.getpid(), 9)"
    done = process.run([sys.executable, "-c", asks, ECHO], env=os.environ)
    assert done.code == -signal.SIGKILL
    assert gone(int(done.stdout))
