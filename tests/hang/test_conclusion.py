"""Who waits for whom, from stacks as py-spy gives them."""

from __future__ import annotations

from typing import Any

import pytest

from envbuilder.hang.conclusion import conclude, place_of
from envbuilder.hang.stacks import read_stack
from envbuilder.hang.values import HangRank, StackFrame
from envbuilder.process import Finished
from tests.golden_texts import Golden

SITE = "/env/lib/python3.11/site-packages"


def frames(*texts: str) -> tuple[StackFrame, ...]:
    """Return frames, innermost first: ``function file line``; line 0 is native."""
    parts = (text.rsplit(" ", 2) for text in texts)
    return tuple(StackFrame(function=a, file=b, line=int(c)) for a, b, c in parts)


BARRIER = frames("sched_yield libc.so.6 0", "PMPI_Barrier libmpi.so 0", "save /me/a.py 9")
REDUCE = frames("PMPI_Allreduce_c libmpi.so 0", "step /me/a.py 5", "main /me/a.py 20")
SLEEP = frames("read_batch /me/data.py 3", "main /me/a.py 18")


def rank(number: int, stack: tuple[StackFrame, ...], **more: Any) -> HangRank:
    call, at = place_of(stack)
    given = {"state": "busy", "cpu": 1.0, "moved": False, **more}
    return HangRank(rank=number, pid=100 + number, call=call, at=at, frames=stack, **given)


@pytest.mark.parametrize(
    ("stack", "call", "line"),
    [
        (BARRIER, "MPI_Barrier", 9),
        (REDUCE, "MPI_Allreduce", 5),
        (SLEEP, None, 3),
        # What the program calls is told, not the MPI below it.
        (
            frames(
                "PMPI_Allreduce libmpi.so 0",
                f"wait {SITE}/horovod/torch/mpi_ops.py 7",
                f"synchronize {SITE}/horovod/torch/mpi_ops.py 90",
                f"step {SITE}/torch/optim/sgd.py 4",
                "train /me/a.py 31",
            ),
            "horovod's synchronize",
            31,
        ),
        (
            frames(
                f"all_reduce {SITE}/torch/distributed/distributed_c10d.py 2",
                f"_exception_logger.<locals>.wrapper {SITE}/torch/distributed/c10d_logger.py 3",
                "train /me/a.py 6",
            ),
            "torch.distributed's all_reduce",
            6,
        ),
        # Nothing of a program of one's own is in it: the innermost line.
        (frames(f"load {SITE}/numpy/io.py 8", f"go {SITE}/click/core.py 5"), None, 8),
        # MPI's own point-to-point sends return alone; those that only wait for a message do not.
        (frames("PMPI_Send libmpi.so 0", "send /me/a.py 4"), None, 4),
        (frames("PMPI_Recv libmpi.so 0", "receive /me/a.py 4"), "MPI_Recv", 4),
        ((), None, None),
    ],
)
def test_where_a_rank_is(stack: tuple[StackFrame, ...], call: str | None, line: int | None) -> None:
    found = place_of(stack)
    assert found.call == call
    assert (found.at and found.at.line) == line


def test_a_stopped_rank_is_the_one() -> None:
    told = conclude([rank(0, REDUCE), rank(1, REDUCE, state="stopped"), rank(2, BARRIER)], 3)
    assert (told.verdict, told.culprits) == ("stopped", (1,))
    assert "kill -CONT 101" in told.hint


def test_a_rank_in_no_collective_is_waited_for(golden: Golden) -> None:
    told = conclude([rank(0, REDUCE), rank(1, SLEEP, state="asleep", cpu=0), rank(2, REDUCE)], 3)
    assert (told.verdict, told.culprits) == ("elsewhere", (1,))
    golden(told.says, told.hint)


def test_the_fewer_in_another_collective_are_named(golden: Golden) -> None:
    told = conclude([*(rank(each, REDUCE) for each in (0, 2, 3)), rank(1, BARRIER)], 4)
    assert (told.verdict, told.culprits) == ("apart", (1,))
    golden(told.says, told.hint)


def test_one_collective_from_two_lines_is_told_apart() -> None:
    other = frames("PMPI_Allreduce_c libmpi.so 0", "log_loss /me/a.py 40")
    told = conclude([rank(0, REDUCE), rank(1, REDUCE), rank(2, other)], 3)
    assert (told.verdict, told.culprits) == ("apart", (2,))


def test_ranks_that_are_not_here_are_missing(golden: Golden) -> None:
    told = conclude([rank(0, REDUCE), rank(2, REDUCE)], 4)
    assert (told.verdict, told.culprits) == ("missing", (1, 3))
    golden(told.says, told.hint)


def test_all_in_one_place_blames_no_rank() -> None:
    told = conclude([rank(0, REDUCE), rank(1, REDUCE)], 2)
    assert (told.verdict, told.culprits) == ("together", ())
    assert "envbuild doctor" in told.hint


def test_work_is_no_hang(golden: Golden) -> None:
    told = conclude([rank(0, SLEEP), rank(1, SLEEP)], 2)
    assert (told.verdict, told.culprits) == ("together", ())
    golden(told.says, told.hint)
    told = conclude([rank(0, REDUCE, moved=True), rank(1, BARRIER)], 2)
    assert (told.verdict, told.culprits) == ("moving", ())


def test_without_stacks_nothing_is_guessed() -> None:
    told = conclude([rank(0, ()), rank(1, ())], 2)
    assert (told.verdict, told.culprits) == ("unseen", ())


@pytest.mark.parametrize(
    ("text", "unseen"),
    [
        ("no json", "the output of py-spy is not a stack"),
        ("[]", "the output of py-spy is not a stack"),
        ('[{"os_thread_id": 7, "frames": [{"name": "f"}]}]', "the output of py-spy is not a stack"),
        ('[{"os_thread_id": 7, "frames": []}]', None),
        (
            '[{"os_thread_id": 7, "frames": [{"name": "a\\nb", "filename": "x", "line": 1}]}]',
            None,
        ),
    ],
)
def test_what_py_spy_writes_is_not_believed(text: str, unseen: str | None) -> None:
    found = read_stack(
        "py-spy", 7, lambda words: Finished(tuple(words), 0, text, ""), stopped=False
    )
    assert (found.frames, found.unseen) == ((), unseen)


def test_native_frames_are_asked_for_first_and_refusals_are_told() -> None:
    asked: list[list[str]] = []

    def refuse(words: list[str]) -> Finished:
        asked.append(words[5:])
        return Finished(tuple(words), 1, "", "Error: Permission Denied\nmore")

    assert read_stack("py-spy", 7, refuse, stopped=False).unseen == "Permission Denied"
    assert asked == [["--native"], [], ["--nonblocking"]]
    asked.clear()
    # py-spy cannot hold what is held already.
    read_stack("py-spy", 7, refuse, stopped=True)
    assert asked == [["--nonblocking"]]
