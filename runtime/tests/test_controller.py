"""Negotiation and waiting, with real threads as ranks and an engine between them."""

import gc
import random
import threading
import time
import warnings
import weakref

import numpy as np
import pytest

from distributed_dl_training._agreement import JOIN, Request
from distributed_dl_training._core import (
    DuplicateNameError,
    MismatchError,
    Op,
    Threads,
)
from distributed_dl_training._handle import ArrayHandle, Handle
from distributed_dl_training._reductions import ArrayReduction
from distributed_dl_training._settings import Settings
from distributed_dl_training._works import Allreduce, Nothing

from controllers import allreduce, ranks
from fakes import wait_for


@pytest.mark.parametrize("threads", [Threads.MULTIPLE, Threads.FUNNELED])
@pytest.mark.parametrize("capacity", [0, 1, 2, 1000])
def test_any_order(capacity, threads):
    def body(controller):
        chance = random.Random(controller.engine.rank)
        order = []
        for step in range(3):
            names = list(range(20))
            chance.shuffle(names)
            handles = {}
            for n in names:
                values = np.full(1 + n % 3, float(n + step + controller.engine.rank))
                handles[n] = controller.submit(allreduce(f"n{n}", values))
                if chance.random() < 0.2:
                    time.sleep(0.002)
            for n in sorted(names, key=lambda _: chance.random()):
                got = handles[n].synchronize()
                assert (got == 3.0 * (n + step) + 3).all()
        return order

    ranks(3, body, Settings(cache_capacity=capacity), threads)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_lengths_in_turn_however_each_rank_asks(size, seed):
    """What travels with the first exchange has one length, however each rank came to it."""
    lengths = [3, 100, 1, 3000, 3]
    requests = [
        Request("allreduce", f"n{n}", "float64", (length,), Op.SUM.value)
        for n, length in enumerate(lengths)
    ]
    same = random.Random(seed)
    order = [n for _ in range(30) for n in [same.randrange(len(lengths))] * same.randint(1, 4)]

    def body(controller):
        chance = random.Random(seed * 10 + controller.engine.rank)
        for step, n in enumerate(order):
            values = np.full(lengths[n], float(step + controller.engine.rank))
            handle = Handle(requests[n], Allreduce([values], values, Op.SUM, 1.0, 1.0))
            way = chance.random()
            if way < 0.03:
                time.sleep(0.15)  # longer than a thread of the program waits itself
            if way < 0.7:
                controller.run(handle)
            else:
                controller.submit(handle)
            while way > 0.9 and not handle.poll():
                pass
            got = handle.synchronize()
            assert (got == size * step + sum(range(size))).all(), (step, n, got)

    ranks(size, body)


def test_who_is_interrupted_before_it_waits_has_asked():
    """Its thread of cycles, which sleeps for seconds while nothing is asked for, is woken."""

    def body(controller):
        time.sleep(0.3)  # it sleeps now
        handle = allreduce("x", np.ones(2))

        def interrupted(handle):
            raise KeyboardInterrupt

        if controller.engine.rank == 0:
            controller.wait = interrupted
            with pytest.raises(KeyboardInterrupt):
                controller.run(handle)
            del controller.wait
            wait_for(lambda: handle.done)
        else:
            started = time.monotonic()
            controller.run(handle)
            assert time.monotonic() - started < 4  # the sleep lasts ten

    ranks(2, body)


def test_equal_ones_without_a_name_are_added_by_their_order_and_a_warning_says_so():
    """As Horovod adds them; where ranks ask in another order, these are not what was meant."""

    def body(controller):
        rank = controller.engine.rank
        kinds = [1.0, 10.0] if rank == 0 else [10.0, 1.0]
        handles = []
        for _ in range(3):
            handles += [controller.submit(allreduce(None, np.full(2, each))) for each in kinds]
        return [float(handle.synchronize()[0]) for handle in handles]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert ranks(2, body) == [[11.0] * 6] * 2
    said = [str(each.message) for each in caught]
    assert len(said) == 2, said  # once on each rank
    assert all("without a name" in each and "give each a name" in each for each in said)


def test_mismatch_without_a_common_name_is_told_soon():
    def body(controller):
        errors = []
        for _ in range(2):
            # Rank 1 has asked for one more without a name, which is forgotten with the error.
            extra = controller.engine.rank
            names = [None] * extra + [f"only {controller.engine.rank}"]
            handles = [controller.submit(allreduce(n, np.ones(2))) for n in names]
            for handle in handles:
                with pytest.raises(MismatchError) as caught:
                    handle.synchronize()
                errors.append(str(caught.value))
            values = np.full(2, float(controller.engine.rank))
            assert list(controller.submit(allreduce(None, values)).synchronize()) == [1.0, 1.0]
        return errors

    first, second = ranks(2, body)
    assert len(set(first[:1] + second[:2])) == 1 and len(set(first[1:] + second[2:])) == 1


def test_threads_that_have_not_asked_yet_are_waited_for():
    """On one rank the main thread comes first, on the other another one: no mismatch."""

    def body(controller):
        rank = controller.engine.rank
        results = []

        def metrics():
            time.sleep(0.1 * rank)
            results.append(controller.submit(allreduce("metrics", np.ones(1))).synchronize())

        thread = threading.Thread(target=metrics)
        thread.start()
        time.sleep(0.1 * (1 - rank))
        controller.submit(allreduce("train", np.ones(1))).synchronize()
        thread.join()
        return results[0][0]

    assert ranks(2, body) == [2.0, 2.0]


def test_threads_that_end_are_forgotten():
    def body(controller):
        def once():
            controller.submit(allreduce("x", np.ones(1))).synchronize()

        for _ in range(40):
            thread = threading.Thread(target=once)
            thread.start()
            thread.join()
        return len(controller._active_threads._threads), len(controller._active_threads.waiting)

    for threads, waiting in ranks(2, body):
        assert threads <= 3 and waiting == 0


def test_join_answers_what_is_cached_and_has_no_name():
    def body(controller):
        rank = controller.engine.rank
        for _ in range(3):
            for _ in range(3 if rank else 1):
                got = controller.submit(allreduce(None, np.ones(2))).synchronize()
            assert got[0] == (1.0 if rank else 2.0)
            last = controller.submit(Handle(JOIN, Nothing())).synchronize()
            assert last == 1
            got = controller.submit(allreduce(None, np.ones(2))).synchronize()
            assert list(got) == [2.0, 2.0]

    ranks(2, body)


def test_integers_are_averaged_with_a_rank_that_has_joined():
    """By Horovod's rules: a sum that is scaled (horovod/torch/mpi_ops.py:111-118 of 0.28.1)."""

    def body(controller):
        results = []
        if controller.engine.rank == 0:
            values = np.array([5, -5], dtype="i4")
            request = Request("allreduce", "x", "int32", (2,), Op.AVERAGE.value)
            work = Allreduce([values], values, Op.SUM, 1.0, 0.5)
            results = controller.submit(Handle(request, work)).synchronize().tolist()
        controller.submit(Handle(JOIN, Nothing())).synchronize()
        return results

    assert ranks(2, body) == [[2, -2], []]


def test_small_ones_travel_together_long_ones_alone():
    def body(controller):
        for _ in range(2):
            with controller._lock:  # so that all of them come to one cycle
                handles = [
                    controller.submit(allreduce(f"{kind}{n}", np.ones(10, kind)))
                    for kind in ("f4", "f8")
                    for n in range(50)
                ]
                handles.append(controller.submit(allreduce("long", np.ones(1 << 18, "f4"))))
            for handle in handles:
                assert (handle.synchronize() == 2).all()
        return controller.engine.log

    for log in ranks(2, body):
        assert sorted(nbytes for _, nbytes in log) == [2000] * 2 + [4000] * 2 + [1 << 20] * 2


@pytest.mark.parametrize("threshold, most", [(0, 800), (100, 1000)])
def test_threshold(threshold, most):
    def body(controller):
        handles = [controller.submit(allreduce(f"s{n}", np.ones(100))) for n in range(5)]
        for handle in handles:
            assert (handle.synchronize() == 2).all()
        return max(nbytes for _, nbytes in controller.engine.log)

    assert ranks(2, body, Settings(fusion_threshold=threshold)) == [800, 800]


@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_arena(dtype):
    """What lies side by side is one reduction, where it lies; float16 is calculated in float32."""

    def body(controller):
        arena = np.ones(1 << 16, dtype=dtype)
        pieces = [(start, arena[start : start + 4096]) for start in range(0, arena.size, 4096)]
        random.Random(controller.engine.rank).shuffle(pieces)
        handles = []
        with controller._lock:  # so that all of them come to one cycle
            for start, piece in pieces:
                name = f"at {start}"
                handles.append(controller.submit(allreduce(name, piece, arena=arena, start=start)))
        for handle in handles:
            handle.synchronize()
        assert (arena == 2).all()
        return controller.engine.log

    for log in ranks(2, body):
        assert log == [(Op.SUM, 4 << 16)]


def test_arena_and_a_rank_that_has_joined():
    def body(controller):
        if controller.engine.rank == 1:
            controller.submit(Handle(JOIN, Nothing())).synchronize()
            return
        arena = np.ones(100, dtype="f4")
        handles = [
            controller.submit(allreduce(f"at {n}", arena[n : n + 5], arena=arena, start=n))
            for n in (0, 5, 20, 25, 95)
        ]
        for handle in handles:
            handle.synchronize()
        assert (arena == 1).all()
        controller.submit(Handle(JOIN, Nothing())).synchronize()

    ranks(2, body)


def test_a_name_twice():
    def body(controller):
        if controller.engine.rank == 0:
            handle = controller.submit(allreduce("x", np.ones(1)))
            with pytest.raises(DuplicateNameError, match="'x'"):
                controller.submit(allreduce("x", np.ones(1)))
        gate = controller.submit(Handle(Request("barrier", "gate"), Nothing()))
        gate.synchronize()
        if controller.engine.rank == 1:
            handle = controller.submit(allreduce("x", np.ones(1)))
        return handle.synchronize()[0]

    assert ranks(2, body) == [2.0, 2.0]


def test_handles_nobody_keeps():
    def body(controller):
        for n in range(20):
            controller.submit(allreduce(f"n{n}", np.ones(3)))
        last = allreduce("last", np.ones(3))
        watched = weakref.ref(last.work)
        controller.submit(last).synchronize()
        del last
        gc.collect()
        wait_for(lambda: not controller._entries)
        controller.submit(Handle(Request("barrier"), Nothing())).synchronize()
        return watched() is None and not controller._unreported

    assert ranks(2, body) == [True, True]


def test_result_is_made_once_and_a_failure_is_told_again():
    def body(controller):
        calls = []

        def finish(work):
            calls.append(1)
            time.sleep(0.01)
            return work.value.copy()

        handle = allreduce("x", np.ones(1))
        handle.finish = finish
        controller.submit(handle)
        got = []
        threads = [
            threading.Thread(target=lambda: got.append(handle.synchronize())) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(calls) == 1 and got[0] is got[1] is handle.synchronize()

        def fail(work):
            raise KeyError("deliberate")

        handle = allreduce("x", np.ones(1))
        handle.finish = fail
        controller.submit(handle)
        for _ in range(2):
            with pytest.raises(KeyError):
                handle.synchronize()
        return controller.submit(allreduce("x", np.ones(1))).synchronize()[0]

    assert ranks(2, body) == [2.0, 2.0]


def test_errors_are_raised_as_copies():
    def body(controller):
        mine = np.ones(2 + controller.engine.rank)
        handle = controller.submit(allreduce("x", mine))
        raised = []
        for _ in range(3):
            with pytest.raises(MismatchError) as caught:
                handle.synchronize()
            raised.append(caught.value)
        assert len({id(each) for each in raised}) == 3
        depths = []
        for each in raised:
            depth, trace = 0, each.__traceback__
            while trace is not None:
                depth, trace = depth + 1, trace.tb_next
            depths.append(depth)
        assert len(set(depths)) == 1 and handle.error.__traceback__ is None

    ranks(2, body)


@pytest.mark.parametrize("halves", [False, True])
def test_halves_on_the_host_are_calculated_in_float32(halves):
    """Also by an engine that sums those on a device itself; the fake one refuses float16."""

    def body(controller):
        controller.engine.halves = halves
        values = np.full(3, 1.0 + controller.engine.rank, dtype="f2")
        return controller.submit(allreduce("half", values)).synchronize().tolist()

    assert ranks(3, body) == [[6.0] * 3] * 3


def steady(controller, handle):
    """Ask, and wait at once: in one call, or, every other time, in two."""
    steady.calls += 1
    if steady.calls % 2:
        controller.run(handle)
        assert handle.done
        return handle.synchronize()
    return controller.submit(handle, True).synchronize()


steady.calls = 0


def test_a_small_one_that_comes_again_takes_one_exchange():
    """Its values travel with the agreement, and the calling thread itself takes part in that."""

    def body(controller):
        engine = controller.engine
        other = np.full(3, 1.0 + engine.rank)
        for _ in range(3):
            steady(controller, allreduce("x", np.ones(3)))
        before = dict(engine.calls)
        for step in range(10):
            got = steady(controller, allreduce("x", other * step))
            assert got.tolist() == [6.0 * step] * 3
        after = dict(engine.calls)
        steady(controller, Handle(Request("barrier", "end"), Nothing()))
        return after["control"] - before["control"], after["data"] - before["data"]

    assert ranks(3, body) == [(10, 0)] * 3


@pytest.mark.parametrize("size", [2, 4, 9])
def test_at_once_and_later_small_and_long_in_any_order(size):
    """Ranks of which some wait at once and some later still agree on how long messages are."""

    def body(controller):
        rank = controller.engine.rank
        alike, own = random.Random(1), random.Random(100 + rank)
        for step in range(60):
            lengths = [alike.choice([0, 1, 3, 512, 513, 2000]) for _ in range(alike.choice([1, 3]))]
            handles = {}
            for n, length in enumerate(lengths):
                op = alike.choice([Op.SUM, Op.MAX])
                values = np.full(length, float(rank + n + step))
                handles[n] = allreduce(f"n{n} {length}", values, op), op
            order = list(handles)
            if own.random() < 0.5:  # those that wait at once do so in the same order
                for n in order:
                    steady(controller, handles[n][0])
            else:
                own.shuffle(order)
                for n in order:
                    controller.submit(handles[n][0])
            for n, (handle, op) in handles.items():
                total = sum(r + n + step for r in range(size))
                want = total if op is Op.SUM else size - 1 + n + step
                assert (handle.synchronize() == want).all()
            if own.random() < 0.2:
                time.sleep(0.001)
            if alike.random() < 0.2:
                steady(controller, Handle(Request("barrier"), Nothing()))

    ranks(size, body, threads=Threads.SERIALIZED)


def test_two_threads_wait_for_the_same_small_one():
    """One of them takes part in the exchange, the other one waits for that."""

    def both(handle):
        got = []
        threads = [
            threading.Thread(target=lambda: got.append(handle.synchronize()[0])) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return got

    def body(controller):
        for step in range(20):
            handle = controller.submit(allreduce("x", np.full(2, float(step))), True)
            assert both(handle) == [2.0 * step] * 2

    ranks(2, body)


@pytest.mark.parametrize("capacity", [1, 2])
def test_threads_that_wait_at_once_while_bits_are_given_to_others(capacity):
    """What a thread looks up before it has the turn must not undo what a cycle changes."""

    def body(controller):
        def asks(number):
            for step in range(40):
                name = f"{number} {step % 3}"
                assert steady(controller, allreduce(name, np.full(2, float(step))))[0] == 2.0 * step

        threads = [threading.Thread(target=asks, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        cache = controller._negotiation._cache
        assert all(cache.requests[bit] == asked for asked, bit in cache.bits.items())

    ranks(2, body, Settings(cache_capacity=capacity))


class Feed:
    """Stands for the bell, and for a program that asks for arrays while its thread is asleep.

    more: how many requests come in each wait; None: the program waits.
    """

    def __init__(self, controller, more):
        self.controller = controller
        self.more = more
        self.waits = 0
        self.feed(1)

    def feed(self, number):
        for _ in range(number):
            name = f"{len(self.controller._incoming)}"
            request = Request("allreduce", name, "float32", (2,), "Sum")
            found = ArrayReduction((2,), None, (Op.SUM, 1.0, 1.0), (request, Op.SUM, 1.0, 1.0))
            handle = ArrayHandle(self.controller, found, np.ones(2, np.float32))
            self.controller._incoming.append(handle)
            self.controller._entries[name] = handle

    def wait(self, seconds):
        number = self.more[self.waits] if self.waits < len(self.more) else 0
        self.waits += 1
        if number is None:
            self.controller._active_threads.waiting["lock"] = None
        else:
            self.feed(number)


def gathered(controller, more):
    """Return how many requests are gathered, and in how many waits."""
    controller._entries.clear()
    controller._incoming.clear()
    controller._active_threads.waiting.clear()
    controller._bell = Feed(controller, more)
    controller._gather()
    return len(controller._incoming), controller._bell.waits


@pytest.mark.parametrize(
    "more, count, waits",
    [([20, 9, 3, 50], 33, 3), ([0, 50], 1, 1), ([7, 50], 8, 1), ([8, None, 50], 9, 2)],
)
def test_requests_are_gathered_while_many_more_come(more, count, waits):
    controller = ranks(1, lambda running: running)[0]
    assert gathered(controller, more) == (count, waits)


def test_a_known_burst_is_gathered_to_its_end():
    """Though its program pauses in it: it has waited at its end before."""
    controller = ranks(1, lambda running: running)[0]
    pauses = [20, 0, 0, 20, 0, 50]
    assert gathered(controller, pauses) == (21, 2)
    assert gathered(controller, [20, 20, None]) == (41, 3)
    assert gathered(controller, pauses) == (41, 5)
    # A program that does not ask for the rest is not waited for twice.
    assert gathered(controller, [20])[0] == 21
    assert gathered(controller, [20]) == (21, 2)
