"""Every way in which a rank may end, stop or be slow: what the others say, and that they end."""

import re

import pytest

from launcher import job, mpi_job, why_not

LIMITS = {"DDLT_STALL_CHECK_TIME_SECONDS": "1", "DDLT_STALL_SHUTDOWN_TIME_SECONDS": "4"}
# Ways in which a rank has no last word.
GONE = ("os_exit_3", "kill_before", "kill_inside", "sigsegv")
ENGINES = pytest.mark.parametrize("engine", ["mpi", "gloo"])


def needs(engine: str) -> None:
    reason = why_not(engine)
    if reason is not None:
        pytest.skip(reason)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(
    "way, text",
    [
        ("exception", "ValueError: deliberate"),
        ("unguarded_exception", "ValueError: deliberate"),
        ("keyboard_interrupt", "KeyboardInterrupt"),
        ("sys_exit_0", ": shutdown()"),
        ("sys_exit_3", ": shutdown()"),
        ("sys_exit_text", "deliberate"),
        ("os_exit_3", ""),
        ("kill_before", ""),
        ("kill_inside", "signal while inside"),
        ("sigsegv", ""),
    ],
)
@ENGINES
def test_lost_rank_ends_the_job(engine: str, way: str, text: str, ranks: int) -> None:
    needs(engine)
    if engine == "gloo" and way == "os_exit_3":
        pytest.skip("without a launcher nobody ends those that wait for it before the limit")
    outcome = job(engine, ranks, "endings.py", way, limit=90, environ=LIMITS)
    assert outcome.code not in (0, None), outcome
    assert outcome.orphans == []
    assert text in outcome.output
    if engine == "gloo" and way in GONE:  # MPI's launcher ends all; ours names the rank
        assert f"PeerLostError: rank {ranks - 1} gone: " in outcome.output, outcome.output
    assert "went on" not in outcome.output


@pytest.mark.parametrize("ranks", [2, 4])
@ENGINES
def test_stopped_before_it_asks(engine: str, ranks: int) -> None:
    """The others agree on nothing: an error names the tensor, and who does not answer."""
    needs(engine)
    outcome = job(engine, ranks, "endings.py", "stop_before", limit=90, environ=LIMITS)
    assert outcome.code not in (0, None), outcome
    assert outcome.orphans == []
    assert "StallError: rank" in outcome.output
    assert ": waiting to agree on allreduce(name='waiting'" in outcome.output
    assert f"rank {ranks - 1}: no answer" in outcome.output
    assert "went on" not in outcome.output


@pytest.mark.parametrize("ranks", [2, 4])
@ENGINES
def test_stopped_inside_a_collective(engine: str, ranks: int) -> None:
    """The others are inside as well: their watchdogs report, and end the job."""
    needs(engine)
    outcome = job(engine, ranks, "endings.py", "stop_inside", limit=90, environ=LIMITS)
    assert outcome.code not in (0, None), outcome
    assert outcome.orphans == []
    assert "signal while inside" in outcome.output
    assert ": inside allreduce(name='large'" in outcome.output
    assert f"rank {ranks - 1}: no answer" in outcome.output
    assert "went on" not in outcome.output


@pytest.mark.parametrize("way", ["kill_at_shutdown", "stop_at_shutdown"])
@ENGINES
def test_rank_that_is_lost_at_shutdown(engine: str, way: str) -> None:
    """Nothing is asked for any more: who waits in shutdown() for the lost rank says so and ends."""
    needs(engine)
    outcome = job(engine, 2, "endings.py", way, limit=90, environ=LIMITS)
    assert outcome.code not in (0, None), outcome
    assert outcome.orphans == []
    if engine == "gloo" or way == "stop_at_shutdown":  # else mpiexec is faster
        assert re.search(r"shutdown: (.|\n)*rank 1(:| gone)", outcome.output), outcome.output
        assert "shutdown is over" in outcome.output


@pytest.mark.parametrize(
    "way",
    ["stall_error_caught", "stall_error_caught_and_shutdown", "stall_error_after_shutdown"],
)
@ENGINES
def test_stall_that_the_program_catches(engine: str, way: str) -> None:
    """The program comes to its end, and the job ends there: nobody waits for the lost rank."""
    needs(engine)
    limits = dict(LIMITS, DDLT_STALL_SHUTDOWN_TIME_SECONDS="2")
    outcome = job(engine, 2, "endings.py", way, limit=60, environ=limits)
    assert outcome.code == 1, outcome
    assert outcome.orphans == []
    assert "caught it" in outcome.output
    assert ("Traceback" in outcome.output) == (way == "stall_error_after_shutdown")


@ENGINES
def test_slow_rank_is_reported_and_waited_for(engine: str) -> None:
    """It calculates for 5.5 s, which is past the limit, but it answers, or comes when asked."""
    needs(engine)
    outcome = job(engine, 2, "endings.py", "slow", limit=60, environ=LIMITS)
    assert outcome.code == 0, outcome.output
    assert outcome.orphans == []
    assert "rank 0: waiting to agree on allreduce(name='late'" in outcome.output
    assert "rank 1: alive, asking for nothing" in outcome.output
    assert "no answer" not in outcome.output
    assert outcome.output.count("all went on") == 2
    assert "Error" not in outcome.output


@pytest.mark.parametrize("ranks", [2, 4])
@ENGINES
def test_silent_exit_ends_the_job(engine: str, ranks: int) -> None:
    """os._exit(0) tells nobody; MPICH's mpiexec may even return 0, but nothing hangs."""
    needs(engine)
    outcome = job(engine, ranks, "endings.py", "os_exit_0", limit=90, environ=LIMITS)
    assert outcome.code is not None
    assert outcome.orphans == []
    if engine == "gloo":
        assert f"PeerLostError: rank {ranks - 1} gone: " in outcome.output, outcome.output
    assert "went on" not in outcome.output


@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize(
    "way", ["no_shutdown", "finalized_by_program", "mpi_not_started_by_mpi4py"]
)
def test_good_end(way: str, ranks: int) -> None:
    needs("mpi")
    outcome = mpi_job(ranks, "endings.py", way, limit=90)
    assert outcome.code == 0, outcome.output
    assert outcome.orphans == []
    assert outcome.output == ""


@pytest.mark.parametrize("way", ["absent_ended", "absent_stopped"])
@ENGINES
def test_rank_that_does_not_join_is_named(engine: str, way: str) -> None:
    """Under a launcher that knows nothing of init, or none: who waits says for whom, and ends."""
    needs(engine)
    environ = dict(LIMITS, DDLT_INIT_TIMEOUT_SECONDS="3")
    outcome = job(engine, 2, "endings.py", way, limit=90, environ=environ)
    assert outcome.code not in (0, None), outcome
    assert outcome.orphans == []
    if way == "absent_ended" and "exited due to process rank 1 with PID" in outcome.output:
        return  # Open MPI's launcher was faster: it ends those that a rank leaves in MPI_Init
    named = re.search(r"rank 0 .*has waited 3 s in init.*: rank 1 (.*)", outcome.output)
    assert named, outcome.output
    # Over gloo the store tells as well, if torch has been loaded by then.
    assert named.group(1) in ("did not join", "of this node has not called init")


@ENGINES
def test_settings_that_differ(engine: str) -> None:
    """All ranks refuse to begin, and may try again."""
    needs(engine)
    outcome = job(engine, 3, "endings.py", "settings_differ", limit=90)
    assert outcome.code == 0, outcome.output


def test_harness_kills_what_hangs() -> None:
    needs("mpi")
    outcome = mpi_job(2, "endings.py", "hang", limit=4)
    assert outcome.code is None
    assert outcome.seconds < 20
