"""Cases of the contract: any order, threads, groups, process sets, uneven ends."""

import _thread
import ctypes
import random
import signal
import threading
import time
import warnings
from typing import Any, Callable, Dict, List, Tuple

import numpy as np

from contract import only, refused, sample
from frameworks import Framework


def order(count: int, *seed: int) -> List[int]:
    """Return the numbers below ``count`` in an order that follows from ``seed``."""
    numbers = list(range(count))
    random.Random(repr(seed)).shuffle(numbers)
    return numbers


def total(size: int, n: int, dtype: str, shape: Tuple[int, ...]) -> Any:
    """Return the sum over all ranks of ``sample(rank + n, ...)``."""
    parts = [sample(r + n, dtype, shape).astype("f8") for r in range(size)]
    return np.asarray(sum(parts)).astype(dtype)


def together(*bodies: Callable[[], None]) -> None:
    """Run each in a thread of its own; raise the first error."""
    errors: List[BaseException] = []

    def guarded(body: Callable[[], None]) -> None:
        try:
            body()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def case_any_order(t: Framework) -> None:
    """Every rank asks in an order of its own, and waits in another one.

    By name, once all have asked: horovod/torch/mpi_ops.py:164-167 of Horovod 0.28.1.
    """
    hvd = t.hvd
    size, me = hvd.size(), hvd.rank()
    dtypes = ["f4", "f8", "i4", "f2"]
    for step in range(4):  # from the second on by the cached fast path
        handles: Dict[int, Any] = {}
        for n in order(60, step, me):
            x = t.tensor(sample(me + n, dtypes[n % 4], (n % 7, 3)))
            name = f"n{n}"
            if n % 5 == 0:
                handles[n] = hvd.broadcast_async(x, n % size, name=name)
            elif n % 5 == 1:
                handles[n] = hvd.allgather_async(x, name=name)
            else:
                handles[n] = hvd.allreduce_async(x, name=name, op=hvd.Sum)
        for n in order(60, step, me, 1):
            dtype, shape = dtypes[n % 4], (n % 7, 3)
            got = hvd.synchronize(handles[n])
            if n % 5 == 0:
                t.same(got, sample(n % size + n, dtype, shape))
            elif n % 5 == 1:
                t.same(got, np.concatenate([sample(r + n, dtype, shape) for r in range(size)]))
            else:
                t.same(got, total(size, n, dtype, shape))


def case_bursts(t: Framework) -> None:
    """Many at once, again and again, with names and without; what has come stays as it is."""
    hvd = t.hvd
    size, me = hvd.size(), hvd.rank()
    dtypes = ["f4", "f8", "i4"]
    for named in (True, False):
        kept = []
        for step in range(5):
            handles = []
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # those without names are told to have one
                for n in range(40):
                    x = t.tensor(sample(me + n + step, dtypes[n % 3], (n % 5, 3)))
                    name = f"burst{n}" if named else None
                    handles.append(hvd.allreduce_async(x, name=name, op=hvd.Sum))
            kept.append([hvd.synchronize(handle) for handle in handles])
        for step, results in enumerate(kept):
            for n, got in enumerate(results):
                t.same(got, total(size, n + step, dtypes[n % 3], (n % 5, 3)))


def case_poll(t: Framework) -> None:
    """True once ``synchronize`` does not block: horovod/torch/mpi_ops.py:1255-1257 of 0.28.1."""
    hvd = t.hvd
    if hvd.rank() == hvd.size() - 1:
        time.sleep(0.2)
    handle = hvd.allreduce_async(t.tensor(np.ones(3)), name="polled", op=hvd.Sum)
    end = time.monotonic() + 60
    while not hvd.poll(handle):
        assert time.monotonic() < end
        time.sleep(0.005)
    t.same(hvd.synchronize(handle), np.full(3, float(hvd.size())))


def case_groups(t: Framework) -> None:
    """By their place in the list, under a base name: horovod/torch/mpi_ops.py:389-394 of 0.28.1."""
    hvd = t.hvd
    size, me = hvd.size(), hvd.rank()
    shapes: List[Tuple[int, ...]] = [(3,), (), (2, 0), (2, 3)]
    for dtype in ("f4", "f2", "i8"):
        handles = {}
        for n in order(3, me):
            tensors = [t.tensor(sample(me + n, dtype, shape)) for shape in shapes]
            handles[n] = hvd.grouped_allreduce_async(tensors, name=f"group{n}", op=hvd.Sum)
        for n, handle in handles.items():
            got = hvd.synchronize(handle)
            assert len(got) == len(shapes)
            for each, shape in zip(got, shapes):
                t.same(each, total(size, n, dtype, shape))
    assert list(hvd.grouped_allreduce([], name="empty")) == []
    mixed = [t.tensor(np.ones(2, dtype="f4")), t.tensor(np.ones(2, dtype="f8"))]
    if t.name == "numpy":
        refused(TypeError, hvd.grouped_allreduce, mixed)
    else:
        for tensor, got in zip(mixed, hvd.grouped_allreduce(mixed, op=hvd.Average)):
            t.same(got, t.array(tensor))


def case_unnamed(t: Framework) -> None:
    """Without names they meet in the order in which they come, alike or not; a warning says so."""
    hvd = t.hvd
    size, me = hvd.size(), hvd.rank()
    for _ in range(3):
        tensors = [t.tensor(np.full(2, n + me)) for n in range(5)]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            alike = [hvd.allreduce_async(tensor, op=hvd.Sum) for tensor in tensors]
        assert all("without a name" in str(each.message) for each in caught), caught
        other = hvd.allgather_async(t.tensor(np.full(1, me)))
        for n, handle in enumerate(alike):
            t.same(hvd.synchronize(handle), np.full(2, size * n + sum(range(size))))
        t.same(hvd.synchronize(other), np.arange(size))


class Interrupted(Exception):
    """What a handler raises, as Ctrl-C does."""


@only(framework="numpy")
def case_interrupted(t: Framework) -> None:
    """A signal ends the waiting, at any moment; the collective goes on and is waited for again."""
    hvd = t.hvd
    size, me = hvd.size(), hvd.rank()
    chance = random.Random(me)

    def interrupt(number: int, frame: Any) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    for step in range(60):
        x = t.tensor(np.full(3, float(me + step)))
        handle = hvd.allreduce_async(x, name=f"interrupted {step % 10 == 9}", op=hvd.Sum)
        seconds = 1e-5 + 0.001 * chance.random()
        got = None
        while got is None:
            try:
                signal.setitimer(signal.ITIMER_REAL, seconds)
                got = hvd.synchronize(handle)
            except Interrupted:
                seconds *= 2
            try:  # one that came too late
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupted:
                pass
        t.same(got, np.full(3, size * step + sum(range(size)), dtype="f8"))
    signal.signal(signal.SIGALRM, before)


def _start_in_python(body: Callable[[], None]) -> None:
    _thread.start_new_thread(body, ())


_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_kept: List[Any] = []  # the C library calls them


def _start_in_c(body: Callable[[], None]) -> None:
    def run(_: Any) -> None:
        body()

    number = ctypes.c_ulong()
    _kept.append(_FUNCTION(run))
    assert ctypes.CDLL(None).pthread_create(ctypes.byref(number), None, _kept[-1], None) == 0


def case_threads_that_python_does_not_know(t: Framework) -> None:
    """Main threads wait for what such threads of other ranks ask for later: no mismatch."""
    hvd = t.hvd
    for start in (_start_in_python, _start_in_c):
        names = [f"{start.__name__} {n}" for n in range(2)]
        results: List[Any] = []

        def other(name: str = names[1 - hvd.rank() % 2], results: List[Any] = results) -> None:
            time.sleep(2.5)
            results.append(hvd.allreduce(t.tensor(np.ones(2)), op=hvd.Sum, name=name))

        start(other)
        mine = hvd.allreduce(t.tensor(np.ones(2)), op=hvd.Sum, name=names[hvd.rank() % 2])
        while not results:
            time.sleep(0.01)
        for got in (mine, results[0]):
            t.same(got, np.full(2, float(hvd.size())))


def case_same_name(t: Framework) -> None:
    """A name may be used again once its collective is complete, and not before.

    horovod/common/tensor_queue.cc:30 of 0.28.1 refuses it, too.
    """
    hvd = t.hvd
    x, gate = t.tensor(np.ones(2)), t.tensor(np.zeros(1))
    late = hvd.size() > 1 and hvd.rank() == hvd.size() - 1
    for _ in range(3):
        if late:  # so that it is still under way on the others
            hvd.broadcast(gate, 0, name="gate")
        handle = hvd.allreduce_async(x, name="again", op=hvd.Sum)
        if not late:
            try:
                hvd.allreduce_async(x, name="again", op=hvd.Sum)
            except hvd.DuplicateNameError as error:
                assert "name='again'" in str(error)
            else:
                raise AssertionError("no DuplicateNameError")
            if hvd.size() > 1:
                hvd.broadcast(gate, 0, name="gate")
        t.same(hvd.synchronize(handle), np.full(2, float(hvd.size())))


def case_results_for_several_threads(t: Framework) -> None:
    hvd = t.hvd
    x = t.tensor(np.arange(3.0))
    handle = hvd.allreduce_async(x, name="shared", op=hvd.Sum)
    got: List[Any] = []
    together(*[lambda: got.append(hvd.synchronize(handle))] * 4)
    assert all(each is got[0] for each in got) and hvd.synchronize(handle) is got[0]
    t.same(got[0], np.arange(3.0) * hvd.size())


def case_threads(t: Framework) -> None:
    """Threads ask independently of each other, in whatever order they come to run."""
    hvd = t.hvd
    size, me = hvd.size(), hvd.rank()

    def body(number: int) -> Callable[[], None]:
        def run() -> None:
            for step in range(10):
                name = f"thread{number}"
                x = t.tensor(sample(me + step, "f4", (number + 1,)))
                got = hvd.allreduce(x, name=name, op=hvd.Sum)
                t.same(got, total(size, step, "f4", (number + 1,)))

        return run

    together(*[body(number) for number in order(6, me)])


def case_many_pending(t: Framework) -> None:
    hvd = t.hvd
    size, me = hvd.size(), hvd.rank()
    count = 3000
    x = t.tensor(np.ones(2, dtype="f4"))
    numbers = order(count, me)
    handles = {n: hvd.allreduce_async(x, name=f"many{n}", op=hvd.Sum) for n in numbers}
    for n in order(count, me, 1):
        t.same(hvd.synchronize(handles[n]), np.full(2, size, dtype="f4"))


def case_process_sets(t: Framework) -> None:
    """Sets that overlap are used at the same time, in another order on each rank."""
    hvd = t.hvd
    size, me = hvd.size(), hvd.rank()
    refused(ValueError, hvd.add_process_set, [size])
    refused(ValueError, hvd.add_process_set, [0, 0])
    refused(ValueError, hvd.add_process_set, list(range(size)))
    t.same(hvd.allreduce(t.tensor(1.0), process_set=hvd.global_process_set), np.array(1.0))
    if size == 1:
        return
    wanted = [[0], [1]] if size == 2 else [[0, 1], [size - 1], [3, 1], [0, 2, 3]]
    sets = [hvd.add_process_set(ranks) for ranks in wanted]
    assert [each.process_set_id for each in sets] == list(range(1, len(wanted) + 1))
    refused(ValueError, hvd.add_process_set, wanted[0][::-1])
    for step in range(3):
        handles = []
        for n in order(len(sets), step, me):
            ranks = wanted[n]
            assert sets[n].included() == (me in ranks) and sets[n].size() == len(ranks)
            if me in ranks:
                assert sets[n].rank() == ranks.index(me)
                x = t.tensor(sample(me, "f4", (4,)))
                options = {"name": "x", "process_set": sets[n]}
                handles.append((ranks, hvd.allreduce_async(x, op=hvd.Sum, **options)))
                root = ranks[-1]  # Horovod's roots are ranks of all, not of the set
                got = hvd.broadcast(t.tensor([me]), root, name="b", process_set=sets[n])
                t.same(got, np.array([root]))
                assert hvd.broadcast_object(me, root, "o", sets[n]) == root
                stranger = next(rank for rank in range(size) if rank not in ranks)
                try:
                    hvd.broadcast(t.tensor([me]), stranger, name="s", process_set=sets[n])
                except ValueError as error:
                    assert f"root_rank {stranger} is not one of the ranks {ranks}" in str(error)
                else:
                    raise AssertionError("no ValueError")
        for ranks, handle in handles:
            t.same(hvd.synchronize(handle), sum(sample(r, "f4", (4,)) for r in ranks))
    for number, ranks in enumerate(wanted):
        if me in ranks:
            got = hvd.allgather(t.tensor([me]), process_set=sets[number])
            t.same(got, np.array(ranks))
            hvd.barrier(process_set=sets[number])
        else:
            try:
                hvd.allreduce(t.tensor(1.0), process_set=sets[number])
            except ValueError as error:
                assert "is not in" in str(error)
            else:
                raise AssertionError("no ValueError")
    assert hvd.remove_process_set(sets[0])
    assert not hvd.remove_process_set(hvd.global_process_set)
    again = hvd.add_process_set(wanted[0])
    if me in wanted[0]:
        hvd.barrier(process_set=again)
    for each in [again] + sets[1:]:
        assert hvd.remove_process_set(each)
    refused(ValueError, hvd.remove_process_set, again)


@only(framework="numpy")
def case_sets_of_sessions(t: Framework) -> None:
    """Sets are gone with their session, and may be added to the next; wrong ones open none."""
    hvd = t.hvd
    first, last = hvd.ProcessSet([0]), hvd.ProcessSet([hvd.size() - 1])
    for _ in range(2 * (hvd.size() > 1)):
        hvd.shutdown()
        assert (first.process_set_id, last.process_set_id) == (None, None)
        hvd.init(process_sets=[first, last])
        assert (first.process_set_id, last.process_set_id) == (1, 2)
        if hvd.rank() == 0:
            t.same(hvd.allreduce(t.tensor(1.0), process_set=first), np.array(1.0))
    hvd.shutdown()
    for wrong in ([[0], [0]], [["0"]], "static", 3):
        try:
            hvd.init(process_sets=wrong)
        except (TypeError, ValueError) as error:
            assert "static" in str(error) or wrong != "static"
        else:
            raise AssertionError("no error")
        assert not hvd.is_initialized()
    hvd.init(process_sets="dynamic")
    hvd.barrier()


def case_join(t: Framework) -> None:
    """Ranks with fewer batches give zeros until all have joined; the last one to do so is told.

    horovod/torch/mpi_ops.py:1293-1303 of Horovod 0.28.1.
    """
    hvd = t.hvd
    size, me = hvd.size(), hvd.rank()
    for epoch in range(3):  # from the second on by the cached fast path
        for batch in range(2 + 3 * me):
            takers = [r for r in range(size) if batch < 2 + 3 * r]
            x = t.tensor(np.full((2, 2), me + 1.0, dtype="f4"))
            pair = [t.tensor(np.full(2, 1.0)), t.tensor(np.full((), 2.0))]
            handle = hvd.allreduce_async(x, name="gradient", op=hvd.Sum)
            group = hvd.grouped_allreduce_async(pair, name="pair", op=hvd.Sum)
            unnamed = hvd.allreduce(x, op=hvd.Average)
            want = sum(r + 1.0 for r in takers)
            t.same(hvd.synchronize(handle), np.full((2, 2), want, dtype="f4"))
            t.same(unnamed, np.full((2, 2), want / size, dtype="f4"))
            first, second = hvd.synchronize(group)
            t.same(first, np.full(2, 1.0 * len(takers)))
            t.same(second, np.array(2.0 * len(takers)))
            half = t.tensor(np.full(3, 1.0, dtype="f2"))
            got = hvd.allreduce(half, name="half", op=hvd.Sum)
            t.same(got, np.full(3, len(takers), dtype="f2"))
        if epoch == 1 and me == size - 1:
            hvd.barrier()
        assert hvd.join(*[-1] * (epoch % 2)) == size - 1  # Horovod takes a device
        # Those that joined early have asked for less without a name: it must not matter.
        t.same(hvd.allgather(t.tensor([me])), np.arange(size))
    for call in (hvd.allgather, hvd.reducescatter) if size > 1 else ():
        x = t.tensor(np.ones((size, 1), dtype="f4"))
        hvd.synchronize(hvd.allreduce_async(x, name="cached"))
        call(x, name="not with join")
        if me == 0:
            hvd.join()
        else:
            try:
                call(x, name="not with join")
            except hvd.MismatchError as error:
                assert "rank 0: join()" in str(error), error
            else:
                raise AssertionError("no MismatchError")
            hvd.join()
        hvd.barrier()


def case_helpers_ask_later(t: Framework) -> None:
    """Two ranks wait for what each other's helper, which has asked for nothing yet, asks later."""
    hvd = t.hvd
    mine, other = ("even", "odd") if hvd.rank() % 2 == 0 else ("odd", "even")
    results: List[Any] = []

    def helper() -> None:
        time.sleep(0.5)
        results.append(hvd.allreduce(t.tensor(1.0), name=f"helper {other}", op=hvd.Sum))

    thread = threading.Thread(target=helper, daemon=True)
    thread.start()
    t.same(
        hvd.allreduce(t.tensor(1.0), name=f"helper {mine}", op=hvd.Sum), np.array(float(hvd.size()))
    )
    thread.join()
    t.same(results[0], np.array(float(hvd.size())))
    hvd.barrier()
