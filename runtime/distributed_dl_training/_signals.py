"""Signals of the program, held back for a moment; and to wake a thread although they come.

Handlers that are written in Python run in the main thread, between any two steps of it, and may
raise: Ctrl-C does.  Where that must not be, say in the middle of an exchange with other ranks, they
are told afterwards.  ``pthread_sigmask`` would not do: another thread of the process may take the
signal, and Python still runs the handler in the main thread.
"""

import os
import signal
import sys
import threading

# signal wraps these calls in slower ones.
from _signal import getsignal  # type: ignore[import-not-found]
from _signal import signal as set_handler
from threading import get_ident
from typing import Any, Callable, List, Optional, Tuple

_NUMBERS = [n for n in range(1, 32) if n not in (signal.SIGKILL, signal.SIGSTOP)]


class Bell:
    """Wakes one thread; rung while that does not wait, it does not wait the next time.

    A signal may come at any moment of ``ring`` without harm.  One in the middle of
    ``Condition.notify`` leaves a thread to be woken that is awake, which Python 3.6 finds an error.
    """

    def __init__(self) -> None:
        self._silent = threading.Lock()
        self._silent.acquire()

    def ring(self) -> None:
        """Wake it."""
        try:
            self._silent.release()
        except RuntimeError:  # it has been rung
            pass

    def wait(self, seconds: float) -> bool:
        """Sleep until it is rung, ``seconds`` at most; -1: for however long that takes.

        Return whether it was rung.
        """
        return self._silent.acquire(True, seconds)


class HeldSignals:
    """Handlers of Python that are held back from ``hold`` to ``release``; elsewhere without effect.

    A note is in a handler's place meanwhile.  It stays there, and lets the handler run, until the
    program looks at its handlers or sets one by the functions of ``signal``, in the main thread:
    Python can tell of a function when it is called (PEP 669, from 3.12 on), which costs the rest of
    the program nothing.  Elsewhere ``release`` puts handlers back, which takes a seventh of a small
    allreduce.

    Between any two steps of what is here a handler may run: it may raise, set handlers, and ask for
    collectives, which is to hold and to release.

    came: those that have been held back, with their signals.
    """

    def __init__(self) -> None:
        self.came: List[Tuple[Any, int]] = []
        self.holding = False
        self._main = threading.main_thread().ident
        self._seen: Tuple[Any, ...] = ()  # by number
        self._notes: List[Tuple[int, _Note]] = []  # of what was seen
        self._looked = False  # since the program may have set a handler last
        self._told: Optional[bool] = None  # of calls; None: that was not tried yet
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_child)

    def hold(self) -> None:
        """Run no handler until ``release``.

        Raises what a handler raises that runs just before; ``release`` is to be called then, too.
        """
        if get_ident() != self._main:
            return
        while True:
            self.holding = True
            # Once all are in place nothing runs that could change either.
            if self._are_in_place() and self.holding:
                return
            self._put_in_place()

    def release(self) -> None:
        """Run the handlers whose signals have come meanwhile."""
        if get_ident() != self._main or not self.holding:
            return
        self.holding = False
        try:
            if not self._told:
                self.put_back()
        finally:
            if self.came:
                self._run_held()

    def put_back(self) -> None:
        """Put the program's handlers back in their places."""
        if get_ident() != self._main:
            return
        self._looked = False
        for number, _ in self._notes:
            found = getsignal(number)
            if type(found) is _Note:
                _exchange(number, found, found.handler)

    def _are_in_place(self) -> bool:
        for number, note in self._notes:
            if getsignal(number) is not note:
                return False
        return self._looked

    def _put_in_place(self) -> None:
        if self._told is None:
            self._told = _tell_of_calls(self._begins, self._ends)
        self._looked = True  # unless the program sets another one from here on
        seen = tuple(map(getsignal, _NUMBERS))
        if seen != self._seen:
            self._notes = [
                (number, _Note(self, handler))
                for number, handler in zip(_NUMBERS, seen)
                if callable(handler)
            ]
            self._seen = seen
        handlers = dict(zip(_NUMBERS, seen))
        for number, note in self._notes:
            _exchange(number, handlers[number], note)

    def _run_held(self) -> None:
        """Run what was held back, all of it: one that raises does not keep the others from it."""
        while self.came:
            handler, number = self.came.pop(0)
            try:
                handler(number, sys._getframe(1))
            finally:
                if self.came:
                    self._run_held()

    # Whichever thread calls, and however calls nest: these only let ``hold`` look again.

    def _begins(self, *_: Any) -> None:
        self._looked = False
        if not self.holding:
            self.put_back()

    def _ends(self, *_: Any) -> None:
        self._looked = False

    def _begin_child(self) -> None:
        """In a forked child nothing is held back: what would release it is not there."""
        self.holding = False
        self._main = get_ident()
        del self.came[:]
        self.put_back()


def _exchange(number: int, found: Any, handler: Any) -> None:
    """Put a handler in the place of what was found there, if that is still there.

    Handlers of signals that have come run before it is done, and may have set another one.
    """
    before = set_handler(number, handler)
    while before is not found:
        found, handler = handler, before
        before = set_handler(number, handler)


# Of the tools that Python tells, by number, those that PEP 669 sets aside for nothing else.
_TOOLS = (3, 4)


def _tell_of_calls(begins: Callable[..., Any], ends: Callable[..., Any]) -> bool:
    """Let Python tell when the program looks at its handlers or sets one; False if it cannot."""
    monitoring: Any = getattr(sys, "monitoring", None)
    functions = (signal.signal, signal.getsignal)
    if monitoring is None or any(each.__module__ != signal.__name__ for each in functions):
        return False  # what another has put in their place need not be what libraries call
    for tool in _TOOLS:
        try:
            monitoring.use_tool_id(tool, __name__)
        except ValueError:  # somebody has it
            continue
        events = monitoring.events
        monitoring.register_callback(tool, events.PY_START, begins)
        monitoring.register_callback(tool, events.PY_RETURN, ends)
        for each in functions:
            monitoring.set_local_events(tool, each.__code__, events.PY_START | events.PY_RETURN)
        return True
    return False


class _Note:
    """Is in a handler's place.

    It is there for a moment more if another handler raises while they are put back, and does what
    its own does: whatever the program does with what it finds there.
    """

    __slots__ = ("_held", "handler")

    def __init__(self, held: HeldSignals, handler: Any) -> None:
        self._held = held
        self.handler = handler.handler if type(handler) is _Note else handler

    def __call__(self, number: int, frame: Any) -> None:
        if self._held.holding:
            self._held.came.append((self.handler, number))
        else:
            self.handler(number, frame)


# They are the process's, whichever groups of ranks it has.
held_signals = HeldSignals()
