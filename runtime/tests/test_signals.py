"""Handlers of signals that are held back, and a thread that is woken although they come."""

import os
import signal
import sys
import threading
import time

import pytest

from distributed_dl_training import _signals
from distributed_dl_training._signals import Bell, HeldSignals

told = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="Python tells of calls from 3.12 on (PEP 669)"
)


@pytest.fixture
def handlers():
    """Let two signals be noted, the second one by raising; put what was there back."""
    noted = []

    def first(number, frame):
        noted.append("first")

    def second(number, frame):
        noted.append("second")
        raise KeyError("deliberate")

    before = signal.signal(signal.SIGUSR1, first), signal.signal(signal.SIGUSR2, second)
    yield noted
    assert signal.getsignal(signal.SIGUSR1) is first
    assert signal.getsignal(signal.SIGUSR2) is second
    signal.signal(signal.SIGUSR1, before[0])
    signal.signal(signal.SIGUSR2, before[1])


def send(number):
    os.kill(os.getpid(), number)
    for _ in range(3):  # Python looks for signals between two steps
        pass


def test_held_back_and_told_in_order(handlers):
    held = HeldSignals()
    for _ in range(2):
        held.hold()
        send(signal.SIGUSR1)
        send(signal.SIGUSR1)
        send(signal.SIGUSR2)
        assert handlers == [] and len(held.came) == 3
        with pytest.raises(KeyError):
            held.release()
        assert handlers == ["first", "first", "second"] and held.came == []
        send(signal.SIGUSR1)  # not held
        assert handlers.pop() == "first"
        del handlers[:]


def test_ctrl_c_is_raised_afterwards(handlers):
    held = HeldSignals()
    held.hold()
    send(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        held.release()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_that_are_exchanged_are_found(handlers):
    held = HeldSignals()
    held.hold()
    held.release()
    noted = []
    before = signal.signal(signal.SIGUSR1, lambda *_: noted.append("new"))
    held.hold()
    send(signal.SIGUSR1)
    assert noted == []
    held.release()
    assert noted == ["new"]
    signal.signal(signal.SIGUSR1, before)


@pytest.fixture
def looks(monkeypatch):
    """Count how often handlers are looked at."""
    counted = []
    look = HeldSignals._look
    monkeypatch.setattr(HeldSignals, "_look", lambda held: (counted.append(None), look(held)))
    return counted


def hold_and_release(held, times=3):
    for _ in range(times):
        held.hold()
        held.release()


@told
def test_handlers_are_looked_at_after_a_change_alone(handlers, looks):
    held = HeldSignals()
    hold_and_release(held)
    assert len(looks) == 1
    signal.signal(signal.SIGUSR1, signal.getsignal(signal.SIGUSR1))
    hold_and_release(held)
    assert len(looks) == 2


@told
def test_while_signal_signal_is_under_way_handlers_are_looked_at_each_time(handlers, looks):
    """A handler that runs in its middle, and asks for collectives, does not know what it sets."""
    held = HeldSignals()
    hold_and_release(held)
    del looks[:]
    with pytest.raises(TypeError):
        signal.signal(signal.SIGUSR1, "no handler")
    hold_and_release(held)
    assert len(looks) == 3
    signal.signal(signal.SIGUSR1, signal.getsignal(signal.SIGUSR1))
    hold_and_release(held)
    assert len(looks) == 4


def test_where_python_tells_nothing_handlers_are_looked_at_each_time(handlers, looks, monkeypatch):
    """Another tool has the places, or another function is there."""
    if hasattr(sys, "monitoring"):
        taken = [tool for tool in (3, 4) if sys.monitoring.get_tool(tool) is None]
        for tool in taken:
            sys.monitoring.use_tool_id(tool, "a test")
    try:
        monkeypatch.setattr(_signals, "_changes", [])
        held = HeldSignals()
    finally:
        if hasattr(sys, "monitoring"):
            for tool in taken:
                sys.monitoring.free_tool_id(tool)
    hold_and_release(held)
    monkeypatch.setattr(_signals, "_changes", [])
    monkeypatch.setattr(signal, "signal", lambda *given: None)
    hold_and_release(HeldSignals())
    assert len(looks) == 6
    held.hold()
    send(signal.SIGUSR1)
    assert handlers == []
    held.release()
    assert handlers == ["first"]


def test_one_that_raises_while_they_are_put_back_loses_none(handlers):
    """Whatever is left over does what it did, and is put back the next time."""
    held = HeldSignals()
    held.hold()
    held.holding = False  # as between the steps of ``release``
    with pytest.raises(KeyError):
        send(signal.SIGUSR2)
    send(signal.SIGUSR1)
    assert handlers == ["second", "first"]
    held.hold()
    send(signal.SIGUSR1)
    assert handlers == ["second", "first"]
    held.release()
    assert handlers == ["second", "first", "first"]


@pytest.mark.parametrize("between", [signal.SIG_IGN, lambda *_: None])
def test_what_was_left_is_the_programs_to_put_back(handlers, between):
    """It finds ours where its own was, sets another one, and puts back what it has found."""
    held = HeldSignals()
    held.hold()
    held.holding = False  # as between the steps of ``release``
    with pytest.raises(KeyError):
        send(signal.SIGUSR2)
    found = signal.signal(signal.SIGUSR1, between)
    hold_and_release(held)
    signal.signal(signal.SIGUSR1, found)
    send(signal.SIGUSR1)
    hold_and_release(HeldSignals())
    hold_and_release(held)
    send(signal.SIGUSR1)
    assert handlers == ["second", "first", "first"]


def test_another_thread_holds_nothing(handlers):
    held = HeldSignals()
    thread = threading.Thread(target=held.hold)
    thread.start()
    thread.join()
    send(signal.SIGUSR1)
    assert handlers == ["first"]
    thread = threading.Thread(target=held.release)
    thread.start()
    thread.join()


def test_another_thread_lets_go_of_nothing(handlers):
    """It releases what it has not held, while the main thread is in the middle of an exchange."""
    held = HeldSignals()
    held.hold()
    thread = threading.Thread(target=held.release)
    thread.start()
    thread.join()
    send(signal.SIGUSR1)
    assert handlers == []
    held.release()
    assert handlers == ["first"]


def test_a_bell_that_is_rung_before_anybody_waits():
    """The next one does not wait, once; rung from a signal's handler, in the middle of all else."""
    bell = Bell()
    for _ in range(3):
        bell.ring()
    before = signal.signal(signal.SIGUSR1, lambda *_: bell.ring())
    started = time.monotonic()
    bell.wait(60)
    send(signal.SIGUSR1)
    bell.wait(60)
    assert time.monotonic() - started < 30
    signal.signal(signal.SIGUSR1, before)
    started = time.monotonic()
    bell.wait(0.05)
    assert time.monotonic() - started > 0.04


def test_signals_while_a_thread_is_woken():
    """Wherever in ``ring`` a handler raises, the thread wakes, and can be woken the next time."""
    bell, woken, over = Bell(), [], threading.Event()

    def sleep():
        while not over.is_set():
            bell.wait(60)
            woken.append(None)

    def interrupt(number, frame):
        raise KeyError("deliberate")

    before = signal.signal(signal.SIGALRM, interrupt)
    thread = threading.Thread(target=sleep)
    thread.start()
    for step in range(100):
        seen = len(woken)
        with pytest.raises(KeyError):
            signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + step))
            while True:
                bell.ring()
        bell.ring()
        end = time.monotonic() + 30
        while len(woken) == seen:
            assert time.monotonic() < end
            time.sleep(0.0002)
    signal.signal(signal.SIGALRM, before)
    over.set()
    bell.ring()
    thread.join()
