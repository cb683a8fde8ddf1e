"""The contract of the collectives, as an MPI program: every rank runs every case, in order.

    mpiexec -n 4 python contract.py DIRECTORY

Each rank appends the cases it has passed to DIRECTORY/<rank>.  The first failure ends the job.
"""

import functools
import os
import sys
import time
import warnings
from typing import Any, Callable, Dict, List, Tuple

import numpy as np

import distributed_dl_training.numpy as hvd
from distributed_dl_training import _mpi

REDUCIBLE = "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16 longlong ulonglong".split()
MOVABLE = REDUCIBLE + ["g", "U3", "S2", "M8[ns]", "m8[s]", "i4,f8"]
COMBINE: Dict[hvd.Op, Callable[[Any, Any], Any]] = {
    hvd.Sum: np.add,
    hvd.Average: np.add,
    hvd.Product: np.multiply,
    hvd.Min: np.minimum,
    hvd.Max: np.maximum,
}


def sample(rank: int, dtype: str, shape: Tuple[int, ...]) -> Any:
    """Return an array whose values differ by rank and are exact in every dtype."""
    count = int(np.prod(shape, dtype=int))
    if np.dtype(dtype).names:
        values = np.zeros(count, dtype=dtype)
        for field in values.dtype.names or ():
            values[field] = np.arange(count) + rank
        return values.reshape(shape)
    values = (np.arange(count) * 3 + rank * 2) % 7
    if np.dtype(dtype).kind == "c":
        return (values + 1j * ((values + rank) % 3)).astype(dtype).reshape(shape)
    if np.dtype(dtype).kind == "b":
        return (values % 2 == 0).reshape(shape)
    return values.astype(dtype).reshape(shape)


def allowed(dtype: str, op: hvd.Op) -> bool:
    kind = np.dtype(dtype).kind
    return kind in {hvd.Average: "fc", hvd.Sum: "iufc", hvd.Product: "iufc"}.get(op, "biuf")


def same(got: Any, want: Any) -> None:
    """Demand equal values, shape and dtype, NaN counted equal to itself."""
    assert isinstance(got, np.ndarray), type(got)
    assert got.dtype == want.dtype, (got.dtype, want.dtype)
    assert got.dtype.isnative and got.flags.c_contiguous
    assert got.shape == want.shape, (got.shape, want.shape)
    if want.dtype.kind in "fc":
        np.testing.assert_array_equal(got, want)
    else:
        assert got.tobytes() == np.ascontiguousarray(want).tobytes(), (got, want)


def refused(kind: type, function: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Demand the same error of exactly this type on every rank; return its text."""
    from mpi4py import MPI

    text = ""
    try:
        function(*arguments, **options)
    except Exception as error:
        assert type(error) is kind, repr(error)
        text = str(error)
    else:
        raise AssertionError(f"no {kind.__name__}")
    texts = MPI.COMM_WORLD.allgather(text)
    assert kind is not hvd.MismatchError or len(set(texts)) == 1, texts
    return text


def case_before_init() -> None:
    assert not hvd.is_initialized()
    for call in (hvd.size, hvd.rank, hvd.local_rank, hvd.barrier, hvd.mpi_threads_supported):
        try:
            call()
        except hvd.NotInitializedError:
            pass
        else:
            raise AssertionError(call)
    hvd.shutdown()
    hvd.init()
    assert hvd.is_initialized()


def case_ranks() -> None:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    assert (hvd.rank(), hvd.size()) == (world.rank, world.size)
    # Tests run on one machine, so all ranks share its memory.
    assert (hvd.local_rank(), hvd.local_size()) == (world.rank, world.size)
    assert hvd.mpi_threads_supported() == (MPI.Query_thread() == MPI.THREAD_MULTIPLE)


def case_init_again() -> None:
    from mpi4py import MPI

    hvd.init()
    hvd.init(comm=MPI.COMM_WORLD)
    hvd.init(comm=list(range(hvd.size())))
    for comm, kind in ((MPI.COMM_NULL, ValueError), ("world", TypeError)):
        refused(kind, hvd.init, comm=comm)
    if hvd.size() > 1:
        refused(ValueError, hvd.init, comm=MPI.COMM_SELF)
        refused(ValueError, hvd.init, comm=list(reversed(range(hvd.size()))))
    same(hvd.allreduce(1.0, op=hvd.Sum), np.array(float(hvd.size())))


def case_allreduce_dtypes() -> None:
    for dtype in REDUCIBLE:
        for op in hvd.Op:
            for shape in ((5,), (2, 3, 2), (), (0,), (3, 0, 2)):
                mine = sample(hvd.rank(), dtype, shape)
                if not allowed(dtype, op):
                    refused(TypeError, hvd.allreduce, mine, op=op)
                    continue
                parts = [sample(rank, dtype, shape) for rank in range(hvd.size())]
                # From float32 up, so that numpy rounds once as well.
                wide = "f4" if dtype == "f2" else dtype
                want = functools.reduce(COMBINE[op], [np.asarray(p, dtype=wide) for p in parts])
                if op is hvd.Average:
                    want = np.asarray(np.divide(want, hvd.size()), dtype=wide)
                before = mine.copy()
                same(hvd.allreduce(mine, name="x", op=op), np.asarray(want).astype(dtype))
                same(mine, before)
    for dtype in ("g", "G", "U3", "M8[s]", "O"):
        refused(TypeError, hvd.allreduce, np.zeros(2, dtype=dtype), op=hvd.Max)


def case_layouts() -> None:
    base = np.arange(24.0).reshape(4, 6) + hvd.rank()
    shift = sum(range(hvd.size()))
    total = np.arange(24.0).reshape(4, 6) * hvd.size() + shift
    for take in (
        lambda a: a[::2, ::-3],
        lambda a: a.T,
        lambda a: np.asfortranarray(a),
        lambda a: a[1],
        lambda a: a[1, 2],
        lambda a: a.tolist(),
    ):
        want = np.ascontiguousarray(np.asarray(take(total)))
        want = want.reshape(np.shape(take(total)))
        same(hvd.allreduce(take(base), op=hvd.Sum), want)
        swapped = np.asarray(take(base)).astype(">f8")
        swapped.setflags(write=False)
        same(hvd.allreduce(swapped, op=hvd.Sum), want)
        first = np.array(take(base - hvd.rank()), order="C")
        same(hvd.broadcast(swapped, root_rank=0), first)
        if first.ndim:
            gathered = np.concatenate([first + rank for rank in range(hvd.size())])
            same(hvd.allgather(swapped), gathered)
    # Equal in meaning, so no mismatch, though the bytes differ from rank to rank.
    mixed = np.ones(3, dtype="<i4" if hvd.rank() % 2 else ">i4")
    same(hvd.allreduce(mixed, op=hvd.Sum), np.full(3, hvd.size(), dtype="i4"))
    same(hvd.allreduce(2.5), np.array(2.5))


def case_scaling() -> None:
    size = hvd.size()
    x = np.full(3, 2.0, dtype="f4")
    same(hvd.allreduce(x, op=hvd.Sum, prescale_factor=0.5), np.full(3, size, dtype="f4"))
    same(hvd.allreduce(x, postscale_factor=4), np.full(3, 8, dtype="f4"))
    same(hvd.allreduce(x, op=hvd.Max, prescale_factor=-1), np.full(3, -2, dtype="f4"))
    same(hvd.allreduce(x.astype("c8"), prescale_factor=0.5), np.ones(3, dtype="c8"))
    # In float16 alone the first factor would overflow.
    half = np.full(2, 30000, dtype="f2")
    got = hvd.allreduce(half, prescale_factor=64, postscale_factor=1 / 64)
    same(got, half)
    refused(TypeError, hvd.allreduce, np.ones(2, dtype="i4"), op=hvd.Sum, prescale_factor=2)
    refused(TypeError, hvd.allreduce, x, postscale_factor="much")


def case_float16_rounds_once() -> None:
    mine = np.array([2048 if hvd.rank() == 0 else 1], dtype="f2")  # 2048 + 1 rounds to 2048
    want = np.array([2048 + hvd.size() - 1], dtype="f4").astype("f2")
    same(hvd.allreduce(mine, op=hvd.Sum), want)


def case_nan() -> None:
    for dtype in ("f2", "f4", "f8"):
        for holder in range(hvd.size()):
            mine = np.array([1.0, hvd.rank(), -np.inf], dtype=dtype)
            if hvd.rank() == holder:
                mine[0] = np.nan
            top = float(hvd.size() - 1)
            same(hvd.allreduce(mine, op=hvd.Max), np.array([np.nan, top, -np.inf], dtype=dtype))
            same(hvd.allreduce(mine, op=hvd.Min), np.array([np.nan, 0, -np.inf], dtype=dtype))


def case_allgather() -> None:
    def rows(kind: str, rank: int) -> int:
        ragged = {"equal": 2, "rising": rank, "falling": 3 * (hvd.size() - 1 - rank), "none": 0}
        return ragged[kind]

    for dtype in MOVABLE:
        for kind in ("equal", "rising", "falling", "none"):
            for trailing in ((), (3,), (2, 2), (0,)):
                parts = [sample(r, dtype, (rows(kind, r),) + trailing) for r in range(hvd.size())]
                before = parts[hvd.rank()].copy()
                same(hvd.allgather(parts[hvd.rank()], name="rows"), np.concatenate(parts))
                same(parts[hvd.rank()], before)
    refused(ValueError, hvd.allgather, 1.0)
    refused(TypeError, hvd.allgather, np.array([None]))


def case_broadcast() -> None:
    for root in range(hvd.size()):
        for dtype in MOVABLE:
            for shape in ((4,), (2, 3), (), (0,), (2, 0)):
                mine = sample(hvd.rank(), dtype, shape)
                before = mine.copy()
                same(hvd.broadcast(mine, root, name="b"), sample(root, dtype, shape))
                same(mine, before)
    for root in (-1, hvd.size(), 10**30):
        assert str(root) in refused(ValueError, hvd.broadcast, np.ones(2), root_rank=root)
    refused(TypeError, hvd.broadcast, np.ones(2), root_rank=0.5)


def case_long_messages() -> None:
    """With the limit at 24 bytes, every path that splits a message is taken."""
    longest, _mpi.LONGEST = _mpi.LONGEST, 24
    try:
        for name in ("case_layouts", "case_nan", "case_mismatch"):
            CASES[name]()
        for dtype in ("i1", "f8", "c16"):
            parts = [sample(r, dtype, (7 + r, 2)) for r in range(hvd.size())]
            same(hvd.allgather(parts[hvd.rank()]), np.concatenate(parts))
            same(hvd.broadcast(sample(hvd.rank(), dtype, (9,)), 0), sample(0, dtype, (9,)))
            total = sum(sample(r, dtype, (9,)) for r in range(hvd.size())).astype(dtype)
            same(hvd.allreduce(sample(hvd.rank(), dtype, (9,)), op=hvd.Sum), total)
    finally:
        _mpi.LONGEST = longest


def case_barrier() -> None:
    hvd.barrier()
    started = time.monotonic()
    if hvd.rank() == hvd.size() - 1:
        time.sleep(0.5)
    hvd.barrier()
    assert time.monotonic() - started > 0.4


def case_mismatch() -> None:
    """One rank asks for something else: the same error everywhere, and life goes on."""
    x = np.ones((2, 3), dtype="f4")
    last = hvd.size() - 1
    usual = (hvd.allreduce, (x,), {"name": "a"})
    pairs: List[Tuple[Any, Any, str]] = [
        (usual, (hvd.allreduce, (x,), {"name": "b"}), "name='b'"),
        (usual, (hvd.allreduce, (x,), {}), "allreduce(dtype="),
        (usual, (hvd.allreduce, (x.astype("f8"),), {"name": "a"}), "dtype=float64"),
        (usual, (hvd.allreduce, (x.T,), {"name": "a"}), "shape=(3, 2)"),
        (usual, (hvd.allreduce, (x.ravel(),), {"name": "a"}), "shape=(6,)"),
        (usual, (hvd.allreduce, (x,), {"name": "a", "op": hvd.Max}), "op=Max"),
        (usual, (hvd.allreduce, (x,), {"name": "a", "op": "Max"}), "op=str"),
        (usual, (hvd.allreduce, (x,), {"name": "a", "prescale_factor": 2}), "prescale=2.0"),
        (usual, (hvd.allreduce, ([None],), {"name": "a"}), "refused: TypeError"),
        (usual, (hvd.allgather, (x,), {"name": "a"}), "allgather(name='a'"),
        (usual, (hvd.broadcast, (x, 0), {"name": "a"}), "broadcast(name='a'"),
        (usual, (hvd.barrier, (), {}), "barrier()"),
        ((hvd.broadcast, (x, 0), {}), (hvd.broadcast, (x, last), {}), "root=" + str(last)),
        ((hvd.broadcast, (x, 0), {}), (hvd.broadcast, (x, 99), {}), "root=99"),
        ((hvd.broadcast, (x, 0), {}), (hvd.broadcast, (x, None), {}), "refused: TypeError"),
        ((hvd.allgather, (x,), {}), (hvd.allgather, (x[:, :2],), {}), "shape=(*, 2)"),
        ((hvd.allgather, (x,), {}), (hvd.allgather, (x[0, 0],), {}), "shape=()"),
    ]
    if hvd.size() == 1:
        return
    for common, odd, mark in pairs:
        call, arguments, options = odd if hvd.rank() == last else common
        text = refused(hvd.MismatchError, call, *arguments, **options)
        line = [one for one in text.splitlines() if mark in one]
        assert len(line) == 1 and line[0].startswith(f"  rank {last}: "), text
        others = f"  ranks 0-{last - 1}: " if last > 1 else "  rank 0: "
        assert others in text, text
        same(hvd.allreduce(x, name="after"), x)


def case_subcommunicators() -> None:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    hvd.shutdown()
    color = world.rank % 2
    sub = world.Split(color=color, key=-world.rank)  # ranks in reverse order
    hvd.init(comm=sub)
    assert (hvd.rank(), hvd.size()) == (sub.rank, sub.size)
    members = [rank for rank in range(world.size) if rank % 2 == color]
    request = sub.isend("mine", dest=(sub.rank + 1) % sub.size, tag=0)  # traffic of the program
    same(hvd.allreduce(float(world.rank), op=hvd.Sum), np.array(float(sum(members))))
    assert sub.recv(source=(sub.rank - 1) % sub.size, tag=0) == "mine"
    request.wait()
    same(hvd.allgather([world.rank]), np.array(members[::-1]))
    for _ in range(color * 3):  # the groups need not keep in step with each other
        hvd.barrier()
    if sub.size < world.size:
        refused(ValueError, hvd.init)
    sub.Free()  # ours is a copy
    same(hvd.broadcast(world.rank, 0), np.array(members[-1]))
    hvd.shutdown()
    assert not hvd.is_initialized()

    half = list(range((world.size + 1) // 2))
    mine = half if world.rank in half else [r for r in range(world.size) if r not in half]
    hvd.init(comm=mine)
    hvd.init(comm=mine)
    same(hvd.allgather([world.rank]), np.array(mine))
    hvd.shutdown()
    for _ in range(2500):  # MPICH has 2048 communicators: shutdown must free its own
        hvd.init()
        hvd.shutdown()
    refused(ValueError, hvd.init, comm=[(world.rank + 1) % world.size] if world.size > 1 else [])
    hvd.init()


def case_leave_early() -> None:
    """A rank that leaves closes the session of those that would wait for it."""
    if hvd.size() == 1:
        return
    if hvd.rank() == 0:
        hvd.shutdown()
    else:
        try:
            hvd.allreduce(1.0, name="late")
        except hvd.MismatchError as error:
            assert "rank 0: shutdown()" in str(error), error
            assert error.requests[0] == "shutdown()"
        else:
            raise AssertionError("no MismatchError")
    assert not hvd.is_initialized()
    hvd.init()
    same(hvd.allreduce(1.0), np.array(1.0))


def case_fork() -> None:
    """A forked child has no ranks, and its end does not end the job."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MPI has threads, and Python >= 3.12 tells
        child = os.fork()
    if child == 0:
        code = 1
        try:
            hvd.barrier()
        except hvd.NotInitializedError:
            code = 0 if not hvd.is_initialized() else 2
        sys.stdout.flush()
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    hvd.barrier()


CASES: Dict[str, Callable[[], None]] = {
    name: value for name, value in list(globals().items()) if name.startswith("case_")
}


def main() -> None:
    directory = sys.argv[1]
    for name, case in CASES.items():
        case()
        with open(os.path.join(directory, str(hvd.rank())), "a") as stream:
            stream.write(name + "\n")


if __name__ == "__main__":
    main()
