"""What carried the data: read from records, and held against what the proof asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from smoke_ranks import LIBMPI, Rank, expectations, judged

from envbuilder.model.evidence import SmokeResult
from envbuilder.target_tools.proving.judge import Outcome
from tests.golden_texts import Golden

NEGOTIATION = ("negotiation", "mpi", "hvd.mpi_enabled() is true")
MPI = ("allreduce", "mpi", "Horovod's timeline: MPI_ALLREDUCE 9 times")
GLOO = ("allreduce", "gloo", "Horovod's timeline: GLOO_ALLREDUCE 9 times")
NCCL = ("allreduce", "nccl", "Horovod's timeline: NCCL_ALLREDUCE 9 times")


@pytest.fixture
def verdict(tmp_path: Path) -> Any:
    def of(*claims: Any, left_out: Any = (), libraries: Any = (LIBMPI,), **changed: Any) -> Any:
        for number in range(2):
            told = claims if number == 0 else claims[:1]
            Rank(
                number, claims=told, left_out=left_out, libraries=libraries, api="horovod.torch"
            ).write(tmp_path)
        expected = expectations(**{"api": "horovod.torch", **changed})
        ending = Outcome(code=0, timed_out=False, seconds=1.0)
        return judged(tmp_path, ending, expected)

    return of


@pytest.mark.parametrize(
    ("asked", "claims"),
    [
        ("mpi", (NEGOTIATION, MPI)),
        ("gloo", (GLOO,)),
        ("nccl", (NEGOTIATION, NCCL)),
        # Hierarchical: NCCL inside a node, MPI between nodes.
        ("nccl", (NEGOTIATION, NCCL, MPI)),
        (None, (GLOO,)),
        (None, ()),
    ],
)
def test_what_was_asked_for_carried_it(verdict: Any, asked: str | None, claims: Any) -> None:
    result: SmokeResult = verdict(*claims, transport=asked)
    assert (result.verdict, result.reasons) == ("passed", ())
    assert (result.api, result.transport) == ("horovod.torch", asked)
    told = {(each.operation, each.transport, each.source) for each in result.carried}
    assert told == set(claims)


@pytest.mark.parametrize(
    ("asked", "claims", "reason"),
    [
        ("mpi", (GLOO,), "gloo (Horovod's timeline: GLOO_ALLREDUCE 9 times)"),
        ("nccl", (NEGOTIATION, MPI), "mpi (Horovod's timeline: MPI_ALLREDUCE 9 times)"),
        (
            "mpi",
            (NEGOTIATION, NCCL, MPI),
            "mpi (Horovod's timeline: MPI_ALLREDUCE 9 times); "
            "nccl (Horovod's timeline: NCCL_ALLREDUCE 9 times)",
        ),
        ("gloo", (NEGOTIATION, MPI), "mpi (Horovod's timeline: MPI_ALLREDUCE 9 times)"),
    ],
)
def test_something_else_carried_it(
    golden: Golden, verdict: Any, asked: str, claims: Any, reason: str
) -> None:
    result = verdict(*claims, transport=asked)
    golden(*result.reasons, asked=asked, reason=reason)
    assert (result.verdict, result.tier) == ("failed", "one rank")


def test_to_negotiate_is_not_to_carry(golden: Golden, verdict: Any) -> None:
    result = verdict(NEGOTIATION, transport="mpi")
    golden(*result.reasons)


def test_without_mpi_no_libmpi_need_be_loaded(golden: Golden, verdict: Any) -> None:
    assert verdict(GLOO, transport="gloo", libraries=()).verdict == "passed"
    golden(*verdict(MPI, transport="mpi", libraries=()).reasons)


def test_a_wrong_libmpi_is_wrong_whatever_carries(golden: Golden, verdict: Any) -> None:
    result = verdict(GLOO, transport="gloo", libraries=("/usr/lib/libmpi.so.40",))
    golden(*result.reasons)


def test_ranks_that_talked_through_something_else(golden: Golden, verdict: Any) -> None:
    result = verdict(MPI, transport="mpi", api="mpi4py")
    golden(*result.reasons)


def test_what_was_left_out_is_told_once_and_is_no_failure(verdict: Any) -> None:
    gaps = (("barrier", None, None), ("allreduce", "float16", None))
    result = verdict(MPI, transport="mpi", left_out=gaps)
    assert result.verdict == "passed"
    assert [(each.name, each.dtype, each.why) for each in result.left_out] == [
        ("barrier", None, "it cannot"),
        ("allreduce", "float16", "it cannot"),
    ]


def test_ranks_alone_without_mpi_were_not_told_their_place(golden: Golden, tmp_path: Path) -> None:
    for pid in (7, 8):
        Rank(0, size=1, pid=pid, libraries=(), claims=(GLOO,)).write(tmp_path)
    ending = Outcome(code=0, timed_out=False, seconds=1.0)
    result = judged(tmp_path, ending, expectations(transport="gloo", mpi=None))
    golden(result.reasons[0])


HOROVODRUN = """\
Process 1 exit with status code 139.
Terminating remaining workers after failure of Process 1.
Process 0 exit with status code 143.
"""
TORCHRUN = """\
E1121 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: -11) local_rank: 1 \
(pid: 101) of binary: /prefix/bin/python
"""


@pytest.mark.parametrize(
    ("log", "code", "how"),
    [
        (HOROVODRUN, 1, "exit code 139 (signal 11 (SIGSEGV))"),
        (TORCHRUN, 1, "signal 11 (SIGSEGV)"),
    ],
)
def test_a_death_as_these_launchers_tell_it(
    golden: Golden, tmp_path: Path, log: str, code: int, how: str
) -> None:
    for number in range(2):
        Rank(number, stop_in=("allreduce", "int32", 4)).write(tmp_path)
    ending = Outcome(code=code, timed_out=False, seconds=1.0, log=log)
    result = judged(tmp_path, ending, expectations())
    golden(*result.reasons, how=how)


def test_a_death_comes_before_the_errors_that_follow_from_it(
    golden: Golden, tmp_path: Path
) -> None:
    place = ("allreduce", "int32", 4)
    dead = Rank(1, stop_in=place)
    Rank(0, stop_in=place, error=("RuntimeError", "Connection reset by peer")).write(tmp_path)
    dead.write(tmp_path)
    seen = {"first_gone": dead.source, "log": TORCHRUN}
    for changed, first in ((seen, "rank 1 died in"), ({"log": TORCHRUN}, "rank 0 failed in")):
        ending = Outcome(code=1, timed_out=False, seconds=1.0, **changed)
        result = judged(tmp_path, ending, expectations())
        golden(result.reasons[0], first=first)
        assert len(result.reasons) == 2
