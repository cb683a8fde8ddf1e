"""A thread that is woken although handlers of signals run at any moment."""

import os
import signal
import threading
import time

import pytest

from distributed_dl_training._waiting import Bell


def test_a_bell_that_is_rung_before_anybody_waits():
    """The next one does not wait, once; rung from a signal's handler, in the middle of all else."""
    bell = Bell()
    for _ in range(3):
        bell.ring()
    before = signal.signal(signal.SIGUSR1, lambda *_: bell.ring())
    started = time.monotonic()
    bell.wait(60)
    os.kill(os.getpid(), signal.SIGUSR1)
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
        if frame.f_code is not Bell.ring.__code__:  # say, where garbage is collected
            signal.setitimer(signal.ITIMER_REAL, 1e-5)
            return
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
