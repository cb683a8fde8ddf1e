"""The launcher as horovodrun: options, variables, rank 0's input; and ranks that do not join.

Options: horovod/runner/launch.py:286 of 0.28.1; variables: horovod/runner/gloo_run.py:124 and 283.
"""

import importlib.util
import re
import subprocess
import sys
import time

import pytest
from test_launch import reports

from distributed_dl_training.launch import _cli, _horovod_options
from distributed_dl_training.launch._hosts import UsageError
from distributed_dl_training.launch._joins import Joins

import launcher
from launching import Launched, job_environ, launch, program, wait_until

NAMES = ["RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE", "CONTROLLER"]
IDLE = (
    "--autotune --cycle-time-ms 5 --hierarchical-allgather --disable-cache"
    " --log-level INFO --num-nccl-streams 2"
).split()
WAYS = ["--gloo", pytest.param("--mpi", marks=pytest.mark.skipif(
    launcher.why_not() is not None, reason=str(launcher.why_not())))]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_variables_of_horovod(way):
    names = [f"HOROVOD_{name}" for name in NAMES]
    result = launch(way, "-np", "2", *program("report", *names))
    assert result.code == 0, result.err
    for rank, one in enumerate(reports(result.out)):
        values = [str(rank), "2", str(rank), "2", "0", "1", way[2:]]
        assert one["environ"] == dict(zip(names, values))


def test_places_on_hosts():
    """A cross rank counts the hosts that have a rank of the same local number."""
    from distributed_dl_training.launch._hosts import Host, place_ranks
    from distributed_dl_training.launch._start import horovod_environ

    places = place_ranks([Host("a", 2), Host("b", 1), Host("c", 2)], None, False)
    found = [horovod_environ(each, places) for each in places]
    crosses = [(one["HOROVOD_CROSS_RANK"], one["HOROVOD_CROSS_SIZE"]) for one in found]
    assert crosses == [("0", "3"), ("0", "2"), ("1", "3"), ("2", "3"), ("1", "2")]
    assert [one["HOROVOD_HOSTNAME"] for one in found] == list("aabcc")


def test_options_without_effect_are_told_once_each():
    result = launch("--gloo", "-np", "1", *IDLE, "--autotune", *program("report"))
    assert result.code == 0
    lines = result.err.splitlines()
    told = [line.split()[1] for line in lines]
    assert told == [word for word in IDLE if word.startswith("--")]
    assert all("has no effect here: " in line for line in lines)


def test_options_of_mpiexec_are_told_where_there_is_none():
    words = ["--tcp", "--binding-args=--bind-to core", "--mpi-args=-v"]
    result = launch("--gloo", "-np", "1", *words, *program("report"))
    assert result.code == 0
    told = [line.split()[1:] for line in result.err.splitlines()]
    assert [one[0] for one in told] == ["--tcp", "--binding-args", "--mpi-args"]
    assert all(one[1:5] == ["has", "no", "effect", "here:"] for one in told)


@pytest.mark.parametrize(
    "words, hint",
    [
        (["--min-np", "1"], "start again from a checkpoint"),
        (["--host-discovery-script", "x"], "start again from a checkpoint"),
        (["--slots-per-host", "2"], "start again from a checkpoint"),
        (["--jsrun"], "or use --mpi"),
    ],
)
def test_what_is_not_there_says_what_to_do(words, hint):
    result = launch(*words, "-np", "2", *program("report"))
    assert result.code == 2 and words[0] in result.err and hint in result.err


def test_every_option_of_horovod_is_known():
    """As ``horovodrun --help`` of 0.28.1 lists them."""
    known = _cli.make_parser("horovodrun")._option_string_actions
    text = """-v --version -np --num-proc -cb --check-build --disable-cache --start-timeout
    --network-interfaces --network-interface --output-filename --verbose --config-file -p
    --ssh-port -i --ssh-identity-file --fusion-threshold-mb --cycle-time-ms --cache-capacity
    --hierarchical-allreduce --no-hierarchical-allreduce --hierarchical-allgather
    --no-hierarchical-allgather --torus-allreduce --no-torus-allreduce --autotune --no-autotune
    --autotune-log-file --autotune-warmup-samples --autotune-steps-per-sample
    --autotune-bayes-opt-max-samples --autotune-gaussian-process-noise --min-np --min-num-proc
    --max-np --max-num-proc --slots-per-host --elastic-timeout --reset-limit
    --blacklist-cooldown-range --timeline-filename --timeline-mark-cycles
    --no-timeline-mark-cycles --no-stall-check --stall-check --stall-check-warning-time-seconds
    --stall-check-shutdown-time-seconds --mpi-threads-disable --no-mpi-threads-disable --mpi-args
    --tcp --binding-args --num-nccl-streams --thread-affinity --gloo-timeout-seconds --log-level
    --log-with-timestamp --log-without-timestamp -prefix-timestamp --prefix-output-with-timestamp
    --log-hide-timestamp --no-log-hide-timestamp -H --hosts -hostfile --hostfile
    --host-discovery-script --gloo --mpi --jsrun"""
    assert [word for word in text.split() if word not in known] == []


def test_options_that_become_variables():
    words = ["--no-stall-check", "--mpi-threads-disable", "--timeline-mark-cycles"]
    words += ["--gloo-timeout-seconds", "7"]
    names = ["STALL_CHECK_DISABLE", "MPI_THREADS_DISABLE", "TIMELINE_MARK_CYCLES"]
    names = [f"DDLT_{name}" for name in [*names, "INIT_TIMEOUT_SECONDS"]]
    result = launch("--gloo", "-np", "1", *words, *program("report", *names))
    assert reports(result.out)[0]["environ"] == dict(zip(names, ["1", "1", "1", "7.0"]))


def test_config_file(tmp_path):
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    path = tmp_path / "config.yaml"
    path.write_text(
        "params:\n  fusion_threshold_mb: 32\n  cycle_time_ms: 5\n  hierarchical_allreduce: true\n"
        "stall_check:\n  enabled: false\n  warning_time_seconds: 9\n"
        "timeline:\n  mark_cycles: false\n"
    )
    words = ["--cache-capacity", "3", "--config-file", str(path), "--fusion-threshold-mb", "1", "x"]
    options = _cli.make_parser("horovodrun").parse_args(words)
    assert (options.DDLT_FUSION_THRESHOLD, options.DDLT_CACHE_CAPACITY) == (1.0, 3.0)
    assert (options.DDLT_STALL_CHECK_DISABLE, options.DDLT_HIERARCHICAL_ALLREDUCE) == ("1", "1")
    assert options.DDLT_STALL_CHECK_TIME_SECONDS == 9.0 and options.command == ["x"]
    path.write_text("params:\n  no_such: 1\n")
    with pytest.raises(UsageError, match=r"no option params\.no_such"):
        _horovod_options.config_words(str(path))


def test_gloo_without_torch_is_refused_in_one_line(monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == "torch" else find(n))
    assert _cli.main(["--gloo", "-np", "2", "x"]) == 2
    assert capsys.readouterr().err == (
        "distributed-dl-trainingrun: error: --gloo is PyTorch's: pip install torch, or use --mpi\n"
    )


def test_lines_with_the_time():
    result = launch("--gloo", "-np", "1", "--prefix-output-with-timestamp", *program("report"))
    stamp, _, rest = result.out.partition("[0]<stdout>:")
    assert len(stamp.split()) == 5 and rest.startswith("{"), result.out


READER = "import sys; data = sys.stdin.buffer.read(); print(len(data), sum(data))"


@pytest.mark.parametrize("way", WAYS)
def test_rank_0_reads_the_launchers_input(way):
    data = bytes(range(256)) * 4000
    command = [sys.executable, "-m", "distributed_dl_training.launch", way, "-np", "2"]
    done = subprocess.run(
        [*command, sys.executable, "-c", READER],
        input=data,
        stdout=subprocess.PIPE,
        env=job_environ(),
        timeout=60,
    )
    lines = sorted(done.stdout.decode().splitlines())
    assert lines == [f"[0]<stdout>:{len(data)} {sum(data)}", "[1]<stdout>:0 0"]


@pytest.mark.parametrize("way", WAYS)
def test_input_that_nobody_reads_holds_nothing_up(way):
    """More than pipes hold, and an input that never ends."""
    with Launched(way, "-np", "2", *program("report"), stdin=subprocess.PIPE) as job:
        try:
            job.process.stdin.write(b"x" * (1 << 19))
        except BrokenPipeError:
            pass
        wait_until(lambda: job.process.poll() is not None)
        assert job.process.poll() == 0
        try:
            job.process.stdin.close()
        except BrokenPipeError:
            pass


ABSENT = """
import os, signal, sys, time
if os.environ["HOROVOD_RANK"] == "1":
    if sys.argv[1] == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if sys.argv[1] == "sleep":
        time.sleep(300)
    sys.exit(0)
import distributed_dl_training.numpy as hvd
hvd.init()
"""


@pytest.mark.parametrize("how", ["exit", "stop"])
@pytest.mark.parametrize("way", WAYS)
def test_who_does_not_join_is_named(way, how):
    """It has ended before init, or was stopped: the others wait no longer than they should."""
    if way == "--gloo" and importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    words = [way, "-np", "3", "--kill-grace", "1", sys.executable, "-c", ABSENT, how]
    result = launch(*words, environ={"DDLT_INIT_TIMEOUT_SECONDS": "3"})
    assert result.code != 0
    # The launcher is as fast as the ranks, or the ranks are.
    told = r"rank 1( on \S+)? (did not join|has ended before it joined)|init: rank 1 on \S+$"
    assert re.search(told, result.err, re.MULTILINE), result.err


@pytest.mark.parametrize("way", WAYS)
def test_start_timeout_is_for_ranks_that_never_reach_init(way):
    if way == "--gloo" and importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    words = [way, "-np", "3", "--start-timeout", "10", "--kill-grace", "1"]
    started = time.monotonic()
    result = launch(*words, sys.executable, "-c", ABSENT, "sleep")
    assert time.monotonic() - started < 40
    assert result.code == 1
    assert re.search(r"within 10 s of init: rank 1 on \S+$", result.err, re.MULTILINE), result.err


def test_limits_on_init():
    """A variable that is for init alone counts for more than the limit on the start."""

    def limits(*words, **environ):
        options = _cli.make_parser("x").parse_args([*words, "--mpi", "-np", "1", "program"])
        return _cli.understand(options, environ).limits

    assert limits()[::4] == (30.0, 300.0)
    assert limits("--start-timeout", "10")[::4] == (10.0, 10.0)
    assert limits(HOROVOD_START_TIMEOUT="20")[::4] == (20.0, 20.0)
    longer = limits("--start-timeout", "10", "--gloo-timeout-seconds", "600")
    assert longer[::4] == (10.0, 600.0)


def test_who_is_absent():
    joins = Joins(3)
    joins.ended(1)
    assert joins.absent(0.0) is None and joins.late(0.0001) == []
    joins.note(0, b"j")
    assert joins.absent(60.0) is None and joins.late(60.0) == []
    wait_until(lambda: joins.absent(0.0) is not None, 5.0)
    assert joins.absent(0.0) == 1
    assert joins.late(1e-9) == [1, 2]
    joins.note(0, b"J")
    assert joins.absent(0.0) is None and joins.late(1e-9) == []


def ddlrun(*words):
    """Return the request that ddlrun makes of a command line."""
    from distributed_dl_training.launch import _cli, _ddlrun

    joined = _ddlrun.join_words([*words, "--gloo", "true"])
    options = _cli.make_parser("ddlrun").parse_args(joined)
    return _cli.understand(options, {}, "ddlrun")


def test_ddlrun_starts_a_rank_for_each_accelerator(monkeypatch):
    from distributed_dl_training.launch import _cli

    monkeypatch.setattr(_cli.importlib.util, "find_spec", lambda name: True)
    request = ddlrun("-H", "a,b", "-accelerators", "2", "--mpiarg", "-x LANG=C", "--mpiarg", "-v")
    assert [(place.host, place.local_rank) for place in request.places] == [
        ("a", 0), ("a", 1), ("b", 0), ("b", 1),
    ]  # fmt: skip
    assert request.environ["DDL_OPTIONS"] == "-mode p:2x2x1x1"
    assert (request.environ["LANG"], request.options.mpi_args) == ("C", "-v")
    racks = ddlrun("-H", "a,b,c,d", "--accelerators", "6", "--nodes", "2", "--racks", "2")
    assert racks.environ["DDL_OPTIONS"] == "-mode p:6x2x2x1"
    assert racks.environ["DDLT_NODES_PER_RACK"] == "2"


@pytest.mark.parametrize("words", ["--nodes 3", "--racks 2 --aisles 2", "--accelerators -1"])
def test_ddlrun_refuses_a_layout_of_other_hosts(words):
    from distributed_dl_training.launch._hosts import UsageError

    with pytest.raises(UsageError):
        ddlrun("-H", "a,b", "--accelerators", "1", *words.split())
