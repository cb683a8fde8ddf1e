"""The launcher without MPI: real processes, real signals, and nothing left behind."""

import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import sys
import termios

import pytest

from distributed_dl_training.launch._job import Job, Limits
from distributed_dl_training.launch._output import Output
from distributed_dl_training.launch._peer import start_peer

from launching import HOME, Launched, launch, pids, program, wait_until


def local(ranks, *options):
    return ["--gloo", "-np", str(ranks), *options]


def reports(out):
    """Return what ranks of ``report`` have said, by rank."""
    said = [json.loads(line.partition(":")[2]) for line in out.splitlines()]
    return sorted(said, key=lambda one: one["rank"])


def state(pid):
    with open(f"/proc/{pid}/stat") as stream:
        return stream.read().rpartition(")")[2].split()[0]


def parent(pid):
    with open(f"/proc/{pid}/stat") as stream:
        return int(stream.read().rpartition(")")[2].split()[1])


def waiting(pipe):
    """Return how many bytes wait in a pipe; it takes 65536."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"0000"))[0]


TOLD = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR"]


def test_ranks_are_told_their_places(tmp_path):
    result = launch(*local(4), *program("report", *TOLD, "DDLT_ENGINE"), cwd=str(tmp_path))
    assert result.code == 0, result.err
    for rank, one in enumerate(reports(result.out)):
        assert one["cwd"] == os.path.realpath(str(tmp_path))
        values = [str(rank), "4", str(rank), "4", "0", "127.0.0.1", "gloo"]
        assert one["environ"] == dict(zip([*TOLD, "DDLT_ENGINE"], values))
    assert result.err == ""


def test_hosts_behind_an_agent():
    """Two hosts that only the agent can reach; it also prints what login scripts print."""
    agent = "sh -c 'echo welcome to {host}; exec {command}'"
    result = launch(
        *["--gloo", "-np", "3", "-H", "far1:2,far2:2", "--launch-agent", agent],
        *["-x", "DDLT_TEST_VALUE=a b", *program("report", *TOLD, "DDLT_TEST_VALUE")],
    )
    assert result.code == 0, result.err
    said = [one["environ"] for one in reports(result.out)]
    assert [one["LOCAL_RANK"] for one in said] == ["0", "1", "0"]
    assert [one["GROUP_RANK"] for one in said] == ["0", "0", "1"]
    assert [one["LOCAL_WORLD_SIZE"] for one in said] == ["2", "2", "1"]
    assert {one["MASTER_ADDR"] for one in said} == {"far1"}
    assert {one["DDLT_TEST_VALUE"] for one in said} == {"a b"}


def test_ranks_meet_at_the_port_chosen_for_them():
    result = launch(*local(3), *program("meet"))
    assert result.code == 0, result.err
    name = os.uname().nodename
    assert f"[0]<stdout>:met 1@{name} 2@{name}" in result.out


def test_options_become_variables():
    names = ["DDLT_FUSION_THRESHOLD", "DDLT_CACHE_CAPACITY", "DDLT_TIMELINE", "GLOO_SOCKET_IFNAME"]
    options = ["--fusion-threshold-mb", "32", "--cache-capacity", "35", "--timeline-filename", "t"]
    options += ["--network-interfaces", "lo"]
    result = launch(*local(1, *options), *program("report", *names, "-np", "--", "-H"))
    (one,) = reports(result.out)
    values = [str(32 << 20), "35", os.path.join(os.getcwd(), "t"), "lo"]
    assert [one["environ"][name] for name in names] == values
    assert one["argv"][-3:] == ["-np", "--", "-H"]  # the program's words are its own


def test_output_of_four_ranks_is_whole_lines():
    result = launch(*local(4), *program("lines", "400"))
    assert result.code == 0
    for text, kind in ((result.out, "out"), (result.err, "err")):
        found = {rank: [] for rank in range(4)}
        for line in text.splitlines():
            match = re.fullmatch(r"\[(\d)\]<std(out|err)>:(out|err) (\d) (\d+) (x*)", line)
            assert match, line
            assert match.group(2) == match.group(3) == kind and match.group(1) == match.group(4)
            assert len(match.group(6)) == int(match.group(5)) % 150
            found[int(match.group(1))].append(int(match.group(5)))
        assert all(numbers == list(range(400)) for numbers in found.values())


def test_output_that_is_no_text():
    with Launched(*local(1), *program("raw")) as job:
        out, _ = job.process.communicate(timeout=60)
    tag = b"[0]<stdout>:"
    lines = [b"caf\xe9 \xff\x00 end\n", b"10%\r", b"20%\r", b"done\r\n", b"last without end\n"]
    assert out == b"".join(tag + line for line in lines)


def test_a_line_without_end_is_cut():
    result = launch(*local(2), *program("long_line", "300000"))
    lines = result.out.splitlines()
    for rank in range(2):
        tag = f"[{rank}]<stdout>:"
        whole = [line[len(tag) :] for line in lines if line.startswith(tag)]
        assert "".join(whole) == "y" * 300000
        assert len(whole) > 1


def test_output_in_files(tmp_path):
    folder = tmp_path / "logs"
    result = launch(*local(11, "--output-filename", str(folder)), *program("lines", "3"))
    assert (result.code, result.out, result.err) == (0, "", "")
    assert sorted(os.listdir(str(folder)))[:2] == ["rank.00", "rank.01"]
    for rank in range(11):
        for kind in ("out", "err"):
            text = (folder / f"rank.{rank:02d}" / f"std{kind}").read_text()
            assert text == "".join(f"{kind} {rank} {n} {'x' * n}\n" for n in range(3))


def test_files_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    result = launch(*local(1, "--output-filename", str(tmp_path / "file")), "true")
    assert result.code == 2
    assert "cannot write to" in result.err and "file" in result.err


@pytest.mark.parametrize(
    "how, code, text",
    [
        ("3", 3, "ended with exit code 3"),
        ("exception", 1, "ended with exit code 1"),
        ("signal9", 137, "was killed by signal 9 (SIGKILL)"),
        ("signal11", 139, "was killed by signal 11 (SIGSEGV)"),
        ("signal15", 143, "was killed by signal 15 (SIGTERM)"),
    ],
)
def test_first_failure_is_named(how, code, text, tmp_path):
    result = launch(*local(3), *program("fail", how, "3", str(tmp_path)))
    assert result.code == code
    report = result.err[result.err.index("distributed-dl-trainingrun:") :]
    assert re.match(rf"distributed-dl-trainingrun: rank 2 on localhost {re.escape(text)}\n", report)
    assert "\n  rank 2 begins\n" in report and "\n  deliberate\n" in report
    # The others had the time to tell of it themselves.
    assert "[0]<stderr>:rank 0 has noticed" in result.err
    assert "[1]<stderr>:rank 1 has noticed" in result.err


def test_last_lines_are_shown_when_output_goes_to_files(tmp_path):
    options = ["--output-filename", str(tmp_path / "logs"), "--failure-wait", "0"]
    result = launch(*local(2, *options), *program("fail", "exception", "2", str(tmp_path)))
    assert result.code == 1
    assert "  ValueError: from the rank\n" in result.err


def test_survivors_that_do_not_hear_are_killed(tmp_path):
    options = ["--failure-wait", "0.2", "--kill-grace", "0.5"]
    result = launch(*local(3, *options), *program("fail", "4", "3", str(tmp_path), "deaf"))
    assert result.code == 4
    assert "rank 2 on localhost ended with exit code 4" in result.err


def test_killed_and_stopped_ranks(tmp_path):
    """kill -9 of one rank while another one is stopped: all are gone, the first is named."""
    options = ["--failure-wait", "0.2", "--kill-grace", "0.5"]
    with Launched(*local(4, *options), *program("sleep", str(tmp_path), "deaf")) as job:
        ranks = pids(tmp_path, 4)
        os.kill(ranks[3], signal.SIGSTOP)
        wait_until(lambda: state(ranks[3]) == "T")
        os.kill(ranks[1], signal.SIGKILL)
        result = job.end()
        assert job.orphans() == []
    assert result.code == 137
    assert "rank 1 on localhost was killed by signal 9" in result.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_to_the_launcher_end_all(number, tmp_path):
    options = ["--kill-grace", "0.5"]
    with Launched(*local(3, *options), *program("sleep", str(tmp_path), "deaf")) as job:
        os.kill(pids(tmp_path, 3)[0], signal.SIGSTOP)
        job.process.send_signal(number)
        result = job.end()
        assert job.orphans() == []
    assert result.code == 128 + number
    assert f"ended by {signal.Signals(number).name}" in result.err


@pytest.mark.parametrize("way", ["sleep", "family"])
def test_killed_launcher_leaves_no_orphans(way, tmp_path):
    with Launched(*local(3, "--kill-grace", "0.5"), *program(way, str(tmp_path), "deaf")) as job:
        pids(tmp_path, 3 if way == "sleep" else 6)
        job.process.kill()
        job.process.wait()
        assert job.orphans() == []


def test_killed_node_process_takes_its_ranks_along(tmp_path):
    with Launched(*local(2), *program("sleep", str(tmp_path), "deaf")) as job:
        ranks = pids(tmp_path, 2)
        os.kill(parent(ranks[0]), signal.SIGKILL)
        result = job.end()
        assert job.orphans() == []
    assert result.code == 1
    assert "localhost: the connection is lost" in result.err


def test_node_process_that_is_told_to_end(tmp_path):
    """Its ranks have not ended well, and those of other hosts end with them."""
    options = ["-H", "far1:1,far2:1", "--launch-agent", "sh -c 'exec {command}'"]
    options += ["--failure-wait", "0.2"]
    with Launched(*local(2, *options), *program("sleep", str(tmp_path))) as job:
        first = pids(tmp_path, 2)[0]
        os.kill(parent(first), signal.SIGTERM)
        result = job.end()
        assert job.orphans() == []
    assert result.code == 128 + signal.SIGTERM
    assert "rank 0 on " in result.err and "was killed by signal 15 (SIGTERM)" in result.err


def test_what_ranks_leave_behind_is_ended(tmp_path):
    result = launch(*local(2), *program("family", str(tmp_path), "end"))
    assert result.code == 0
    assert len(os.listdir(str(tmp_path))) == 2


def test_reader_that_goes_away():
    with Launched(*local(2), *program("lines", "100000"), stderr=subprocess.DEVNULL) as job:
        assert job.process.stdout is not None
        job.process.stdout.read(100)
        job.process.stdout.close()
        assert job.process.wait(timeout=60) == 128 + signal.SIGPIPE
        assert job.orphans() == []


def test_reader_that_does_not_read():
    """The launcher and all pipes are full; a signal ends the job all the same."""
    with Launched(*local(2), *program("lines", "100000"), stderr=subprocess.DEVNULL) as job:
        assert job.process.stdout is not None
        wait_until(lambda: waiting(job.process.stdout) >= 60000)
        job.process.terminate()
        assert job.process.wait(timeout=60) == 128 + signal.SIGTERM
        assert job.orphans() == []


@pytest.mark.parametrize(
    "command, text",
    [
        (["no-such-program-here"], "no-such-program-here"),
        ([os.devnull], "Permission denied"),
    ],
)
def test_program_that_cannot_start(command, text):
    result = launch(*local(2), *command)
    assert result.code == 127
    assert "rank 0 on localhost cannot start" in result.err and text in result.err


def test_host_that_does_not_answer():
    options = ["-H", "far1:1", "--start-timeout", "0.5", "--kill-grace", "0.1"]
    agent = "sh -c 'exec sleep 100' {host} {command}"
    result = launch(*local(1, *options, "--launch-agent", agent), "true")
    assert result.code == 1
    assert "after 0.5 s there is no answer from far1" in result.err


def test_only_hosts_that_do_not_answer_are_named():
    """far1 has greeted before the time is up."""
    greets = ["sh", "-c", "echo ddlt-node 1 - far1; read line"]
    peers = [
        start_peer("far1", [0], greets, os.environ),
        start_peer("far2", [1], ["sleep", "100"], os.environ),
    ]
    peers[0].receive()
    limits = Limits(start=0.0, patience=0.0, grace=0.1)
    ending = Job(2, peers, lambda peer: {}, Output(2), limits).run()
    assert ending == (1, "after 0 s there is no answer from far2", None)


def test_host_that_cannot_be_reached():
    agent = "sh -c 'echo no route to {host}; exit 255'"
    result = launch(*local(1, "-H", "far1:1", "--launch-agent", agent), "true")
    assert result.code == 1
    assert "far1: the command that starts ranks there ended with exit code 255" in result.err
    assert "printed: no route to far1" in result.err


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["-np", "4", "-H", "localhost:2", "--gloo", "true"], "4 ranks were asked for, and there"),
        (["-np", "2"], "no program to run"),
        (["-np", "0", "true"], "at least one rank"),
        (["true"], "how many ranks"),
        (["--gloo", "--mpi", "-np", "1", "true"], "not allowed with argument"),
        (["-np", "1", "--no-such", "true"], "--no-such"),
        (["-np", "1", "--hostfile", "/nonexistent", "true"], "/nonexistent"),
        (["-np", "1", "-H", "a:b", "true"], "a:b"),
        (["-np", "1", "--gloo", "-H", "a:1", "--launch-agent", "x '", "true"], "--launch-agent"),
    ],
)
def test_usage_errors(arguments, text):
    result = launch(*arguments)
    assert result.code == 2
    assert text in result.err
    assert "Traceback" not in result.err


def test_oversubscription_when_asked_for():
    result = launch("--gloo", "-np", "3", "-H", "localhost:2", "--oversubscribe", "true")
    assert result.code == 0, result.err


def test_nothing_to_communicate_with():
    """Without site-packages there is neither mpi4py nor torch; the error names both."""
    result = launch("-np", "1", "true", flags=["-S"], environ={"PYTHONPATH": HOME})
    assert result.code == 2
    assert "MPI lacks mpi4py" in result.err and "Gloo lacks torch" in result.err


def test_help_is_readable_at_80_columns():
    result = launch("--help")
    assert result.code == 0
    assert [line for line in result.out.splitlines() if len(line) > 80] == []
    assert "Distributed-DL-trainingrun -np 4 python train.py" in result.out
    assert launch("--version").out.strip()


def test_check_build_tells_what_works():
    result = launch("--check-build", limit=300)
    assert result.code == 0, result.err
    text = result.out
    assert re.search(r"\[X\] numpy: \d", text)
    for name in ("torch", "MPI", "Gloo", "NCCL", "mpiexec", "ssh", "srun"):
        assert re.search(rf"^    \[[X ]\] {name}: \S", text, re.MULTILINE), text
    torch = subprocess.run([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL)
    assert ("[X] Gloo" in text) == (torch.returncode == 0)


def test_gloo_of_torch():
    pytest.importorskip("torch", reason="torch is not installed")
    result = launch(*local(2), *program("gloo_sum"), limit=120)
    assert result.code == 0, result.err
    assert sorted(result.out.splitlines()) == ["[0]<stdout>:sum 3", "[1]<stdout>:sum 3"]
