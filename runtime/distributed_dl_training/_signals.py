"""Signals of the program, held back for a moment; and to wake a thread although they come.

Handlers that are written in Python run in the main thread, between any two steps of it, and may
raise: Ctrl-C does.  Where that must not be, say in the middle of an exchange with other ranks, they
are told afterwards.  ``pthread_sigmask`` would not do: another thread of the process may take the
signal, and Python still runs the handler in the main thread.
"""

import itertools
import signal
import sys
import threading

# signal wraps these calls in slower ones.
from _signal import getsignal  # type: ignore[import-not-found]
from _signal import signal as set_handler
from threading import get_ident
from typing import Any, Dict, List, Tuple

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

    def wait(self, seconds: float) -> None:
        """Sleep until it is rung, ``seconds`` at most; -1: for however long that takes."""
        self._silent.acquire(True, seconds)


class _Changes:
    """Tells whether the program may have set a handler: ``number`` is another one then.

    It sets them by ``signal.signal``, and Python can tell of a function when it is called (PEP 669,
    from 3.12 on), which costs the rest of the program nothing.  Elsewhere ``number`` is as if there
    were a change each time.
    """

    # Of the tools that Python tells, by number, those that PEP 669 sets aside for nothing else.
    _TOOLS = (3, 4)

    def __init__(self) -> None:
        self.number = _EACH_TIME
        self._numbers = itertools.count()
        monitoring: Any = getattr(sys, "monitoring", None)
        function = signal.signal
        if monitoring is None or function.__module__ != signal.__name__:
            return  # what another has put in its place need not be what libraries call
        for tool in self._TOOLS:
            try:
                monitoring.use_tool_id(tool, __name__)
            except ValueError:  # somebody has it
                continue
            events = monitoring.events
            monitoring.register_callback(tool, events.PY_START, self._begins)
            monitoring.register_callback(tool, events.PY_RETURN, self._ends)
            both = events.PY_START | events.PY_RETURN
            monitoring.set_local_events(tool, function.__code__, both)
            self.number = next(self._numbers)
            return

    def _begins(self, *_: Any) -> None:
        self.number = _EACH_TIME  # also after a call that has raised

    def _ends(self, *_: Any) -> None:
        self.number = next(self._numbers)


# It equals no number, nor itself.
_EACH_TIME = float("nan")
_changes: List[_Changes] = []  # the only one, once it is needed


class HeldSignals:
    """Handlers of Python that are held back from ``hold`` to ``release``; elsewhere without effect.

    came: those that have been held back, with their signals.
    """

    def __init__(self) -> None:
        self.came: List[Tuple[Any, int]] = []
        self.holding = False
        self._main = threading.main_thread().ident
        if not _changes:
            _changes.append(_Changes())
        self._changes = _changes[0]
        self._change: float = _EACH_TIME  # the last one that was looked at
        self._seen: Tuple[Any, ...] = ()
        self._notes: Dict[int, _Note] = {}  # of handlers that Python runs, by number

    def hold(self) -> None:
        """Run no handler until ``release``.

        Raises what a handler raises that runs just before; ``release`` is to be called then, too.
        """
        if get_ident() != self._main:
            return
        change = self._changes.number
        if change != self._change:
            self._look()
            self._change = change
        self.holding = True
        for number, note in self._notes.items():
            set_handler(number, note)

    def _look(self) -> None:
        """Find what there is to hold back."""
        seen = tuple(map(getsignal, _NUMBERS))
        if seen == self._seen:
            return
        self._notes = {
            number: _Note(self, handler)
            for number, handler in zip(_NUMBERS, seen)
            if callable(handler)
        }
        self._seen = seen

    def release(self) -> None:
        """Put the handlers back, and run those whose signals have come meanwhile."""
        if get_ident() != self._main or not self.holding:
            return
        self.holding = False
        for number, note in self._notes.items():
            set_handler(number, note.handler)
        while self.came:
            handler, number = self.came.pop(0)
            handler(number, sys._getframe())


class _Note:
    """Is in a handler's place while it is held back.

    It stays there if another handler raises while they are put back, and does then what its own
    does: whatever the program does with what it finds there.
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
