"""Bursts: many small allreduces as one, right to the last bit, whatever the other ranks do."""

import sys
import threading

import numpy as np
import pytest

from distributed_dl_training import _result_buffers, _timeline
from distributed_dl_training._agreement import JOIN, Request
from distributed_dl_training._bursts import Bursts
from distributed_dl_training._core import (
    DuplicateNameError,
    MismatchError,
    NotInitializedError,
    Op,
    Threads,
)
from distributed_dl_training._handle import ArrayHandle, Handle
from distributed_dl_training._reductions import ArrayReduction, Reduction
from distributed_dl_training._result_buffers import ResultBuffers
from distributed_dl_training._settings import Settings
from distributed_dl_training._works import Nothing

from controllers import allreduce, ranks

LIMITS = (1 << 20, 64 << 20)
SHAPES = [(3,), (3,), (), (), (2, 3), (0,), (4, 0), (2, 3), (1,), (1000,)]


def asked(controller, name, values, op=Op.SUM, postscale=1.0):
    """Return a handle as the numpy module makes it for what has been asked before."""
    dtype, shape = values.dtype, values.shape
    request = Request("allreduce", name, dtype.name, shape, op.value, 1.0, postscale)
    found = Reduction(request, op, 1.0, postscale)
    reduction = ArrayReduction(shape, dtype, (op, 1.0, postscale), found)
    return ArrayHandle(controller, reduction, values.reshape(-1))


def numbers(rank, step, n):
    """Return values of many shapes, and of two dtypes."""
    shape = SHAPES[n % len(SHAPES)]
    count = int(np.prod(shape))
    return (np.arange(count) + 10 * rank + step + n).reshape(shape).astype(["f4", "i8"][n % 3 == 0])


def together(controller, handles):
    """Submit handles so that one cycle takes them all, and return the results."""
    with controller._lock:
        for handle in handles:
            controller.submit(handle)
    return [handle.synchronize() for handle in handles]


def check(results, step, size=2):
    for n, got in enumerate(results):
        want = sum(numbers(rank, step, n) for rank in range(size))
        assert type(got) is np.ndarray and got.dtype == numbers(0, step, n).dtype
        assert got.shape == want.shape and (got == want).all(), (step, n, got, want)


@pytest.mark.parametrize("threads", [Threads.MULTIPLE, Threads.FUNNELED])
@pytest.mark.parametrize("size", [2, 9])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.filterwarnings("ignore:allreduces without a name")
def test_what_comes_again_is_one_exchange(named, size, threads):
    """Of the third time on; results that are kept stay as they are, and no input is changed."""

    def body(controller):
        rank, engine = controller.engine.rank, controller.engine
        kept = []
        for step in range(6):
            given = [numbers(rank, step, n) for n in range(30)]
            handles = [
                asked(controller, f"n{n}" if named else None, each) for n, each in enumerate(given)
            ]
            control, data = engine.calls["control"], len(engine.log)
            results = together(controller, handles)
            if step > 1:
                assert engine.calls["control"] - control == 1
                assert len(engine.log) - data == 2  # of each dtype one
                assert all(handle.value is not None for handle in handles)
            kept.append(results)
            for n, each in enumerate(given):
                assert (each == numbers(rank, step, n)).all()
                assert not np.shares_memory(each, results[n])
        for step, results in enumerate(kept):
            check(results, step, size)
            for each in results:
                each[...] = -1
        assert controller._unnamed == 0 and not controller._entries
        return True

    assert ranks(size, body, threads=threads) == [True] * size


@pytest.mark.parametrize(
    "what", ["another order", "another way", "one more", "timeline", "no cache"]
)
def test_ranks_whose_bursts_differ(what, tmp_path):
    """Names are enough for ranks to meet, however each of them carries its part out."""

    def body(controller):
        rank = controller.engine.rank
        for step in range(5):
            places = list(range(30))
            if what == "another order" and rank:
                places.reverse()
            if what == "one more" and rank:
                places.insert(17, 30)
            handles = {}
            for n in places:
                handle = asked(controller, f"n{n}", numbers(rank, step, n))
                if what == "another way" and rank:
                    handle = Handle(handle.request, handle.work)
                handles[n] = handle
            with controller._lock:
                for n in places:
                    controller.submit(handles[n])
            check([handles[n].synchronize() for n in range(30)], step)
            if what == "one more":
                if not rank:
                    handles[30] = asked(controller, "n30", numbers(rank, step, 30))
                    controller.submit(handles[30])
                handles[30].synchronize()
        return True

    if what == "timeline":
        _timeline.start_timeline(str(tmp_path / "timeline.json"), 0, 2)
    try:
        settings = Settings(cache_capacity=0 if what == "no cache" else 8)
        assert ranks(2, body, settings) == [True] * 2
    finally:
        _timeline.stop_timeline()


def test_one_that_does_not_fit():
    """It fails on all ranks, and the others of its burst do not."""

    def body(controller):
        rank = controller.engine.rank
        texts = []
        for step in range(4):
            handles = [asked(controller, f"n{n}", numbers(rank, step, n)) for n in range(20)]
            if step == 3 and rank:
                handles[7] = asked(controller, "n7", np.ones(5, "f8"))
            with controller._lock:
                for handle in handles:
                    controller.submit(handle)
            if step == 3:
                with pytest.raises(MismatchError) as caught:
                    handles.pop(7).synchronize()
                texts.append(str(caught.value))
            results = [handle.synchronize() for handle in handles]
            check(results[:7], step)
        return texts

    first, second = ranks(2, body)
    assert first == second and "shape=(5,)" in first[0]


def test_a_rank_that_has_joined():
    def body(controller):
        rank = controller.engine.rank
        for _ in range(2):
            for step in range(4 if rank == 0 else 2):
                handles = [asked(controller, f"n{n}", numbers(rank, step, n)) for n in range(20)]
                check(together(controller, handles), step, 2 if step < 2 else 1)
            assert controller.submit(Handle(JOIN, Nothing())).synchronize() == 0
        return True

    assert ranks(2, body) == [True] * 2


@pytest.mark.parametrize("op", [Op.AVERAGE, Op.MAX, Op.PRODUCT])
def test_operations_and_factors(op):
    def body(controller):
        got = []
        for _ in range(3):
            values = [np.full(5, controller.engine.rank + n + 1.0) for n in range(8)]
            handles = [asked(controller, f"n{n}", x, op, 0.5) for n, x in enumerate(values)]
            got = together(controller, handles)
        assert all(handle.value is not None for handle in handles)
        return [each.tolist() for each in got]

    whole = {
        Op.AVERAGE: lambda n: n + 1.5,
        Op.MAX: lambda n: n + 2,
        Op.PRODUCT: lambda n: (n + 1) * (n + 2),
    }
    assert ranks(2, body) == [[[0.5 * whole[op](n)] * 5 for n in range(8)]] * 2


def test_what_is_no_burst():
    """Few, long ones, those calculated in another dtype, and what is not asked for as an array."""
    bursts = Bursts()

    def found(*shapes, **facts):
        handles = [asked(None, f"n{n}", np.zeros(shape, **facts)) for n, shape in enumerate(shapes)]
        first = bursts.find(handles)
        assert first is None or not first.packed(handles, *LIMITS)
        burst = bursts.find(handles)
        return burst is not None and burst.packed(handles, *LIMITS)

    assert found(3, 3, 3, 3) and found(3, (), (2, 0), 1)
    assert not found(3, 3, 3)
    assert not found(3, 3, 3, 1 << 17) and found(3, 3, 3, (1 << 17) - 1)
    for dtype in ("f2", "?"):
        assert not found(3, 3, 3, 3, dtype=dtype)
    mixed = [asked(None, f"m{n}", np.zeros(3)) for n in range(4)] + [allreduce("m4", np.zeros(3))]
    for _ in range(2):
        assert not bursts.find(mixed).packed(mixed, *LIMITS)


def test_blocks_of_copies():
    """What keeps one copy keeps neighbours of its block, and no more."""
    handles = [asked(None, f"n{n}", np.full((2, 50), n, "f4")) for n in range(70)]
    handles += [asked(None, f"n{n}", np.full((), n, "f4")) for n in range(70, 90)]
    bursts = Bursts()
    bursts.find(handles)
    assert bursts.find(handles).packed(handles, *LIMITS)
    (pack,) = bursts.find(handles).packs
    values = np.concatenate([handle.source for handle in handles])
    views, copies = pack.results(values, copies=False), pack.results(values, copies=True)
    for handle, view, copy in zip(handles, views, copies):
        want = handle.source.reshape(handle.request.shape)
        assert view.shape == copy.shape == want.shape and (view == want).all()
        assert (copy == want).all() and copy.base.nbytes <= 16 * 400
        assert np.shares_memory(view, values) == bool(view.size)
        assert not np.shares_memory(copy, values)


@pytest.mark.skipif(not _result_buffers._COUNTS, reason="references are not counted here")
def test_memory_that_is_used_again():
    buffers = ResultBuffers()
    first = buffers.take(1000, np.dtype("f4"))
    part = first[10:20].reshape(2, 5)
    address = first.ctypes.data
    del first
    second = buffers.take(10, np.dtype("i8"))
    assert second.size == 10 and not np.shares_memory(part, second)
    assert buffers.take(10, np.dtype("f4")) is None  # two are kept, and both are in use
    kept = memoryview(part[:1])
    del part
    assert buffers.take(10, np.dtype("f4")) is None
    kept.release()
    del kept
    again = buffers.take(2000, np.dtype("f4"))
    assert again is not None and again.size == 2000
    del again
    larger = buffers.take(500, np.dtype("f8"))
    assert larger.size == 500 and larger.dtype == np.dtype("f8") and address
    assert buffers.take(_result_buffers.LONGEST + 1, np.dtype("u1")) is None


def test_names_from_many_threads():
    """A name is one thread's at a time; those that lose the race are told, and nothing is lost."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def body(controller):
        done = []

        def ask(which):
            for n in range(60):
                handle = asked(controller, f"{which}.{n}", np.full(3, float(n)))
                done.append(controller.submit(handle).synchronize()[0] == 2.0 * n)

        threads = [threading.Thread(target=ask, args=(which,)) for which in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        twice = []
        # "twice" stays in flight on rank 1 until rank 0, which waits for the gate, submits it too.
        for _ in range(3 if controller.engine.rank else 0):
            with pytest.raises(DuplicateNameError, match="'twice'"):
                twice = twice or [controller.submit(asked(controller, "twice", np.ones(1)))]
                controller.submit(asked(controller, "twice", np.ones(1)))
        controller.submit(asked(controller, "gate", np.ones(1))).synchronize()
        if not controller.engine.rank:
            twice = [controller.submit(asked(controller, "twice", np.ones(1)))]
        return len(done), all(done), twice[0].synchronize()[0]

    try:
        assert ranks(2, body) == [(240, True, 2.0)] * 2
    finally:
        sys.setswitchinterval(interval)


def test_nothing_is_taken_after_the_end():
    seen = []

    def body(controller):
        seen.append(controller)
        return together(controller, [asked(controller, f"n{n}", np.ones(2)) for n in range(5)])

    ranks(2, body)
    for controller in seen:
        late = asked(controller, "late", np.ones(2))
        with pytest.raises(NotInitializedError):
            controller.submit(late)
        # One that was entered while the session ended is taken out again.
        controller._entries["late"] = late
        late.label = "late"
        with pytest.raises(NotInitializedError):
            controller._refuse(late)
        assert not controller._entries
        controller._refuse(late)  # it has failed with the others: its result tells
