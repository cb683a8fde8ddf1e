"""Every verdict, from hand-written records: the whole text of each reason is held."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from smoke_ranks import (
    BARRIER,
    IMPORT,
    INIT,
    LARGE,
    LIBMPI,
    SHUTDOWN,
    SMALL,
    TIMING,
    WORLD,
    Rank,
    expectations,
    judged,
)

from envbuilder.model.evidence import SmokeResult
from envbuilder.target_tools.proving import reasons
from envbuilder.target_tools.proving.judge import Outcome
from envbuilder.target_tools.smoke import rank_env
from tests.golden_texts import Golden

HYDRA_KILLED = """
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 101 RUNNING AT node1
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
"""

HYDRA_CRASHED = HYDRA_KILLED.replace(": 9", ": 11").replace("signal 9", "signal 11")


# Seen where a rank crashed and hydra had ended the other before it looked.
HYDRA_OTHER = HYDRA_KILLED.replace("PID 101", "PID 100").replace("signal 9", "signal 11")


@pytest.fixture
def verdict(tmp_path: Path) -> Any:
    def of(*ranks: Rank, expected: Any = None, **outcome: Any) -> SmokeResult:
        for rank in ranks:
            rank.write(tmp_path)
        timed_out = outcome.get("code", 0) is None
        ending = Outcome(**{"code": 0, "timed_out": timed_out, "seconds": 2.34567, **outcome})
        return judged(tmp_path, ending, expected or expectations())

    return of


def states(*pairs: tuple[Rank, str]) -> dict[str, str]:
    return {rank.source: state for rank, state in pairs}


def test_a_good_run_passes_and_tells_what_ran(golden: Golden, verdict: Any) -> None:
    result = verdict(Rank(0), Rank(1, facts={TIMING: {"median": 0.002, "repetitions": 10}}))
    assert (result.verdict, result.tier, result.reasons) == ("passed", "several ranks", ())
    assert result.nodes == ("node1",)
    golden(result.launch)
    assert result.runtime == "distributed_dl_training 0.1.0"
    assert (result.mpi, result.python, result.seconds) == ("MPICH 5.0.2", "3.11.7", 2.346)
    assert [(one.kind, one.path, one.owner) for one in result.libraries] == [
        ("mpi", LIBMPI, "prefix")
    ]
    assert [check.name for check in result.checks] == [
        *("import", "init", "hello", "world", "allreduce", "allreduce", "barrier", "timing"),
        "shutdown",
    ]
    assert all(check.passed and check.ranks == 2 for check in result.checks)
    # The slowest rank counts: 2 (2-1)/2 * 4096 B / 2 ms.
    (timing,) = result.timings
    assert (timing.bytes, timing.latency_us, timing.repetitions) == (4096, 2000.0, 10)
    assert timing.bus_bandwidth == 0.002048


def test_the_implementation_of_graphs_is_recorded(verdict: Any) -> None:
    op, python = {"implementation": "op"}, {"implementation": "py-function"}
    assert verdict(Rank(0, tensorflow=op), Rank(1, tensorflow=op)).runtime == (
        "distributed_dl_training 0.1.0, tensorflow: op"
    )
    mixed = verdict(Rank(0, tensorflow=op), Rank(1, tensorflow=python)).runtime
    assert mixed is not None
    assert mixed.count("tensorflow: ") == 2


def test_the_environment_that_shaped_the_run_is_recorded(verdict: Any) -> None:
    one = {"UCX_TLS": "tcp,self", "NCCL_DEBUG": "", "LD_PRELOAD": "x\x1b[2J"}
    other = {"UCX_TLS": "rc,self", "NCCL_DEBUG": ""}
    judged = verdict(Rank(0, environment=one), Rank(1, environment=other))
    assert judged.environment == {
        "LD_PRELOAD": "(not set) / x [2J",
        "NCCL_DEBUG": "(empty)",
        "UCX_TLS": "rc,self / tcp,self",
    }
    assert verdict(Rank(0), Rank(1)).environment == {}


def test_secrets_and_what_launchers_set_are_no_part_of_it() -> None:
    found = rank_env.shaping(
        {
            "UCX_TLS": "rc",
            "HOROVOD_SECRET_KEY": "hidden",
            "HOROVOD_CYCLE_TIME": "5",
            "OMPI_MCA_btl": "tcp,self",
            "OMPI_MCA_orte_hnp_uri": "17;tcp://10.0.0.1:4711",
            "OMPI_COMM_WORLD_RANK": "0",
            "LD_LIBRARY_PATH": "/apps/lib" * 100,
            "AWS_SECRET": "hidden",
            "PATH": "/usr/bin",
        }
    )
    assert list(found) == [
        *("HOROVOD_CYCLE_TIME", "HOROVOD_SECRET_KEY", "LD_LIBRARY_PATH", "OMPI_MCA_btl", "UCX_TLS"),
    ]
    assert found["HOROVOD_SECRET_KEY"] == "(left out)"
    assert len(found["LD_LIBRARY_PATH"]) == rank_env.LONGEST


def test_a_slow_message_has_a_bandwidth_all_the_same(verdict: Any) -> None:
    slow = {TIMING: {"median": 12.3456789, "repetitions": 3}}
    (timing,) = verdict(Rank(0), Rank(1, facts=slow)).timings
    assert (timing.latency_us, timing.bus_bandwidth) == (12345700.0, 3.31776e-07)


def test_two_hosts_are_several_nodes(verdict: Any) -> None:
    result = verdict(Rank(0), Rank(1, host="node2"))
    assert (result.verdict, result.tier) == ("passed", "several nodes")
    assert result.nodes == ("node1", "node2")


def test_one_rank_when_one_was_asked_for(verdict: Any) -> None:
    result = verdict(Rank(0, size=1), expected=expectations(ranks=1))
    assert (result.verdict, result.tier) == ("passed", "one rank")
    assert result.timings[0].bus_bandwidth == 0


@pytest.mark.parametrize(
    ("code", "log", "reason"),
    [
        (
            0,
            "all 2 ranks passed\n",
            "mpiexec ended with exit code 0 but started no rank: none of 2 reported",
        ),
        (
            127,
            "\n=====\nssh: node7: no such host\n",
            "mpiexec ended with exit code 127 and started no rank: none of 2 reported\n"
            "from the log:\n  ssh: node7: no such host",
        ),
        (
            -15,
            "",
            "mpiexec ended with signal 15 (SIGTERM) and started no rank: none of 2 reported",
        ),
        (
            None,
            "",
            "hung: after 120 s none of 2 ranks had reported, and mpiexec was still running",
        ),
    ],
)
def test_no_rank_started(verdict: Any, code: int | None, log: str, reason: str) -> None:
    result = verdict(code=code, log=log)
    assert result.reasons == (reason,)
    assert (result.verdict, result.tier, result.checks) == ("failed", "built", ())


def test_fewer_ranks_than_asked_for(golden: Golden, verdict: Any) -> None:
    result = verdict(Rank(0, size=1, problems={WORLD: "size is 1, must be 2"}))
    golden(*result.reasons)
    assert result.tier == "one rank"


def test_fewer_ranks_than_asked_for_in_a_hang(golden: Golden, verdict: Any) -> None:
    rank = Rank(0, stop_in=INIT, launcher_rank=0)
    result = verdict(rank, code=None, states=states((rank, "running")), stacks={rank.source: "s"})
    golden(*result.reasons)
    assert result.stacks == {"rank 0": "s"}


def test_more_processes_than_asked_for(golden: Golden, verdict: Any) -> None:
    ranks = [Rank(number, size=3, problems={WORLD: "size is 3, must be 2"}) for number in range(3)]
    result = verdict(*ranks)
    golden(*result.reasons)
    assert result.timings == ()


def test_each_process_alone(golden: Golden, verdict: Any) -> None:
    problem = {WORLD: "size is 1, must be 2"}
    result = verdict(Rank(0, size=1, problems=problem), Rank(0, size=1, pid=7, problems=problem))
    golden(*result.reasons)
    assert (result.tier, result.timings) == ("one rank", ())


def test_each_process_alone_and_stopped_before_its_libraries_are_known(
    golden: Golden, verdict: Any
) -> None:
    result = verdict(
        Rank(0, size=1, stop_in=SMALL), Rank(0, size=1, pid=7, stop_in=SMALL), code=1, log="oops\n"
    )
    golden(*result.reasons)
    assert result.tier == "imported"


def test_two_processes_are_the_same_rank(golden: Golden, verdict: Any) -> None:
    result = verdict(Rank(0), Rank(0, pid=7))
    golden(*result.reasons)


def test_a_wrong_sum_names_rank_check_and_element(golden: Golden, verdict: Any) -> None:
    wrong = "element 0 is 4.0, must be 3.0 (and 1023 more)"
    result = verdict(Rank(0), Rank(1, problems={LARGE: wrong}), code=1)
    golden(*result.reasons, wrong=wrong)
    (check,) = (check for check in result.checks if not check.passed)
    assert (check.name, check.dtype, check.bytes, check.ranks) == ("allreduce", "float32", 4096, 2)
    assert check.detail == f"rank 1: {wrong}"
    assert result.tier == "one rank"


def test_ranks_that_see_the_same_are_named_together_and_many_reasons_are_cut(
    golden: Golden, verdict: Any
) -> None:
    problems = {SMALL: "element 0 is 1, must be 3"}
    result = verdict(*(Rank(n, size=6, problems=problems) for n in range(6)))
    golden(result.reasons[1])
    different = [
        Rank(n, size=10, problems={SMALL: f"element 0 is {n}, must be 45"}) for n in range(10)
    ]
    result = verdict(*different, expected=expectations(ranks=10))
    assert len(result.reasons) == 9
    golden(result.reasons[0])
    golden(result.reasons[-1])


def test_a_barrier_that_does_not_wait(golden: Golden, verdict: Any) -> None:
    result = verdict(
        Rank(0, facts={BARRIER: {"entered": [10.0, 11.0], "left": [10.3, 11.0]}}),
        Rank(1, facts={BARRIER: {"entered": [10.2, 11.2], "left": [10.3, 11.2]}}),
    )
    golden(*result.reasons)
    (check,) = (check for check in result.checks if not check.passed)
    assert check.name == "barrier"
    golden(check.detail)


def test_a_barrier_is_not_compared_between_clocks(verdict: Any) -> None:
    result = verdict(
        Rank(0, facts={BARRIER: {"entered": [10.0], "left": [10.3]}}),
        Rank(1, host="node2", facts={BARRIER: {"entered": [99.0], "left": [99.1]}}),
    )
    assert result.verdict == "passed"


def test_hosts_with_one_boot_id_share_the_clock(golden: Golden, verdict: Any) -> None:
    result = verdict(
        Rank(0, clock="b", facts={BARRIER: {"entered": [10.0], "left": [10.0]}}),
        Rank(1, clock="b", host="box", facts={BARRIER: {"entered": [10.2], "left": [10.2]}}),
    )
    golden(*result.reasons)


def test_an_exception_explains_why_the_others_stopped(golden: Golden, verdict: Any) -> None:
    error = ("ImportError", "libmpi.so.12: cannot open shared object file")
    result = verdict(
        Rank(0, stop_in=INIT, launcher_rank=0),
        Rank(1, stop_in=IMPORT, launcher_rank=1, error=error),
        code=1,
    )
    golden(*result.reasons)
    assert result.tier == "imported"


def test_the_same_exception_on_all_ranks_is_told_once(golden: Golden, verdict: Any) -> None:
    ranks = [Rank(n, stop_in=IMPORT, error=("SystemExit", "0"), pid=50 + n) for n in range(2)]
    result = verdict(*ranks, code=1)
    golden(*result.reasons)
    assert result.tier == "built"


@pytest.mark.parametrize(
    ("log", "code", "how"),
    [
        (HYDRA_CRASHED, 11, "killed by signal 11 (SIGSEGV)"),
        ("=   PID 101 RUNNING AT node1\n=   EXIT CODE: 3\n", 3, "exit code 3"),
        (
            "prterun noticed that process rank 1 with PID 101 on node node1 exited on\n"
            "signal 11 (Segmentation fault).\n",
            139,
            "killed by signal 11 (SIGSEGV)",
        ),
        ("   Process name: [prterun-node1-99@1,1]\n   Exit code:    3\n", 3, "exit code 3"),
        ("srun: error: node1: task 1: Exited with exit code 3\n", 3, "exit code 3"),
        ("srun: error: node1: task 1: Killed\n", 137, "killed by signal 9 (SIGKILL)"),
    ],
)
def test_a_death_that_the_launcher_tells_of(
    golden: Golden, verdict: Any, log: str, code: int, how: str
) -> None:
    result = verdict(Rank(0, stop_in=SMALL), Rank(1, stop_in=SMALL), log=log, code=code)
    golden(*result.reasons, how=how)
    (check,) = (check for check in result.checks if check.name == "allreduce")
    assert (check.passed, check.ranks) == (False, 0)
    golden(check.detail)


def test_a_death_that_the_launcher_does_not_tell_of(golden: Golden, verdict: Any) -> None:
    result = verdict(
        Rank(0, stop_in=INIT, launcher_rank=0), Rank(None, pid=50, stop_after=IMPORT), code=3
    )
    golden(*result.reasons)


def test_a_kill_that_may_be_hydras_own_names_nobody(golden: Golden, verdict: Any) -> None:
    result = verdict(Rank(0, stop_in=INIT), Rank(1, stop_in=INIT), log=HYDRA_KILLED, code=9)
    golden(result.reasons[0])


def test_a_kill_of_the_only_rank_that_stopped_is_no_riddle(golden: Golden, verdict: Any) -> None:
    result = verdict(Rank(0), Rank(1, stop_in=SHUTDOWN), log=HYDRA_KILLED, code=9)
    golden(*result.reasons)


def test_a_death_that_was_seen_counts_more_than_what_the_launcher_tells(
    golden: Golden, verdict: Any
) -> None:
    first, second = Rank(0, stop_in=SMALL, pid=99), Rank(1, stop_in=SMALL)
    result = verdict(first, second, log=HYDRA_CRASHED, code=11, first_gone=first.source)
    golden(*result.reasons)


def test_a_death_before_init_shows_the_log(golden: Golden, verdict: Any) -> None:
    """A library that cannot start says why on the way out, and nowhere else."""
    first = Rank(1, stop_in=INIT, launcher_rank=1)
    log = "Abort(404374800): Fatal error in internal_Init_thread: unsupported PMI version PMIx\n"
    result = verdict(Rank(0, stop_in=INIT), first, log=log, code=16, first_gone=first.source)
    golden(*result.reasons, log_strip=log.strip())


def test_of_a_long_log_beginning_and_end_are_shown(verdict: Any) -> None:
    log = "".join(f"line {number}\n-----\n" for number in range(40))
    (reason,) = verdict(code=1, log=log).reasons
    shown = [*(f"line {number}" for number in range(6)), "..."]
    shown += [f"line {number}" for number in range(34, 40)]
    assert [line.strip() for line in reason.splitlines()[2:]] == shown


def test_a_death_that_the_launcher_did_not_notice(golden: Golden, verdict: Any) -> None:
    first = Rank(0, stop_in=SMALL)
    ending = {"code": None, "timed_out": False, "first_gone": first.source}
    result = verdict(first, Rank(1, stop_in=SMALL), **ending)
    golden(*result.reasons)


def test_a_rank_that_leaves_before_its_end_although_all_checks_passed(
    golden: Golden, verdict: Any
) -> None:
    result = verdict(Rank(0), Rank(1, stop_after=SHUTDOWN))
    golden(*result.reasons)
    assert result.tier == "one rank"


def test_a_crash_keeps_the_stack_that_its_fault_handler_wrote(verdict: Any) -> None:
    rank = Rank(1, stop_in=SMALL)
    stacks = {rank.source: "Fatal Python error: Segmentation fault"}
    result = verdict(Rank(0, stop_in=SMALL), rank, log=HYDRA_CRASHED, code=11, stacks=stacks)
    assert result.stacks == {"rank 1": "Fatal Python error: Segmentation fault"}


def test_a_crash_is_told_from_the_end_that_hydra_made_of_another(
    golden: Golden, verdict: Any
) -> None:
    """hydra and who watched named rank 0, which hydra ended in the moment of the crash."""
    ended, crashed = Rank(0, stop_in=LARGE), Rank(1, stop_in=SMALL)
    stacks = {crashed.source: "Fatal Python error: Segmentation fault"}
    result = verdict(
        ended, crashed, log=HYDRA_OTHER, code=11, stacks=stacks, first_gone=ended.source
    )
    golden(*result.reasons)


def test_a_hang_of_all(golden: Golden, verdict: Any) -> None:
    ranks = [Rank(0, stop_in=LARGE), Rank(1, stop_in=LARGE)]
    stacks = {rank.source: f"stack {rank.number}" for rank in ranks}
    result = verdict(*ranks, code=None, states={}, stacks=stacks)
    golden(*result.reasons)
    assert result.stacks == {"rank 0": "stack 0", "rank 1": "stack 1"}
    assert result.tier == "imported"


def test_a_hang_names_who_is_gone_stopped_failed_and_through(golden: Golden, verdict: Any) -> None:
    ranks = [
        Rank(0, size=6, stop_in=LARGE),
        Rank(1, size=6, stop_in=SMALL),
        Rank(2, size=6, stop_in=BARRIER),
        Rank(3, size=6, stop_in=LARGE, error=("ValueError", "no")),
        Rank(4, size=6),
        Rank(5, size=6, stop_in=LARGE),
    ]
    seen = states((ranks[1], "gone"), (ranks[2], "stopped"), (ranks[4], "gone"))
    result = verdict(*ranks, code=None, states=seen, expected=expectations(ranks=6))
    golden(result.reasons[1])
    golden(result.reasons[0])


def test_a_launcher_that_does_not_end(golden: Golden, verdict: Any) -> None:
    result = verdict(Rank(0), Rank(1), code=None)
    golden(*result.reasons)
    assert result.tier == "one rank"


def test_processes_left_behind(golden: Golden, verdict: Any) -> None:
    result = verdict(Rank(0, stop_in=SMALL), Rank(1, stop_in=SMALL), left_behind=2)
    golden(*result.reasons)


def test_an_exit_code_alone_is_a_failure(golden: Golden, verdict: Any) -> None:
    result = verdict(Rank(0), Rank(1), code=137)
    golden(*result.reasons)


def test_libmpi_from_elsewhere(golden: Golden, verdict: Any) -> None:
    system = "/usr/lib/libmpi.so.40"
    ranks = [Rank(n, libraries=[system, "/m/nccl/lib/libnccl.so.2"]) for n in range(2)]
    result = verdict(*ranks)
    golden(*result.reasons)
    assert [(one.kind, one.owner) for one in result.libraries] == [
        ("nccl", "system"),
        ("mpi", "system"),
    ]
    assert verdict(expected=expectations(mpi=None)).verdict == "passed"


def test_no_libmpi_where_the_plan_has_one(golden: Golden, verdict: Any) -> None:
    ranks = [Rank(n, libraries=["/prefix/lib/libgloo.so"]) for n in range(2)]
    golden(*verdict(*ranks).reasons)


def test_a_folder_beside_the_prefix_is_not_the_prefix(verdict: Any) -> None:
    result = verdict(*(Rank(n, libraries=["/prefix2/lib/libmpi.so.12"]) for n in range(2)))
    assert result.libraries[0].owner == "system"


def test_records_of_another_run_prove_nothing(golden: Golden, verdict: Any) -> None:
    result = verdict(Rank(0, nonce="old"), Rank(1, nonce="old"))
    golden(*result.reasons)


def test_a_check_that_not_every_rank_ran_does_not_pass(
    golden: Golden, verdict: Any, tmp_path: Path
) -> None:
    verdict(Rank(0), Rank(1))
    record = tmp_path / Rank(1).source
    kept = [line for line in record.read_text().splitlines() if '"int32"' not in line]
    record.write_text("\n".join(kept) + "\n")
    result = verdict(Rank(0))
    golden(*result.reasons)


def test_what_ranks_say_differently_is_all_shown(verdict: Any, tmp_path: Path) -> None:
    verdict(Rank(0), Rank(1))
    record = tmp_path / Rank(1).source
    record.write_text(record.read_text().replace("3.11.7", "3.12.1"))
    assert verdict(Rank(0)).python == "3.11.7 / 3.12.1"


def test_text_of_a_rank_cannot_break_a_line_or_a_field(golden: Golden, verdict: Any) -> None:
    result = verdict(Rank(0), Rank(1, problems={SMALL: "a\x1b[31mb\n" + "x" * 600}))
    reason = result.reasons[0]
    golden(reason)
    assert reason.endswith("...")
    assert reason.isprintable()


def test_the_last_one_beside_a_rank_that_failed_was_ended_by_the_launcher(
    golden: Golden, verdict: Any
) -> None:
    failed = Rank(0, stop_in=SMALL, error=("OSError", "no route to host"))
    result = verdict(failed, Rank(1, stop_in=LARGE), log=HYDRA_KILLED, code=9)
    assert len(result.reasons) == 1
    golden(result.reasons[0])
    crashed = verdict(failed, Rank(1, stop_in=LARGE), log=HYDRA_CRASHED, code=11)
    golden(crashed.reasons[1])


def test_a_record_that_does_not_end_is_incomplete(golden: Golden) -> None:
    record = SimpleNamespace(
        done=[SimpleNamespace(check=name) for name in reasons.NEEDED],
        first=lambda name: name,
        ended=False,
        world=None,
        source="rank-a-0.jsonl",
    )
    names = {"rank-a-0.jsonl": "rank 0"}
    said = reasons.incomplete([record], SimpleNamespace(ranks=2), names)  # type: ignore[no-untyped-call]
    golden(*said)
