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
def make():
    """Make what holds signals back; the tools by which Python tells them of calls are free then."""
    made = []

    def make_one():
        made.append(HeldSignals())
        return made[-1]

    yield make_one
    for each in made:
        each.put_back()
    if hasattr(sys, "monitoring"):
        monitoring = sys.monitoring
        for tool in _signals._TOOLS:
            if monitoring.get_tool(tool) == _signals.__name__:
                for event in (monitoring.events.PY_START, monitoring.events.PY_RETURN):
                    monitoring.register_callback(tool, event, None)
                for function in (signal.signal, signal.getsignal):
                    monitoring.set_local_events(tool, function.__code__, 0)
                monitoring.free_tool_id(tool)


@pytest.fixture
def held(make):
    return make()


class HandlerCalls(list):
    """What has run; second: the second handler."""


@pytest.fixture
def handlers():
    """Let two signals be noted, the second one by raising; put what was there back."""
    noted = HandlerCalls()

    def first(number, frame):
        noted.append("first")

    def second(number, frame):
        noted.append("second")
        raise KeyError("deliberate")

    noted.second = second
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


def test_held_back_and_told_in_order(handlers, held):
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


def test_ctrl_c_is_raised_afterwards(handlers, held):
    held.hold()
    send(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        held.release()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_that_are_exchanged_are_found(handlers, held):
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
def placed(monkeypatch):
    """Count how often notes are put in the handlers' places."""
    counted = []
    place = HeldSignals._put_in_place
    monkeypatch.setattr(
        HeldSignals, "_put_in_place", lambda held: (counted.append(None), place(held))
    )
    return counted


def hold_and_release(held, times=3):
    for _ in range(times):
        held.hold()
        held.release()


@told
@pytest.mark.parametrize("looks", [True, False])
def test_notes_stay_until_the_program_looks_or_sets_one(handlers, placed, looks, held):
    hold_and_release(held)
    assert len(placed) == 1
    assert type(_signals.getsignal(signal.SIGUSR1)) is _signals._Note
    send(signal.SIGUSR1)
    assert handlers == ["first"]
    if looks:
        found = signal.getsignal(signal.SIGUSR1)
    else:
        found = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, found)
    assert found.__name__ == "first"
    hold_and_release(held)
    assert len(placed) == 2
    held.put_back()
    assert _signals.getsignal(signal.SIGUSR1) is found


@told
def test_a_handler_of_another_signal_is_found_although_calls_nest(handlers, held):
    """It runs in the middle of ``signal.signal``, asks for collectives, and does not know of it."""

    class Number(int):
        def __int__(self):  # ``signal`` asks for it before it sets anything
            send(signal.SIGUSR1)
            return int(signal.SIGALRM)

        __index__ = __int__

    noted = []
    before = signal.signal(signal.SIGUSR1, lambda *_: hold_and_release(held))
    alarm = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    hold_and_release(held)
    signal.signal(Number(signal.SIGALRM), lambda *_: noted.append("alarm"))
    held.hold()
    send(signal.SIGALRM)
    assert noted == []
    held.release()
    assert noted == ["alarm"]
    signal.signal(signal.SIGALRM, alarm)
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("place", ["hold", pytest.param("put_back", marks=told)])
@pytest.mark.parametrize("does", ["looks", "sets", "asks"])
def test_whatever_a_handler_does_while_notes_come_and_go(handlers, held, monkeypatch, place, does):
    """The next one runs while notes are put in their places, or back: nothing is lost of it."""
    noted, really = [], _signals.set_handler

    def set_handler(number, handler):
        if number == signal.SIGUSR2 and not noted:
            noted.append(None)
            os.kill(os.getpid(), signal.SIGALRM)  # runs before anything is set
        return really(number, handler)

    def new(number, frame):
        noted.append("new")

    def acts(number, frame):
        if does == "looks":
            signal.getsignal(signal.SIGINT)
        elif does == "sets":
            signal.signal(signal.SIGUSR2, new)
        else:
            hold_and_release(held)

    before = signal.signal(signal.SIGALRM, acts)  # of a higher number
    if place == "put_back":
        hold_and_release(held)
    monkeypatch.setattr(_signals, "set_handler", set_handler)
    (held.hold if place == "hold" else held.put_back)()
    assert noted == [None]
    held.hold()
    for number in (signal.SIGINT, signal.SIGUSR2, signal.SIGALRM):
        assert type(_signals.getsignal(number)) is _signals._Note
    send(signal.SIGUSR2)
    assert noted == [None] and handlers == []
    if does == "sets":
        held.release()
        assert noted == [None, "new"]
    else:
        with pytest.raises(KeyError):
            held.release()
        assert handlers == ["second"]
    held.put_back()
    found = _signals.getsignal(signal.SIGUSR2)
    assert found.__name__ == ("new" if does == "sets" else "second")
    if does == "sets":
        signal.signal(signal.SIGUSR2, handlers.second)
    signal.signal(signal.SIGALRM, before)


@told
def test_a_handler_that_is_set_where_python_tells_nothing_is_found(handlers, held):
    """In a function that traces, such as a debugger's, which sets that of Ctrl-C there."""
    noted = []
    hold_and_release(held)
    before = sys.gettrace()

    def trace(*_):
        signal.signal(signal.SIGINT, lambda *_: noted.append("traced"))

    sys.settrace(trace)
    (lambda: None)()
    sys.settrace(before)
    held.hold()
    send(signal.SIGINT)
    assert noted == []
    held.release()
    assert noted == ["traced"]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_one_that_raises_does_not_keep_the_others_from_running(handlers, held):
    held.hold()
    for number in (signal.SIGUSR2, signal.SIGUSR1, signal.SIGUSR2, signal.SIGUSR1):
        send(number)
    with pytest.raises(KeyError):
        held.release()
    assert handlers == ["second", "first", "second", "first"] and held.came == []


def test_where_python_tells_nothing_notes_do_not_stay(handlers, placed, monkeypatch, held, make):
    """Another tool has the places, or another function is there."""
    if hasattr(sys, "monitoring"):
        taken = [tool for tool in (3, 4) if sys.monitoring.get_tool(tool) is None]
        for tool in taken:
            sys.monitoring.use_tool_id(tool, "a test")
    hold_and_release(held)
    if hasattr(sys, "monitoring"):
        for tool in taken:
            sys.monitoring.free_tool_id(tool)
    monkeypatch.setattr(signal, "signal", lambda *given: None)
    other = make()
    hold_and_release(other)
    assert len(placed) == 6
    for each in (held, other):
        each.hold()
        send(signal.SIGUSR1)
        assert handlers == []
        each.release()
        assert handlers == ["first"]
        assert type(_signals.getsignal(signal.SIGUSR1)) is not _signals._Note
        del handlers[:]


def test_a_thread_that_forks_while_signals_are_held(handlers, held):
    """What holds back is not there in the child, whose handlers run."""
    held.hold()
    codes = []

    def fork():
        child = os.fork()
        if not child:
            left = [type(_signals.getsignal(n)) is _signals._Note for n in _signals._NUMBERS]
            send(signal.SIGUSR1)
            os._exit(10 + len(handlers) + 100 * any(left))
        codes.append(os.waitpid(child, 0)[1] >> 8)

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    held.release()
    held.put_back()
    assert handlers == []
    assert codes == [11 if hasattr(os, "register_at_fork") else 110]


def test_one_that_raises_while_they_are_put_back_loses_none(handlers, held):
    """Whatever is left over does what it did, and is put back the next time."""
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
def test_what_was_left_is_the_programs_to_put_back(handlers, between, held, make):
    """It finds ours where its own was, sets another one, and puts back what it has found."""
    held.hold()
    held.holding = False  # as between the steps of ``release``
    with pytest.raises(KeyError):
        send(signal.SIGUSR2)
    found = signal.signal(signal.SIGUSR1, between)
    hold_and_release(held)
    signal.signal(signal.SIGUSR1, found)
    send(signal.SIGUSR1)
    hold_and_release(make())
    hold_and_release(held)
    send(signal.SIGUSR1)
    assert handlers == ["second", "first", "first"]


def test_another_thread_holds_nothing(handlers, held):
    thread = threading.Thread(target=held.hold)
    thread.start()
    thread.join()
    send(signal.SIGUSR1)
    assert handlers == ["first"]
    thread = threading.Thread(target=held.release)
    thread.start()
    thread.join()


def test_another_thread_lets_go_of_nothing(handlers, held):
    """It releases what it has not held, while the main thread is in the middle of an exchange."""
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
