"""Locks: one holder, a holder that is gone, one that is silent elsewhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
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
        with pytest.raises(BuildError) as raised:
            with locks.hold(path, say=said.append, wait=0.3, poll=0.05):
                pass
        assert raised.value.id == "root.lock-timeout"
        assert str(other.pid) in str(raised.value)
        (line,) = said
        assert f"process {other.pid} on {os.uname().nodename}, " in line
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
    (line,) = said
    assert f"process {other.pid} on {os.uname().nodename}" in line
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
        assert f"process {other.pid} on {os.uname().nodename}" in said[0]
        assert bystander.poll() is None
        bystander.kill()


def test_a_process_that_got_the_same_id_is_not_taken_for_the_holder(tmp_path: Path) -> None:
    path = tmp_path / "in-use.lock"
    path.write_text(json.dumps(here(pid=os.getpid(), birth=1)._asdict()))
    with locks.hold(path, say=lambda line: None, wait=0.2):
        assert json.loads(path.read_text())["birth"] == proc.birth(os.getpid())


def here(**changes: object) -> locks.Holder:
    """Return a holder in this very world."""
    host, boot, namespace = locks.own_world()
    return locks.Holder(host, 1, 1, "t", boot, namespace)._replace(**changes)  # type: ignore[arg-type]


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


IN_A_NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


def starts(*words: str) -> bool:
    return subprocess.run([*words, "true"], check=False, capture_output=True).returncode == 0


@pytest.mark.skipif(not starts(*IN_A_NAMESPACE), reason="unshare: no PID namespace can be made")
def test_a_holder_in_another_pid_namespace_is_not_taken_for_dead(tmp_path: Path) -> None:
    path = tmp_path / "in-use.lock"
    command = [*IN_A_NAMESPACE, sys.executable, "-c", HOLDER, str(path)]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert first_line(other) == "held"
        held = path.read_text()
        assert json.loads(held)["pid"] < 10, "a number that means another process here"
        said: list[str] = []
        with pytest.raises(BuildError) as raised:
            with locks.hold(path, say=said.append, wait=0.2, poll=0.05):
                pass
        assert raised.value.id == "root.lock-timeout"
        pid = json.loads(held)["pid"]
        (line,) = said
        assert f"process {pid} on {os.uname().nodename} (in another " in line
        assert path.read_text() == held
    finally:
        end(other)


def test_a_silent_holder_that_cannot_be_seen_is_named_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "in-use.lock"
    for unseen in (
        here(namespace="pid:[1]"),
        here(boot="another"),
        here(boot="", namespace=""),  # of an earlier release
    ):
        path.write_text(json.dumps(unseen._asdict()))
        age(path, 2 * locks.SILENT)
        with pytest.raises(BuildError) as raised:
            with locks.hold(path, say=lambda line: None):
                pass
        assert raised.value.id == "root.lock-stale"
        assert "600" in str(raised.value)
        assert json.loads(path.read_text())["token"] == "t"


@pytest.mark.parametrize(
    "changes",
    [{"boot": "another"}, {"boot": "", "namespace": ""}],
    ids=["boot id", "none, earlier"],
)
@pytest.mark.parametrize("since", [30, 3600])
def test_a_holder_from_before_this_start_of_the_machine_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], since: float
) -> None:
    """At once, also when its last sign of life is younger than those that are waited for."""
    started = time.time() - 20
    monkeypatch.setattr(proc, "boot_time", lambda: started)
    path = tmp_path / "in-use.lock"
    path.write_text(json.dumps(here(**changes)._asdict()))
    age(path, since)
    said: list[str] = []
    began = time.monotonic()
    with locks.hold(path, say=said.append, poll=60):
        assert json.loads(path.read_text())["pid"] == os.getpid()
    assert time.monotonic() - began < 30
    assert len(said) == 1
    assert "process 1 on " in said[0]


@pytest.mark.parametrize(
    "holder",
    [
        {"boot": "another"},  # its last sign of life is from after the start: another machine
        {"boot": "", "namespace": ""},
        {"host": "node7", "boot": "another"},
    ],
)
def test_a_holder_that_is_not_known_to_be_gone_is_waited_for_and_its_silence_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holder: dict[str, str]
) -> None:
    started = time.time() - (20 if "host" in holder else 3600)
    monkeypatch.setattr(proc, "boot_time", lambda: started)
    path = tmp_path / "in-use.lock"
    path.write_text(json.dumps(here(**holder)._asdict()))
    age(path, 100)
    said: list[str] = []
    with pytest.raises(BuildError) as raised:
        with locks.hold(path, say=said.append, wait=0.2, poll=0.05):
            pass
    assert raised.value.id == "root.lock-timeout"
    assert len(said) == 1
    assert "after 300 s)" in said[0]
    assert json.loads(path.read_text())["token"] == "t"


def test_this_machine_was_started_before_now() -> None:
    assert 0 < proc.boot_time() < time.time()


HIDDEN = "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid 65534 --clear-groups"


@pytest.mark.skipif(
    not starts("unshare", "--mount", "sh", "-c", f"{HIDDEN} true"),
    reason="unshare, mount, setpriv: /proc cannot be mounted with hidepid",
)
def test_a_holder_that_hidepid_hides_is_not_gone() -> None:
    """Asked by a user who sees no process of the holder; its own code is all that is imported."""
    tools = Path(locks.__file__).parent.parent
    program = f"""
import os, sys
sys.path.insert(0, {str(tools.parent.parent)!r})
from envbuilder.target_tools.root import locks
os.setgid(65534); os.setuid(65534)
world = locks.own_world()
alive = locks.Holder(world[0], {os.getpid()}, {proc.birth(os.getpid())}, 't', *world[1:])
assert not os.path.exists('/proc/{os.getpid()}')
gone = alive._replace(pid=2 ** 22 - 1)
print(locks.is_gone(alive), locks.is_gone(gone))
"""
    command = ["unshare", "--mount", "sh", "-c", HIDDEN.partition(" && ")[0] + ' && exec "$@"']
    done = subprocess.run(
        [*command, "sh", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "False True\n", done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user for a while")
def test_a_waiter_that_may_not_read_the_lock_waits_and_says_whose_it_is() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        path = Path(folder, "in-use.lock")
        path.write_text(json.dumps(here()._asdict()))
        path.chmod(0o600)
        said: list[str] = []
        os.seteuid(65534)
        try:
            with pytest.raises(BuildError) as raised:
                with locks.hold(path, say=said.append, wait=0.1, poll=0.05):
                    pass
            assert raised.value.id == "root.lock-timeout"
            assert "of root" in str(raised.value)
        finally:
            os.seteuid(0)
        (line,) = said
        assert "of root" in line
        assert [each.name for each in Path(folder).iterdir()] == ["in-use.lock"]


def test_a_lock_can_be_read_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with locks.hold(tmp_path / "x.lock", say=lambda line: None):
            assert (tmp_path / "x.lock").stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)


def test_an_empty_lock_file_ends_the_wait_and_the_waiter_sleeps_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its time lies ahead, as another machine's clock may have it."""
    path = tmp_path / "in-use.lock"
    path.touch()
    age(path, -3600)
    monkeypatch.setattr(locks, "HEARTBEAT", 0.1)
    began = time.process_time()
    with pytest.raises(BuildError) as raised:
        with locks.hold(path, say=lambda line: None, poll=0.05):
            pass
    assert raised.value.id == "root.lock-file-unreadable"
    assert time.process_time() - began < 0.1


def test_a_lock_that_is_not_whole_yet_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "in-use.lock"
    path.touch()
    gone = threading.Timer(0.3, path.unlink)
    gone.start()
    with locks.hold(path, say=lambda line: None, poll=0.05) as holder:
        assert locks.read(path) == holder
    gone.join()


def test_a_silent_lock_of_another_host_is_named_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "in-use.lock"
    path.write_text(json.dumps({"host": "node7", "pid": 1, "birth": 1, "token": "t"}))
    long_ago = time.time() - 2 * locks.SILENT
    os.utime(path, (long_ago, long_ago))
    with pytest.raises(BuildError) as caught:
        with locks.hold(path, say=lambda line: None):
            pass
    assert caught.value.id == "root.lock-stale"
    assert "node7" in str(caught.value)
    assert "600" in str(caught.value)
    assert f"rm '{path}'" in caught.value.problems[0].hints[0]
    assert json.loads(path.read_text())["host"] == "node7"


def test_a_lock_nobody_can_read_is_an_error_and_not_a_wait_without_end(tmp_path: Path) -> None:
    path = tmp_path / "in-use.lock"
    path.write_text("half a li")
    long_ago = time.time() - 60
    os.utime(path, (long_ago, long_ago))
    with pytest.raises(BuildError) as raised, locks.hold(path, say=lambda line: None):
        pass
    assert raised.value.id == "root.lock-file-unreadable"


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


STALE = """
import os, pathlib, sys
from envbuilder.target_tools.root import locks
locks.acquire(pathlib.Path(sys.argv[1]), print, 1, 0.1, None)
os._exit(0)
"""

# A successor that starts two others at the worst moments: one just before it renames the stale
# lock, one just after.
INTERRUPTED = """
import os, pathlib, subprocess, sys, time
from envbuilder.errors import BuildError
from envbuilder.target_tools.root import locks

path, command, others = pathlib.Path(sys.argv[1]), sys.argv[2:], []
rename = pathlib.Path.rename

def start_other():
    others.append(subprocess.Popen([*command, str(path)], stdout=subprocess.PIPE))
    time.sleep(1.5)

def interrupted(self, target):
    if self != path or others:
        return rename(self, target)
    start_other()
    result = rename(self, target)
    start_other()
    return result

pathlib.Path.rename = interrupted
holders = 0
try:
    with locks.hold(path, say=lambda line: None, wait=1, poll=0.05):
        holders += 1
except BuildError:
    pass
for other in others:
    os.set_blocking(other.stdout.fileno(), False)
    holders += b"held" in (other.stdout.read() or b"").split()
    other.kill()
print(holders)
"""


def test_a_lock_has_one_holder_when_another_takes_over_between_check_and_rename(
    tmp_path: Path,
) -> None:
    path = tmp_path / "in-use.lock"
    subprocess.run([sys.executable, "-c", STALE, str(path)], check=True)
    other = [sys.executable, "-c", HOLDER]
    result = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(path), *other],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert result.stdout == "1\n"


# Children hold the lock in turn; each dies holding it, while it takes over, or releases it. The
# kernel's own lock on a second file, which ends with its process, shows a second holder.
DYING = """
import fcntl, os, pathlib, random, signal, sys
from envbuilder.target_tools.root import locks

path, count, width = pathlib.Path(sys.argv[1]), int(sys.argv[2]), 4
rename = pathlib.Path.rename

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def child(draw):
    def rename_or_die(self, target):
        if draw.random() < 0.1:
            die()
        result = rename(self, target)
        if draw.random() < 0.1:
            die()
        return result

    pathlib.Path.rename = rename_or_die
    with locks.hold(path, say=lambda line: None, poll=0.001):
        with open(f"{path}.kernel", "a") as kernel:
            fcntl.flock(kernel, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(holdings, b".")
            if draw.random() < 0.7:
                die()

holdings = os.open(f"{path}.holdings", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
running, number = set(), 0
while os.fstat(holdings).st_size < count:
    while len(running) < width:
        number += 1
        pid = os.fork()
        if not pid:
            code = 1
            try:
                child(random.Random(number))
                code = 0
            finally:
                os._exit(code)
        running.add(pid)
    pid, status = os.wait()
    running.remove(pid)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        sys.exit("a child failed")
for pid in running:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
"""


@pytest.mark.parametrize("count", [25, pytest.param(500, marks=pytest.mark.long)])
def test_a_lock_has_one_holder_each_time_when_holders_die(tmp_path: Path, count: int) -> None:
    path = tmp_path / "in-use.lock"
    result = subprocess.run(
        [sys.executable, "-c", DYING, str(path), str(count)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    with locks.hold(path, say=lambda line: None):
        pass
    assert not path.exists()
    assert not path.with_name(f".{path.name}.successor").exists()
