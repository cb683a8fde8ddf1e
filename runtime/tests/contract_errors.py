"""Cases of the contract: ranks that do not agree, and what ends the session."""

import os
import sys
import warnings
from typing import Any, List, Tuple

import numpy as np

import distributed_dl_training.numpy as plain
from distributed_dl_training import _collectives

from contract import only, refused
from frameworks import Framework


def in_arena(start: int) -> Any:
    """Reduce the piece of an arena that begins at ``start``."""
    arena = np.ones(8, dtype="f4")
    piece = arena[start : start + 4]
    place = _collectives.Place("arena", arena, start, plain._ARRAYS.read(piece))
    adapter: Any = plain._ARRAYS
    options = {"in_place": True, "place": place}
    handle = _collectives.allreduce(adapter, [piece], "a", plain.Sum, (1.0, 1.0), **options)
    return handle.synchronize()


def case_mismatch(t: Framework) -> None:
    """One rank asks for something else: the same error everywhere, and life goes on."""
    hvd = t.hvd
    last = hvd.size() - 1
    array = np.ones((2, 3), dtype="f4")
    x = t.tensor(array)
    y, z, flat = t.tensor(array.astype("f8")), t.tensor(array.T), t.tensor(array.ravel())
    two, three = [x, x], [x, x, x]
    usual = (hvd.allreduce, (x,), {"name": "a"})
    cast = (hvd.broadcast, (x, 0), {})
    gather = (hvd.allgather, (x,), {})
    group = (hvd.grouped_allreduce, (two,), {"name": "g"})
    every = (hvd.alltoall, (t.tensor(np.ones((2 * (last + 1), 3), dtype="f4")),), {"name": "t"})
    rows = every[1][0]
    scatter = (hvd.reducescatter, (x,), {"name": "s", "op": hvd.Sum})
    pairs: List[Tuple[Any, Any, str]] = [
        (usual, (hvd.allreduce, (x,), {"name": "b"}), "name='b'"),
        (usual, (hvd.allreduce, (x,), {}), "allreduce(dtype="),
        (usual, (hvd.allreduce, (y,), {"name": "a"}), f"dtype={t.place}float64"),
        (usual, (hvd.allreduce, (z,), {"name": "a"}), "shape=(3, 2)"),
        (usual, (hvd.allreduce, (flat,), {"name": "a"}), "shape=(6,)"),
        (usual, (hvd.allreduce, (x,), {"name": "a", "op": hvd.Max}), "op=Max"),
        (usual, (hvd.allreduce, (x,), {"name": "a", "op": "Max"}), "op=str"),
        (usual, (hvd.allreduce, (x,), {"name": "a", "prescale_factor": 2}), "prescale=2.0"),
        (usual, (hvd.allreduce, (x,), {"name": "a", "postscale_factor": 3}), "postscale=3.0"),
        (usual, (hvd.allgather, (x,), {"name": "a"}), "allgather(name='a'"),
        (usual, (hvd.broadcast, (x, 0), {"name": "a"}), "broadcast(name='a'"),
        (usual, (hvd.grouped_allreduce, ([x],), {"name": "a"}), "shape=((2, 3),)"),
        (usual, (hvd.barrier, (), {}), "barrier()"),
        (cast, (hvd.broadcast, (x, last), {}), "root=" + str(last)),
        (cast, (hvd.broadcast, (x, 99), {}), "root=99"),
        (cast, (hvd.broadcast, (x, None), {}), "refused: TypeError"),
        (gather, (hvd.allgather, (t.tensor(array[:, :2]),), {}), "shape=(*, 2)"),
        (gather, (hvd.allgather, (t.tensor(array[0, 0]),), {}), "shape=()) refused: ValueError"),
        (gather, (hvd.alltoall, (x, [2] + [0] * last), {}), "alltoall("),
        (group, (hvd.grouped_allreduce, (three,), {"name": "g"}), "(2, 3), (2, 3), (2, 3)"),
        (group, (hvd.grouped_allreduce, ([],), {"name": "g"}), "shape=((0,),), op="),
        (every, (hvd.alltoall, (rows, [1] * (last + 1)), {"name": "t"}), "refused: ValueError"),
        (every, (hvd.alltoall, (rows[:, :2],), {"name": "t"}), "shape=(*, 2)"),
        (scatter, (hvd.reducescatter, (x,), {"name": "s", "op": hvd.Average}), "op=Average"),
        (scatter, (hvd.reducescatter, (z,), {"name": "s", "op": hvd.Sum}), "shape=(3, 2)"),
        ((in_arena, (0,), {}), (in_arena, (4,), {}), "place=arena[4]"),
        ((in_arena, (0,), {}), (hvd.allreduce, (x[0],), {"name": "a"}), "shape=(3,)"),
    ]
    if t.name == "numpy":
        nothing, mixed = ([None],), ([x, y],)
        pairs.append((usual, (hvd.allreduce, nothing, {"name": "a"}), "refused: TypeError"))
        pairs.append((group, (hvd.grouped_allreduce, mixed, {"name": "g"}), "refused: TypeError"))
    if last and (hvd.engine_name() != "mpi" or hvd.mpi_threads_supported()):
        sets = [[0], [last]]
        add = hvd.add_process_set
        pairs.append(((add, sets[:1], {}), (add, sets[1:], {}), f"ranks=[{last}]"))
    for common, odd, mark in pairs if last else []:
        call, arguments, options = odd if hvd.rank() == last else common
        text = refused(plain.MismatchError, call, *arguments, **options)
        line = [one for one in text.splitlines() if mark in one and "rank" in one]
        assert line and line[-1].startswith(f"  rank {last}: "), (mark, text)
        others = f"  ranks 0-{last - 1}: " if last > 1 else "  rank 0: "
        assert others in text, text
        t.same(hvd.allreduce(x, name="after"), array)
        t.same(hvd.allreduce(x), array)


@only(framework="cuda")
def case_one_rank_has_it_on_the_host(t: Framework) -> None:
    """Where tensors stay on devices all ranks must have theirs there; else it makes no difference.

    The last rank gets the result where its own tensor lies.
    """
    hvd = t.hvd
    odd = hvd.size() > 1 and hvd.rank() == hvd.size() - 1
    here = t.tensor(np.ones(3, dtype="f4"))
    x = here.cpu() if odd else here
    if t.place and hvd.size() > 1:
        text = refused(plain.MismatchError, hvd.allreduce, x, name="lies")
        assert "dtype=cuda.float32" in text and "dtype=float32" in text, text
    else:
        got = hvd.allreduce(x, name="lies", op=hvd.Sum)
        assert got.device == x.device and got.tolist() == [hvd.size()] * 3
    t.same(hvd.allreduce(here, name="after"), np.ones(3, dtype="f4"))


def case_mismatch_of_several(t: Framework) -> None:
    """Much is under way when two ranks do not agree: only what does not fit fails."""
    hvd = t.hvd
    size, me = hvd.size(), hvd.rank()
    x = t.tensor(np.ones(3, dtype="f4"))
    for _ in range(3):
        good = [hvd.allreduce_async(x, name=f"good{n}", op=hvd.Sum) for n in range(10)]
        wrong = t.tensor(np.ones(3 + (me == size - 1), dtype="f4"))
        bad = hvd.allreduce_async(wrong, name="bad", op=hvd.Sum)
        more = [hvd.allreduce_async(x, name=f"more{n}", op=hvd.Sum) for n in range(10)]
        if size > 1:
            text = refused(plain.MismatchError, hvd.synchronize, bad)
            # CycleRequests for again it is raised again, with a traceback of its own.
            assert refused(plain.MismatchError, hvd.synchronize, bad) == text
        for handle in good + more:
            t.same(hvd.synchronize(handle), np.full(3, size, dtype="f4"))


def case_refused_everywhere(t: Framework) -> None:
    """What is wrong on all ranks is told as what it is, with its cause, and costs nothing."""
    hvd = t.hvd
    x = t.tensor(np.ones(2, dtype="i4"))
    for _ in range(3):
        assert "op=Sum" in refused(TypeError, hvd.allreduce, x, name="integers", op=hvd.Average)
    if hvd.size() > 1:
        mine = x if hvd.rank() == 0 else t.tensor(np.ones(2, dtype="f4"))
        try:
            hvd.allreduce(mine, name="integers", op=hvd.Average)
        except plain.MismatchError as error:
            assert isinstance(error.__cause__, TypeError) == (hvd.rank() == 0)
            assert len(error.requests) == hvd.size()
    what = (lambda: None) if hvd.rank() == 0 else None  # a root that cannot be pickled
    kind = plain.MismatchError if hvd.size() > 1 else None
    try:
        hvd.broadcast_object(what, root_rank=0)
    except Exception as error:
        assert kind is None or type(error) is kind, repr(error)
    else:
        raise AssertionError("no error")
    hvd.barrier()


def case_leave_early(t: Framework) -> None:
    """A rank that leaves closes the session of those that would wait for it."""
    hvd = t.hvd
    if hvd.size() == 1:
        return
    sets = [hvd.add_process_set([0, 1])] if hvd.size() > 2 else []
    if hvd.rank() == 0:
        hvd.shutdown()
    else:
        try:
            hvd.allreduce(t.tensor(1.0), name="late")
        except plain.MismatchError as error:
            assert "rank 0: shutdown()" in str(error), error
            assert error.requests[0] == "shutdown()"
        else:
            raise AssertionError("no MismatchError")
        assert not hvd.is_initialized()
        try:
            hvd.allreduce(t.tensor(1.0), name="later")
        except (plain.MismatchError, plain.NotInitializedError):
            pass
    assert len(sets) < 2 and not hvd.is_initialized()
    hvd.init()
    t.same(hvd.allreduce(t.tensor(1.0)), np.array(1.0))


def case_fork(t: Framework) -> None:
    """A forked child knows its parent's ranks and cannot talk to them; its end is its own.

    Horovod's state is memory as well: horovod/common/basics.py:226 of 0.28.1 reads it in a fork.
    """
    hvd = t.hvd
    facts = [hvd.rank(), hvd.size(), hvd.local_rank(), hvd.cross_size(), hvd.engine_name()]
    handle = hvd.allreduce_async(t.tensor(1.0), name="across a fork")
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MPI has threads, and Python >= 3.12 tells
        child = os.fork()
    if child == 0:
        code = 1
        try:
            hvd.barrier()
        except plain.NotInitializedError:
            mine = [hvd.rank(), hvd.size(), hvd.local_rank(), hvd.cross_size(), hvd.engine_name()]
            code = 0 if hvd.is_initialized() and mine == facts else 2
            place = hvd.global_process_set.rank(), hvd.global_process_set.size()
            code = code if place == tuple(facts[:2]) else 3
        try:
            if not handle.done:
                hvd.synchronize(handle)
        except plain.NotInitializedError:
            pass
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    t.same(hvd.synchronize(handle), np.array(1.0))
    hvd.barrier()
