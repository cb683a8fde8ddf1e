"""How sessions end, in order and otherwise, with threads as ranks and an engine between them."""

import contextlib
import itertools
import os
import signal
import threading
import time

import numpy as np
import pytest

from distributed_dl_training._agreement import Request
from distributed_dl_training._controller import Controller
from distributed_dl_training._core import (
    MismatchError,
    NotInitializedError,
    PeerLostError,
    StallError,
    Threads,
)
from distributed_dl_training._settings import Settings
from distributed_dl_training._stall import StallInspector

from controllers import allreduce, ranks
from fakes import Group, wait_for


def test_an_error_of_the_engine_ends_the_session():
    group = Group(2)

    def body(engine):
        controller = Controller(engine, Settings())
        controller.submit(allreduce("x", np.ones(1))).synchronize()
        if engine.rank == 1:
            engine.allreduce = None  # not callable
        # Longer than what travels with the agreement.
        handles = [controller.submit(allreduce(name, np.ones(1000))) for name in "xy"]
        for handle in handles:
            with pytest.raises(PeerLostError) as caught:
                handle.synchronize()
            if engine.rank == 1:
                assert isinstance(caught.value.__cause__, TypeError)
                with group.changed:
                    group.broken = True
                    group.changed.notify_all()
        with pytest.raises(PeerLostError):
            controller.submit(allreduce("x", np.ones(1)))
        assert controller.ended and controller.failure
        controller.shutdown()
        return engine.closed

    assert group.run(body) == [False, False]


def test_a_rank_that_does_not_answer(capfd):
    settings = Settings(stall_check=0.3, stall_limit=1.5)
    group = Group(2)
    given_up = threading.Event()

    def body(engine):
        controller = Controller(engine, settings)
        controller.submit(allreduce("both", np.ones(1))).synchronize()
        group.silent = True
        if engine.rank == 1:
            assert given_up.wait(50)
            # Rank 0 has sent its values before it gave up.
            assert controller.submit(allreduce("lonely", np.ones(1))).synchronize()[0] == 2.0
            with pytest.raises((StallError, PeerLostError)):
                controller.submit(allreduce("more", np.ones(1))).synchronize()
        else:
            with pytest.raises(StallError) as caught:
                controller.submit(allreduce("lonely", np.ones(1))).synchronize()
            assert "name='lonely'" in str(caught.value)
            assert "rank 1: no answer" in str(caught.value)
            given_up.set()
            with pytest.raises(StallError):
                controller.submit(allreduce("more", np.ones(1)))
        controller.shutdown()

    assert group.run(body) == [None, None]
    assert "rank 0 has made no progress" in capfd.readouterr().err


def test_a_rank_that_calculates_is_waited_for(capfd):
    """Past the limit, because it answers; also with what it asks for last, and at the end."""
    settings = Settings(stall_check=0.3, stall_limit=1.0)

    def body(controller):
        controller.submit(allreduce("both", np.ones(1))).synchronize()
        if controller.engine.rank == 1:
            time.sleep(2.5)
            controller.submit(allreduce("first", np.ones(1))).synchronize()
            controller.submit(allreduce("last", np.ones(1))).synchronize()
            time.sleep(2.5)
        else:
            last = controller.submit(allreduce("last", np.ones(1)))
            controller.submit(allreduce("first", np.ones(1))).synchronize()
            last.synchronize()

    ranks(2, body, settings)
    assert "rank 1: alive, asking for nothing" in capfd.readouterr().err


def slowly(start, pause):
    """Return what starts a gather, and takes so many seconds if it is the last of its cycle."""

    def started(data, counts, result):
        pending = start(data, counts, result)
        time.sleep(pause if data.size != 8 else 0.0)  # the first tells how long the other is
        return pending

    return started


@pytest.mark.parametrize("pause", [0.0, 0.3])
def test_a_request_that_is_passed_over_is_reported_and_ends(capfd, pause):
    """Others go on, so that there is progress, but one rank waits for what never comes.

    It gives up between cycles: not when it has given its part of one (after ``pause`` seconds), so
    that others are never left inside a collective that they have agreed on.
    """
    settings = Settings(stall_check=0.5, stall_limit=1.5)

    def body(engine):
        if engine.rank == 0:
            engine.start_gather = slowly(engine.start_gather, pause)
        controller = Controller(engine, settings)
        lonely = None
        if engine.rank == 0:
            lonely = controller.submit(allreduce("lonely", np.ones(1)))
        end = time.monotonic() + 20
        with pytest.raises((StallError, PeerLostError)):
            ahead = controller.submit(allreduce("busy", np.ones(1)))
            for name in itertools.cycle(["busier", "busy"]):  # so that each cycle agrees on one
                assert time.monotonic() < end
                before, ahead = ahead, controller.submit(allreduce(name, np.ones(1)))
                before.synchronize()
                time.sleep(0.02)
        if lonely is not None:
            with pytest.raises(StallError, match=r"'lonely'.* is missing on rank 1"):
                lonely.synchronize()
        controller.shutdown()

    assert Group(2).run(body) == [None, None]
    assert "is missing on rank 1" in capfd.readouterr().err


def test_one_leaves_while_another_asks():
    def body(engine):
        controller = Controller(engine, Settings())
        controller.submit(allreduce("x", np.ones(1))).synchronize()
        if engine.rank == 0:
            controller.shutdown()
        else:
            with pytest.raises(MismatchError, match=r"rank 0: shutdown\(\)"):
                controller.submit(allreduce("x", np.ones(1))).synchronize()
            with pytest.raises((MismatchError, NotInitializedError)):
                controller.submit(allreduce("x", np.ones(1)))
            controller.shutdown()
        return engine.closed and controller.ended and controller.failure is None

    assert Group(2).run(body) == [True, True]


def test_leaving_while_threads_ask():
    """Whoever asks at the end gets a result or an error, at once."""

    def body(engine):
        controller = Controller(engine, Settings())
        ends = []

        def asks(number):
            try:
                for _ in range(10000):
                    controller.submit(allreduce(f"t{number}", np.ones(1))).synchronize()
            except (MismatchError, NotInitializedError) as error:
                ends.append(error)

        threads = [threading.Thread(target=asks, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.1 * (1 + engine.rank))
        controller.shutdown()
        for thread in threads:
            thread.join(20)
        return len(ends)

    assert Group(3).run(body) == [4, 4, 4]


def test_groups_that_wait_for_each_other_can_leave():
    worlds, sets = Group(2), Group(2)

    def body(engine):
        world = Controller(engine, Settings())
        subset = Controller(sets.engines[engine.rank], Settings())
        if engine.rank == 0:
            for each in (subset, world):
                each.request_shutdown()
        else:
            with pytest.raises(MismatchError, match="shutdown"):
                world.submit(allreduce("x", np.ones(1))).synchronize()
        for each in (subset, world):
            each.shutdown()

    assert worlds.run(body) == [None, None]


def test_only_its_thread_may_wait_where_mpi_is_funneled():
    def body(controller):
        handle = controller.submit(allreduce("x", np.ones(1)))
        errors = []

        def other():
            try:
                handle.synchronize()
            except RuntimeError as error:
                errors.append(str(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert "FUNNELED" in errors[0]
        assert handle.poll()
        return handle.synchronize()[0]

    assert ranks(2, body, threads=Threads.FUNNELED) == [2.0, 2.0]


@contextlib.contextmanager
def interrupted_once(waits):
    """Send this process the signal of Ctrl-C as soon as ``waits()``; demand that it is raised."""

    def interrupt():
        wait_for(waits)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        yield
    thread.join()


def test_interrupted_while_it_waits():
    """Ctrl-C ends the waiting, not the collective: it can be waited for again."""
    group = Group(2)
    controllers = [Controller(engine, Settings()) for engine in group.engines]
    handle = controllers[0].submit(allreduce("x", np.ones(1)))
    with interrupted_once(lambda: controllers[0]._active_threads.waiting):
        handle.synchronize()
    assert not controllers[0]._active_threads.waiting
    controllers[1].submit(allreduce("x", np.ones(1)))
    assert handle.synchronize()[0] == 2.0
    for controller in controllers:
        controller.request_shutdown()
    for controller in controllers:
        controller.shutdown()


def idle(controller):
    """Tell whether nothing is asked for, and the communication thread is out of its cycle."""
    if controller._entries or not controller._turn.acquire(False):
        return False
    controller._turn.release()
    return True


def repeat(controllers):
    """Let two ranks of this thread agree on a small allreduce, so that it comes again."""
    for _ in range(2):
        for each in controllers:
            each.submit(allreduce("x", np.ones(1)))
        for each in controllers:
            wait_for(lambda each=each: idle(each))


@contextlib.contextmanager
def repeated(controllers):
    """Let them do so, and end them in order."""
    repeat(controllers)
    yield
    for controller in controllers:
        controller.request_shutdown()
    for controller in controllers:
        controller.shutdown()


def test_interrupted_while_it_takes_part_itself():
    """As where another thread does: the collective goes on, and can be waited for again."""
    group = Group(2)
    controllers = [Controller(engine, Settings()) for engine in group.engines]
    with repeated(controllers):
        for step in range(5):
            wait_for(lambda: idle(controllers[0]))
            handle = controllers[0].submit(allreduce("x", np.full(1, float(step))), True)
            with interrupted_once(lambda: controllers[0]._direct):
                handle.synchronize()
            assert not controllers[0]._direct and not handle.done
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            controllers[1].submit(allreduce("x", np.full(1, float(step))))
            assert handle.synchronize()[0] == 2.0 * step


def test_a_handler_of_the_program_asks_for_a_collective():
    """While the main thread takes part in another one, which its own thread then finishes."""
    group = Group(2)
    controllers = [Controller(engine, Settings()) for engine in group.engines]
    results = []

    def handler(number, frame):
        handle = controllers[0].submit(allreduce("stop?", np.ones(1)), True)
        results.append(handle.synchronize()[0])

    def other():
        wait_for(lambda: controllers[0]._direct)
        os.kill(os.getpid(), signal.SIGUSR1)
        for name in ("stop?", "x"):
            controllers[1].submit(allreduce(name, np.ones(1))).synchronize()

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with repeated(controllers):
            thread = threading.Thread(target=other)
            thread.start()
            assert controllers[0].submit(allreduce("x", np.ones(1)), True).synchronize()[0] == 2.0
            thread.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert results == [2.0]


def test_a_lost_rank_while_the_calling_thread_takes_part():
    group = Group(2)
    controllers = [Controller(engine, Settings()) for engine in group.engines]
    repeat(controllers)
    handle = controllers[0].submit(allreduce("x", np.ones(1)), True)

    def lose():
        wait_for(lambda: controllers[0]._direct)
        group.broken = True

    thread = threading.Thread(target=lose)
    thread.start()
    with pytest.raises(PeerLostError, match="deliberate"):
        handle.synchronize()
    thread.join()
    assert controllers[0].failure
    for each in controllers:
        each.shutdown()


def test_interrupted_inside_an_exchange():
    """Where the program's own thread exchanges the ranks are out of step: the session is over."""
    engine = Group(2, Threads.FUNNELED).engines[0]
    controller = Controller(engine, Settings())
    handle = controller.submit(allreduce("x", np.ones(1)))
    with interrupted_once(lambda: controller._negotiation._pending is not None):
        handle.synchronize()
    with pytest.raises(PeerLostError, match="interrupted"):
        handle.synchronize()
    controller.shutdown()
    assert controller.failure and not engine.closed


def test_report_while_what_a_rank_does_changes(capsys):
    """The communication thread goes on while the watchdog asks the others."""
    engine = Group(2).engines[0]
    watch = StallInspector(engine, Settings(stall_check=0.01, stall_limit=0.0))
    first, second = Request("barrier", "first"), Request("barrier", "second")

    def probe(seconds):
        watch.waiting(second)
        return {1: None}

    engine.probe = probe
    watch.waiting(first)
    watch.look(1.0, 0.0, lambda: [])
    watch.close()
    assert "rank 0: waiting to agree on barrier(name='first')" in capsys.readouterr().err


def test_a_watchdog_that_rests_is_woken(capsys):
    """It looks a few times while there is nothing to watch, and again once there is."""
    watch = StallInspector(Group(2).engines[0], Settings(stall_check=0.01, stall_limit=0.0))
    wait_for(lambda: watch._resting)
    watch.enter(Request("barrier", "x"))
    wait_for(lambda: "inside barrier(name='x')" in capsys.readouterr().err)
    watch.leave()
    wait_for(lambda: watch._resting)
    watch.close()
    assert not watch._dog.is_alive()
