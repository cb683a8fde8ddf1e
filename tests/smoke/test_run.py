"""The smoke test with a real MPI: good runs pass, and every kind of broken run is told apart.

Needs numpy, mpi4py, MPICH and (for one test) Open MPI from the package index.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from smoke_runs import Mpi, Runs

from tests.golden_texts import Golden

MIB = 2**20
pytestmark = [pytest.mark.integration, pytest.mark.network]

DTYPES = {"int32": 4, "int64": 8, "float16": 2, "float32": 4, "float64": 8}

# What the sabotaged runtimes have in common: they change what one rank's allreduce does once it
# is called with so many bytes.
WRAPPED = """
import os, signal, time
_allreduce = allreduce

def allreduce(tensor, name=None, op=Average, **factors):
    result = _allreduce(tensor, name=name, op=op, **factors)
    if rank() == 1 and result.nbytes == {nbytes}:
        {what}
    return result
"""


def wrapped(what: str, nbytes: int = 4096) -> str:
    return WRAPPED.format(what=what, nbytes=nbytes)


def first_part(reason: str) -> str:
    """Return what is the same in every run: without the other rank, the sums and further lines."""
    return reason.partition("\n")[0].partition(", rank 0")[0].partition(": element")[0]


@pytest.mark.parametrize(("ranks", "max_bytes"), [(2, MIB), (4, 65536)])
def test_a_good_run_proves_that_ranks_talk(smoke: Runs, ranks: int, max_bytes: int) -> None:
    result = smoke(ranks=ranks, max_bytes=max_bytes)
    assert (result.verdict, result.tier, result.reasons) == ("passed", "several ranks", ())
    assert (result.ranks, len(result.nodes), result.stacks) == (ranks, 1, {})
    assert all(check.passed and check.ranks == ranks for check in result.checks)
    for dtype, item in DTYPES.items():
        sizes = [c.bytes for c in result.checks if (c.name, c.dtype) == ("allreduce", dtype)]
        assert {max(4, item), 4096, max_bytes} <= set(sizes)
    names = {check.name for check in result.checks}
    assert {"allgather", "allgather with no rows", "broadcast", "barrier", "mismatch"} <= names
    assert [timing.bytes for timing in result.timings] == [
        4**k for k in range(1, 11) if 4**k <= max_bytes
    ]
    assert all(timing.latency_us > 0 and timing.bus_bandwidth > 0 for timing in result.timings)
    assert all(timing.repetitions >= 3 for timing in result.timings)
    assert [(one.kind, one.owner) for one in result.libraries] == [("mpi", "prefix")]
    assert result.mpi is not None
    assert result.mpi.startswith("MPICH ")
    assert result.runtime is not None
    assert result.runtime.startswith("distributed_dl_training ")


def test_the_records_tell_what_ran_and_nothing_else_is_written(smoke: Runs, mpi: Mpi) -> None:
    smoke()
    assert [path.name for path in smoke.folder.iterdir()] == ["run"]
    names = {path.name for path in (smoke.folder / "run").iterdir()}
    assert names == {"target_tools", "smoke.log", "ranks"}
    assert list((smoke.folder / "run").rglob("__pycache__")) == []
    files = sorted((smoke.folder / "run" / "ranks").glob("rank-*.jsonl"))
    assert len(files) == 2
    for path in files:
        events = [json.loads(line) for line in path.read_text().splitlines()]
        start, world = events[0], next(one for one in events if one["event"] == "init")
        assert path.name == f"rank-{start['host']}-{start['pid']}.jsonl"
        assert start["event"] == "start"
        assert start["executable"] == mpi.python
        assert start["uid"] == os.getuid()
        assert start["started"] > 0
        assert start["launcher_rank"] == world["rank"]
        assert (world["size"], world["local_size"]) == (2, 2)
        assert events[-1]["event"] == "end"
        begun = [one["check"] for one in events if one["event"] == "begin"]
        assert begun == [one["check"] for one in events if one["event"] == "done"]
        assert begun[:3] == ["import", "init", "hello"]
        assert begun[-1] == "shutdown"


def test_a_launcher_that_only_claims_success(golden: Golden, smoke: Runs) -> None:
    result = smoke(launcher=smoke.script("echo 'all ranks passed'"))
    golden(*result.reasons)
    assert (result.verdict, result.tier) == ("failed", "built")


def test_a_launcher_that_fails(golden: Golden, smoke: Runs) -> None:
    result = smoke(launcher=smoke.script("echo 'no hosts left' >&2; exit 7"))
    golden(*result.reasons)


def test_records_of_a_good_run_played_again(golden: Golden, smoke: Runs) -> None:
    smoke()
    kept = smoke.folder / "kept"
    (smoke.folder / "run").rename(kept)
    replay = smoke.script(f"cp '{kept}'/ranks/* '{smoke.folder}/run/ranks/'")
    result = smoke(launcher=replay)
    assert result.verdict == "failed"
    golden(first_part(result.reasons[0]))
    golden(*(reason.rpartition(": ")[2] for reason in result.reasons[1:]))


COPIES = "shift; n=$1; shift; while [ $n -gt 0 ]; do {start} & n=$((n-1)); done; {end}"


def test_a_launcher_that_starts_programs_without_a_common_world(
    golden: Golden, smoke: Runs
) -> None:
    result = smoke(launcher=smoke.script(COPIES.format(start='"$@"', end="wait")))
    libmpi = smoke.mpi.prefix.resolve() / "lib" / "libmpi.so.12"
    golden(*result.reasons, libmpi=libmpi)
    assert (result.verdict, result.tier) == ("failed", "one rank")


def test_a_launcher_of_another_mpi(smoke: Runs, other_mpi: Mpi) -> None:
    as_root = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    smoke.environ.update(dict.fromkeys(as_root, "1"))
    options = ("--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none")
    result = smoke(launcher=(other_mpi.mpiexec, *options))
    assert result.verdict == "failed"
    assert result.tier in ("imported", "one rank")
    # MPICH finds a process manager that it cannot talk to; older ones start alone.
    reason = result.reasons[0]
    assert (" in init" in reason and "PMI" in reason) or "each alone (size 1)" in reason


def test_a_launcher_that_ends_before_its_ranks(golden: Golden, smoke: Runs) -> None:
    start = 'setsid "$@" </dev/null >/dev/null 2>&1'
    launcher = smoke.script(COPIES.format(start=start, end="sleep 1"))
    sabotage = "import time\n\ndef barrier():\n    time.sleep(600)\n"
    result = smoke(launcher=launcher, sabotage=sabotage)
    golden(*(reason for reason in result.reasons if "exit code 0" in reason))


def test_one_rank_returns_the_sum_plus_one(golden: Golden, smoke: Runs) -> None:
    result = smoke(sabotage=wrapped("result = result + result.dtype.type(1)"))
    assert result.verdict == "failed"
    golden(first_part(result.reasons[0]))
    assert result.reasons[0].endswith(" (and 1023 more)")
    failed = [check for check in result.checks if not check.passed]
    assert {check.dtype for check in failed} == set(DTYPES)
    assert all(check.bytes == 4096 for check in failed)


def test_one_element_of_64_mib_is_off_by_one(golden: Golden, smoke: Runs) -> None:
    what = "result[-1] += result.dtype == 'float32'"
    result = smoke(sabotage=wrapped(what, 64 * MIB), max_bytes=64 * MIB)
    assert result.verdict == "failed"
    last = 16 * MIB - 1
    label = "allreduce float32 of 67108864 bytes"
    assert result.reasons[0].startswith(f"rank 1: {label}: element {last} is ")
    assert "more" not in result.reasons[0]
    golden(first_part(result.reasons[1]))
    assert len(result.reasons) == 2


WRONG = {
    "input is overwritten": (
        wrapped("tensor[0] = 0"),
        "rank 1: allreduce int32 of 4096 bytes: the input was changed: element 0 is 0, must be ",
    ),
    "dtype is lost": (
        wrapped("result = result.astype('float64')"),
        "rank 1: allreduce int32 of 4096 bytes: the result has dtype float64 and shape (1024,), "
        "must be int32 and (1024,)",
    ),
    "gather in another order": (
        "_allgather = allgather\n"
        "def allgather(tensor, name=None):\n"
        "    result = _allgather(tensor)\n"
        "    return result[::-1].copy() if result.ndim == 2 else result\n",
        "rank 0 and rank 1: allgather int64: element 0 is 2003, must be 1000 (and ",
    ),
    "broadcast does nothing": (
        "def broadcast(tensor, root_rank, name=None):\n    return tensor.copy()\n",
        "rank 0: broadcast int64: from root 1: element 0 is -15838, must be 15838",
    ),
    "barrier does not wait": (
        "def barrier():\n    pass\n",
        "barrier: rank 1 left it 0.",
    ),
    "mismatch goes unnoticed": (
        "_allreduce = allreduce\n"
        "def allreduce(tensor, **options):\n"
        "    try:\n        return _allreduce(tensor, **options)\n"
        "    except MismatchError:\n        return tensor\n",
        "rank 0 and rank 1: mismatch: shapes differed between ranks, yet no MismatchError was "
        "raised",
    ),
    "size is wrong": (
        "def size():\n    return 3\n",
        "rank 0 and rank 1: world: size is 3, must be 2",
    ),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.sample(2)
def test_a_runtime_that_does_something_wrong(smoke: Runs, case: str) -> None:
    sabotage, reason = WRONG[case]
    result = smoke(sabotage=sabotage)
    assert result.verdict == "failed"
    assert result.reasons[0].startswith(reason)
    assert result.tier in ("imported", "one rank")


HANGS = {
    "asleep": ("time.sleep(600)", "time.sleep(600)"),
    "waiting for a message": (
        "from mpi4py import MPI; MPI.COMM_WORLD.recv(source=0, tag=99)",
        "MPI.COMM_WORLD.recv(",
    ),
}


@pytest.mark.parametrize("case", HANGS)
@pytest.mark.sample(1)
def test_a_rank_that_hangs(golden: Golden, smoke: Runs, case: str) -> None:
    what, _ = HANGS[case]
    with smoke.hung('"bytes": 4096'):
        result = smoke(sabotage=wrapped(smoke.hang(what)))
    assert result.verdict == "failed"
    assert result.tier == "imported"
    golden(first_part(result.reasons[0]))
    assert result.reasons[0].endswith("; stacks follow")
    assert set(result.stacks) == {"rank 0", "rank 1"}
    for stack in result.stacks.values():
        assert "recent call first" in stack
        assert "in allreduce" in stack
    assert "numpy.py" in result.stacks["rank 1"].split("rank.py")[0]


def test_a_rank_that_is_stopped_has_no_stack(golden: Golden, smoke: Runs) -> None:
    with smoke.hung('"bytes": 4096'):
        result = smoke(sabotage=wrapped(smoke.hang("os.kill(os.getpid(), signal.SIGSTOP)")))
    golden(first_part(result.reasons[0]))
    golden(result.stacks["rank 1"].partition(")")[0])
    assert "recent call first" in result.stacks["rank 0"]


def test_a_rank_that_hangs_in_python_before_the_others_know_it(golden: Golden, smoke: Runs) -> None:
    sabotage = "import os, time\nif os.environ['PMI_RANK'] == '1':\n    "
    with smoke.hung('"check": "init"', ranks=1):
        result = smoke(sabotage=sabotage + smoke.hang("time.sleep(600)") + "\n")
    golden(first_part(result.reasons[0]))
    assert "time.sleep" not in result.stacks["rank 0"]
    assert "numpy.py" in result.stacks["rank 1"]


EARLY = "import os, signal\nif os.environ['PMI_RANK'] == '1':\n    {reported}\n    {die}\n"
LATE = """
import os, signal
_shutdown = shutdown

def shutdown():
    was = rank()
    _shutdown()
    if was == 1:
        {die}
"""
PLACES = {
    "before init": (EARLY, "in import"),
    "inside allreduce": (wrapped("{die}"), "in allreduce int32 of 4096 bytes"),
    "after the last check": (LATE, "in shutdown"),
}
WAYS = {
    # Of the rank itself; of another one that is still there, which mpiexec kills; or bits of both.
    "exit code 3": ("os._exit(3)", [f"mpiexec ended with exit code {n}" for n in (3, 9, 3 | 9)]),
    "SIGKILL": (
        "os.kill(os.getpid(), signal.SIGKILL)",
        ["killed by signal 9 (SIGKILL)", "mpiexec ended with exit code 9"],
    ),
}


@pytest.mark.parametrize("when", PLACES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.sample(2)
def test_a_rank_that_dies(smoke: Runs, when: str, way: str) -> None:
    sabotage, place = PLACES[when]
    die, hows = WAYS[way]
    sabotage = sabotage.replace("{reported}", smoke.all_reported())
    result = smoke(sabotage=sabotage.replace("{die}", die))
    assert result.verdict == "failed"
    # Of two deaths in one moment nobody may have seen which was first.
    reason = result.reasons[0]
    assert reason.startswith(("rank 1 died ", "stopped without an error: "))
    assert f"{place}" in reason
    if reason.startswith("rank 1 died "):
        assert "its record stops" in reason
    assert any(how in reason for how in (*hows, "mpiexec did not notice")), reason


def test_a_rank_that_leaves_early_without_an_error(smoke: Runs) -> None:
    result = smoke(sabotage=wrapped("os._exit(0)"))
    assert result.verdict == "failed"
    assert "rank 1" in result.reasons[0]
    assert "allreduce int32 of 4096 bytes" in result.reasons[0]


def test_a_rank_that_raises_tells_its_traceback(golden: Golden, smoke: Runs) -> None:
    result = smoke(sabotage=wrapped("raise OSError('no route to host')"))
    reason = result.reasons[0]
    golden(reason.partition("\n")[0])
    assert 'numpy.py", line ' in reason
    assert len(result.reasons) == 1


def test_a_rank_that_ends_the_interpreter(golden: Golden, smoke: Runs) -> None:
    result = smoke(sabotage=wrapped("raise SystemExit(0)"))
    golden(first_part(result.reasons[0]))


def test_a_crash_leaves_its_stack(golden: Golden, smoke: Runs) -> None:
    result = smoke(sabotage=wrapped("import ctypes; ctypes.string_at(0)"))
    golden(first_part(result.reasons[0]))
    assert "Segmentation fault" in result.stacks["rank 1"]
    assert "ctypes" in result.stacks["rank 1"]


def test_no_runtime(golden: Golden, smoke: Runs) -> None:
    smoke.environ["PYTHONPATH"] = ""
    result = smoke()
    assert result.tier == "built"
    golden(first_part(result.reasons[0]))


def test_libmpi_from_elsewhere(golden: Golden, smoke: Runs) -> None:
    result = smoke(prefix=smoke.folder / "elsewhere")
    libmpi = smoke.mpi.prefix.resolve() / "lib" / "libmpi.so.12"
    golden(*result.reasons, libmpi=libmpi, smoke_folder_elsewhere=smoke.folder / "elsewhere")
    assert result.tier == "one rank"


def test_a_libmpi_that_the_plans_wrapper_does_not_link(golden: Golden, smoke: Runs) -> None:
    """A copy works just as well; only whose it is tells it apart."""
    lib = smoke.mpi.prefix.resolve() / "lib"
    other = smoke.folder / "other"
    other.mkdir()
    for name in ("libmpi.so.12", "libmpi_abi.so.1"):
        shutil.copyfile(lib / name, other / name)
    (other / "mpich").symlink_to(lib / "mpich")
    asks = 'wrapper={}; {{ echo "$wrapper"; "$wrapper" -show; }} >mpi.txt\nexec {} "$@"'
    mpiexec = smoke.mpi.mpiexec
    wrapper = str(Path(mpiexec).with_name("mpicxx"))
    launcher = smoke.script(asks.format(wrapper, mpiexec))
    good = smoke(launcher=launcher, mpi_from="wrapper")
    assert (good.verdict, good.reasons) == ("passed", ())

    (smoke.folder / "run").rename(smoke.folder / "before")
    # mpi4py looks beside itself before it looks along LD_LIBRARY_PATH, unless it is told.
    smoke.environ["MPI4PY_LIBMPI"] = str(other / "libmpi.so.12")
    result = smoke(launcher=launcher, mpi_from="wrapper")
    assert result.tier == "one rank"
    (reason,) = result.reasons
    golden(reason.partition(";")[0], other=other.resolve())
    assert f"takes MPI from {lib}/" in reason
    assert reason.endswith(f"({wrapper} -show)")


def test_an_interrupt_ends_everything(smoke: Runs, wait_until: Callable[..., None]) -> None:
    request = smoke.request(sabotage=wrapped("os.kill(os.getpid(), signal.SIGSTOP)"))
    program = """
        import pathlib, sys
        from envbuilder.target_tools.proving.runner import SmokeRequest, run_smoke
        P = pathlib.Path
        try:
            run_smoke(SmokeRequest(**eval(sys.argv[1], {"PosixPath": P})))
        except KeyboardInterrupt:
            sys.exit(42)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), repr(request)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    try:
        log = smoke.folder / "run" / "ranks"
        wait_until(lambda: any('"bytes": 4096' in p.read_text() for p in log.glob("*.jsonl")))
        assert len(smoke.left()) >= 3
        child.send_signal(signal.SIGINT)
        assert child.wait(15) == 42
    finally:
        child.kill()
        child.wait()
    assert smoke.left() == []


def test_a_rank_that_nobody_ends_ends_itself(smoke: Runs, mpi: Mpi, tmp_path: Path) -> None:
    """As on another node, where nobody asks for stacks or sends signals."""
    smoke.request()
    (tmp_path / "hanging.py").write_text("import time\ntime.sleep(600)\n")
    program = (
        "import sys; from target_tools.smoke import rank; "
        "rank.OVERTIME = 1; rank.main(sys.argv[1:])"
    )
    options = ["--out", str(tmp_path), "--nonce", "ab", "--ranks", "1", "--timeout", "2"]
    done = subprocess.run(
        [mpi.python, "-c", program, *options, "--runtime", "hanging"],
        env={"PYTHONPATH": f"{tmp_path}:{tmp_path / 'run'}", "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
        timeout=60,
    )
    assert done.returncode == -signal.SIGALRM
    (stack,) = tmp_path.glob("stack-*.txt")
    assert "hanging.py" in stack.read_text()
