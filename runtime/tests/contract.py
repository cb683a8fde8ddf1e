"""The contract of the collectives: every rank runs every case, in order.

    mpiexec -n 4 python contract.py DIRECTORY FRAMEWORK [CASE ...]

The engine is the one that DDLT_ENGINE or the launcher means.  Each rank appends the cases it has
passed to DIRECTORY/<rank>.  The first failure ends the job.

Lines alone are of Horovod 0.28.1, horovod/torch/mpi_ops.py: what states the rule of a case.

A case takes a ``Framework``.  The basic ones are here, others in ``contract_order`` (what comes in
any order, from threads, in groups and process sets) and ``contract_errors``.
"""

import functools
import os
import sys
import time
from typing import Any, Callable, Dict, Sequence, Tuple

import numpy as np

import distributed_dl_training.numpy as plain
from distributed_dl_training.numpy import Op

from frameworks import Framework

Case = Callable[[Framework], None]
COMBINE: Dict[Op, Callable[[Any, Any], Any]] = {
    Op.SUM: np.add,
    Op.AVERAGE: np.add,
    Op.PRODUCT: np.multiply,
    Op.MIN: np.minimum,
    Op.MAX: np.maximum,
}


def only(framework: str = "", engine: str = "") -> Callable[[Case], Case]:
    """Mark a case that means something for one framework or engine alone."""

    def mark(case: Case) -> Case:
        case.only = (framework, engine)  # type: ignore[attr-defined]
        return case

    return mark


def fits(case: Case, framework: str, engine: str) -> bool:
    """Tell whether a case is meant for this framework and engine."""
    wanted = getattr(case, "only", ("", ""))
    return wanted[0] in ("", framework) and wanted[1] in ("", engine)


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


def allowed(dtype: str, op: Op) -> bool:
    kind = np.dtype(dtype).kind
    return kind in {Op.AVERAGE: "fc", Op.SUM: "iufc", Op.PRODUCT: "iufc"}.get(op, "biuf")


def reduced(parts: Any, dtype: str, op: Op) -> Any:
    """Return what allreduce makes of the ranks' arrays: float16 rounded once, at the end."""
    wide = "f4" if dtype == "f2" else dtype
    want = functools.reduce(COMBINE[op], [np.asarray(part, dtype=wide) for part in parts])
    if op is Op.AVERAGE:
        want = np.asarray(np.divide(want, len(parts)), dtype=wide)
    return np.asarray(want).astype(dtype)


def refused(kind: type, function: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Demand the same error of exactly this type on every rank; return its text."""
    text = ""
    try:
        function(*arguments, **options)
    except Exception as error:
        assert type(error) is kind, repr(error)
        text = str(error)
    else:
        raise AssertionError(f"no {kind.__name__}: {function.__name__}{arguments} {options}")
    texts = plain.allgather_object(text, name="texts of an error")
    assert kind is not plain.MismatchError or len(set(texts)) == 1, texts
    return text


def case_before_init(t: Framework) -> None:
    hvd = t.hvd
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
    hvd.init()
    assert hvd.is_initialized() and plain.is_initialized()


def case_ranks(t: Framework) -> None:
    hvd = t.hvd
    assert plain.allgather_object(hvd.rank()) == list(range(hvd.size()))
    # Tests run on one machine, so all ranks share its memory.
    assert (hvd.local_rank(), hvd.local_size()) == (hvd.rank(), hvd.size())
    assert (hvd.cross_rank(), hvd.cross_size()) == (0, 1)
    assert hvd.engine_name() == os.environ["DDLT_ENGINE"]


def case_allreduce_dtypes(t: Framework) -> None:
    """Of one type and shape; the tensor is not modified; Average is the default: 161-186."""
    hvd = t.hvd
    for dtype in t.reducible:
        for op in COMBINE:
            for shape in ((5,), (2, 3, 2), (), (0,), (3, 0, 2)):
                mine = t.tensor(sample(hvd.rank(), dtype, shape))
                if not allowed(dtype, op):
                    refused(TypeError, hvd.allreduce, mine, op=op)
                    continue
                parts = [sample(rank, dtype, shape) for rank in range(hvd.size())]
                t.same(hvd.allreduce(mine, name="x", op=op), reduced(parts, dtype, op))
                t.same(mine, parts[hvd.rank()])


@only(framework="numpy")
def case_layouts(t: Framework) -> None:
    hvd, same = t.hvd, t.same
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
    for dtype in ("g", "G", "U3", "M8[s]", "O"):
        refused(TypeError, hvd.allreduce, np.zeros(2, dtype=dtype), op=hvd.Max)
    refused(TypeError, hvd.allgather, np.array([None]))


def case_scaling(t: Framework) -> None:
    """Factors scale before and after the reduction: 181-182."""
    hvd = t.hvd
    size = hvd.size()
    x = t.tensor(np.full(3, 2.0, dtype="f4"))
    t.same(hvd.allreduce(x, op=hvd.Sum, prescale_factor=0.5), np.full(3, size, dtype="f4"))
    t.same(hvd.allreduce(x, op=hvd.Average, postscale_factor=4), np.full(3, 8, dtype="f4"))
    t.same(hvd.allreduce(x, op=hvd.Max, prescale_factor=-1), np.full(3, -2, dtype="f4"))
    complex_ones = t.tensor(np.full(3, 2.0, dtype="c8"))
    t.same(hvd.allreduce(complex_ones, prescale_factor=0.5), np.ones(3, dtype="c8"))
    # In float16 alone the first factor would overflow.
    half = np.full(2, 30000, dtype="f2")
    got = hvd.allreduce(t.tensor(half), prescale_factor=64, postscale_factor=1 / 64)
    t.same(got, half if t.rounds_once else np.full(2, np.inf, dtype="f2"))
    ones = t.tensor(np.ones(2, dtype="i4"))
    refused(TypeError, hvd.allreduce, ones, op=hvd.Sum, prescale_factor=2)
    refused(TypeError, hvd.allreduce, x, postscale_factor="much")


def case_float16(t: Framework) -> None:
    """It is rounded once, or after each addition; too large it becomes infinite on every rank."""
    hvd = t.hvd
    mine = np.array([2048 if hvd.rank() == 0 else 1], dtype="f2")  # 2048 + 1 rounds to 2048
    want = np.array([2048 + hvd.size() - 1], dtype="f4").astype("f2")
    got = hvd.allreduce(t.tensor(mine), op=hvd.Sum)
    if t.rounds_once:
        t.same(got, want)
    else:  # to even numbers, in whatever order they are added: by one at most each time
        assert abs(float(t.array(got)[0]) - (2047 + hvd.size())) <= hvd.size() - 1
        assert len({got.item() for got in hvd.allgather(got)}) == 1
    large = t.tensor(np.full(2, 60000, dtype="f2"))
    got = hvd.allreduce(large, op=hvd.Sum, postscale_factor=2)
    t.same(got, np.full(2, np.inf, dtype="f2"))


@only(framework="numpy")
def case_bfloat16(t: Framework) -> None:
    """Of ml_dtypes: numpy has none, and Horovod carries none (horovod/common/message.h:30)."""
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        return
    hvd = t.hvd
    size, me = hvd.size(), hvd.rank()
    # Half a unit in the last place from each rank: rounded after each addition they would be lost.
    small = np.array([[1.0 if me == 0 else 2.0**-8, me]], dtype=bfloat16)
    exact = np.array([[1.0 + (size - 1) * 2.0**-8, sum(range(size))]])
    for got, want in (
        (hvd.allreduce(small, op=hvd.Sum), exact.astype(bfloat16)),
        (hvd.allreduce(small[0, 1], op=hvd.Max), np.array(size - 1, dtype=bfloat16)),
        (hvd.grouped_allreduce([small, small[0]], op=hvd.Sum)[1], exact[0].astype(bfloat16)),
        (hvd.reducescatter(np.ones(size, bfloat16), op=hvd.Sum), np.array([size], bfloat16)),
        (hvd.allgather(np.full(me, me, bfloat16)), np.repeat(range(size), range(size))),
        (hvd.broadcast(small, size - 1), np.array([[2.0**-8 if size > 1 else 1.0, size - 1]])),
        (hvd.alltoall(np.full(size, me, bfloat16))[0], np.arange(size)),
        (hvd.allreduce(np.array([], bfloat16)), np.array([])),
    ):
        assert got.dtype == bfloat16 and got.shape == want.shape, (got, want)
        assert got.tobytes() == want.astype(bfloat16).tobytes(), (got, want)


def case_nan(t: Framework) -> None:
    hvd = t.hvd
    for dtype in ("f2", "f4", "f8"):
        for holder in range(hvd.size()):
            mine = np.array([1.0, hvd.rank(), -np.inf], dtype=dtype)
            if hvd.rank() == holder:
                mine[0] = np.nan
            x, top = t.tensor(mine), float(hvd.size() - 1)
            t.same(hvd.allreduce(x, op=hvd.Max), np.array([np.nan, top, -np.inf], dtype=dtype))
            t.same(hvd.allreduce(x, op=hvd.Min), np.array([np.nan, 0, -np.inf], dtype=dtype))


def adasum(vectors: Sequence[Any]) -> Any:
    """Return what Adasum makes of vectors in float64, by its definition."""
    if len(vectors) == 1:
        return vectors[0]
    half = len(vectors) // 2
    a, b = adasum(vectors[:half]), adasum(vectors[half:])
    dot, squares = np.vdot(a, b), (np.vdot(a, a), np.vdot(b, b))
    left, right = (1 - dot / square / 2 if square > 1e-150 else 1 for square in squares)
    return left * a + right * b


def case_adasum(t: Framework) -> None:
    """Of floating dtypes, over 2, 4, 8, ... ranks: 120-141."""
    hvd, size = t.hvd, t.hvd.size()
    ones = t.tensor(np.ones(3, dtype="f4"))
    if t.place:
        refused(TypeError, hvd.allreduce, ones, op=hvd.Adasum)
        return
    refused(TypeError, hvd.allreduce, t.tensor(np.ones(3, dtype="i4")), op=hvd.Adasum)
    if size & (size - 1):
        refused(NotImplementedError, hvd.allreduce, ones, op=hvd.Adasum)
        return
    for dtype in ("f2", "f4", "f8"):
        for shape in ((), (0,), (3,), (7, 5), (70001,)):
            numbers = [np.random.RandomState(rank).randn(*shape) for rank in range(size)]
            parts = [np.asarray(values, dtype=dtype) for values in numbers]
            want = adasum([np.asarray(part, dtype="f8") for part in parts])
            mine = t.tensor(parts[hvd.rank()])
            equal = t.tensor(np.ones(3, dtype=dtype))
            results = hvd.grouped_allreduce([mine, equal], name="g", op=hvd.Adasum)
            for result in (hvd.allreduce(mine, op=hvd.Adasum), results[0]):
                error = np.abs(np.asarray(t.array(result), dtype="f8") - want)
                assert t.array(result).shape == shape and t.array(result).dtype == dtype
                assert (error <= 4 * np.finfo(dtype).eps * np.abs(want).max(initial=0)).all()
            assert np.allclose(t.array(results[1]), 1)  # the mean of equal ones
    mine = np.zeros(size, dtype="f4")
    mine[hvd.rank()] = 3
    result = hvd.allreduce(t.tensor(mine), op=hvd.Adasum, prescale_factor=2, postscale_factor=5)
    assert np.allclose(t.array(result), 30)  # the sum of orthogonal ones
    tiny = t.tensor(np.full(3, 1e-100 * hvd.rank()))
    assert np.allclose(t.array(hvd.allreduce(tiny, op=hvd.Adasum)), 1e-100 * sum(range(size)), 0)


def case_allgather(t: Framework) -> None:
    """Along the first dimension, which alone may differ between ranks: 612-614."""
    hvd = t.hvd

    def rows(kind: str, rank: int) -> int:
        ragged = {"equal": 2, "rising": rank, "falling": 3 * (hvd.size() - 1 - rank), "none": 0}
        return ragged[kind]

    for dtype in t.movable:
        for kind in ("equal", "rising", "falling", "none"):
            for trailing in ((), (3,), (2, 2), (0,)):
                parts = [sample(r, dtype, (rows(kind, r),) + trailing) for r in range(hvd.size())]
                mine = t.tensor(parts[hvd.rank()])
                t.same(hvd.allgather(mine, name="rows"), np.concatenate(parts))
                t.same(mine, parts[hvd.rank()])
    refused(ValueError, hvd.allgather, t.tensor(1.0))


def case_broadcast(t: Framework) -> None:
    """The root's tensor of the same type and shape, not in place: 790-795."""
    hvd = t.hvd
    for root in range(hvd.size()):
        for dtype in t.movable:
            for shape in ((4,), (2, 3), (), (0,), (2, 0)):
                mine = t.tensor(sample(hvd.rank(), dtype, shape))
                t.same(hvd.broadcast(mine, root, name="b"), sample(root, dtype, shape))
                t.same(mine, sample(hvd.rank(), dtype, shape))
    for root in (-1, hvd.size(), 10**30):
        text = refused(ValueError, hvd.broadcast, t.tensor(np.ones(2)), root_rank=root)
        assert str(root) in text
    refused(TypeError, hvd.broadcast, t.tensor(np.ones(2)), root_rank=0.5)


def case_alltoall(t: Framework) -> None:
    """Along the first dimension, by splits or in equal parts: 930-943."""
    hvd = t.hvd
    size, me = hvd.size(), hvd.rank()
    for dtype in t.movable:
        for trailing in ((), (2,), (0,)):
            splits = [[(a * 2 + b) % 3 for b in range(size)] for a in range(size)]
            parts = [sample(r, dtype, (sum(splits[r]),) + trailing) for r in range(size)]
            want = [p[sum(s[:me]) : sum(s[: me + 1])] for p, s in zip(parts, splits)]
            got = t.alltoall(t.tensor(parts[me]), splits[me], name="a")
            t.same(got, np.concatenate(want))
            equal = [sample(r, dtype, (2 * size,) + trailing) for r in range(size)]
            want = [each[2 * me : 2 * me + 2] for each in equal]
            t.same(t.alltoall(t.tensor(equal[me])), np.concatenate(want))
    rows = t.tensor(np.zeros((size + 1, 2), dtype="f4"))
    refused(ValueError, hvd.alltoall, rows, [1] * size)
    refused(ValueError, hvd.alltoall, rows, [size + 2] + [-1] * (size > 1) + [0] * (size - 2))
    refused(ValueError, hvd.alltoall, rows, [size + 1] + [0] * size)
    refused(ValueError, hvd.alltoall, t.tensor(1.0))
    if size > 1:
        refused(ValueError, hvd.alltoall, rows)


def case_reducescatter(t: Framework) -> None:
    """First ranks get a row more: horovod/common/ops/collective_operations.cc:316-321."""
    hvd = t.hvd
    size, me = hvd.size(), hvd.rank()
    for dtype in t.reducible:
        for op in (hvd.Sum, hvd.Average):
            for rows in (0, 1, size, 2 * size + 1):
                parts = [sample(r, dtype, (rows, 3)) for r in range(size)]
                if not allowed(dtype, op):
                    refused(TypeError, hvd.reducescatter, t.tensor(parts[me]), op=op)
                    continue
                shares = [rows // size + (r < rows % size) for r in range(size)]
                want = reduced(parts, dtype, op)[sum(shares[:me]) : sum(shares[: me + 1])]
                mine = t.tensor(parts[me])
                t.same(hvd.reducescatter(mine, op=op, name="r"), want)
                t.same(mine, parts[me])
    x = t.tensor(np.full((size, 2), 3.0, dtype="f4"))
    got = hvd.reducescatter(x, op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.5)
    t.same(got, np.full((1, 2), 3.0 * size, dtype="f4"))
    refused(ValueError, hvd.reducescatter, x, op=hvd.Max)
    refused(ValueError, hvd.reducescatter, t.tensor(1.0), op=hvd.Sum)


def case_objects(t: Framework) -> None:
    """horovod/torch/functions.py:201-215 and 246-257."""
    hvd = t.hvd
    size, me = hvd.size(), hvd.rank()
    for root in range(size):
        told = {"rank": me, "text": "ü" * me, "numbers": list(range(1000 * me))}
        got = hvd.broadcast_object(told if me == root else None, root_rank=root, name="object")
        assert got["rank"] == root and len(got["numbers"]) == 1000 * root
    assert hvd.allgather_object((me, "x" * me)) == [(r, "x" * r) for r in range(size)]
    assert hvd.broadcast_object(None) is None


def case_barrier(t: Framework) -> None:
    """Ranks stay until all have come: 1316-1319."""
    hvd = t.hvd
    hvd.barrier()
    started = time.monotonic()
    if hvd.rank() == hvd.size() - 1:
        time.sleep(0.3)
    hvd.barrier()
    assert time.monotonic() - started > 0.25


def cases() -> Dict[str, Case]:
    """Return all cases by name, in order: init first, what ends the session last."""
    import contract_errors
    import contract_mpi
    import contract_order
    import contract_signals

    found: Dict[str, Case] = {}
    modules = (contract_order, contract_signals, contract_mpi, contract_errors)
    for module in (globals(), *map(vars, modules)):
        found.update({name: each for name, each in module.items() if name.startswith("case_")})
    return found


def main() -> None:
    directory, framework = sys.argv[1:3]
    level = os.environ.get("DDLT_TEST_THREAD_LEVEL")
    if level:
        import mpi4py

        mpi4py.rc.thread_level = level
    engine = os.environ["DDLT_ENGINE"]
    t = Framework(framework, engine)
    wanted = sys.argv[3:]
    rank = None
    for name, case in cases().items():
        first = name == "case_before_init"
        if not fits(case, framework, engine) or not (first or not wanted or name in wanted):
            continue
        case(t)
        rank = plain.rank() if rank is None else rank
        with open(os.path.join(directory, str(rank)), "a") as stream:
            stream.write(name + "\n")


if __name__ == "__main__":
    main()
