"""Waiting for other ranks without keeping them from the cores that they need."""

import os
import select
import threading
import time
from typing import Callable, Optional

from distributed_dl_training._core import Pending

# Seconds: while waiting for other ranks, first without and then with pauses of an eighth of the
# time waited.
_SPIN = 0.0002
_LONGEST_NAP = 0.001
# Seconds that a thread of the program waits for other ranks itself.
_LINGER = 0.1
# How often at first it offers its core to other ranks alone, and tests after each time whether they
# have come: after the first time all ranks of this core have, and for those of others to test takes
# less than to let all of this core go round once more.
_YIELDS = 20
_TESTS = 8
# How often it tests before all that: where each rank has a core they come within a microsecond.
_FIRST_TESTS = 3


def comes_soon(
    pending: Pending, longest: float = _LINGER, stays: Optional[Callable[[], bool]] = None
) -> bool:
    """Wait for the other ranks, for ``longest`` seconds; tell whether they have come.

    stays: tells whether to go on.
    """
    done = pending.done
    for _ in range(_FIRST_TESTS):
        if done():
            return True
    for _ in range(_YIELDS):
        os.sched_yield()  # another rank may need this core to come as far
        if stays is not None and not stays():
            return False
        for _ in range(_TESTS):
            if done():
                return True
    started = time.monotonic()
    while not done():
        waited = time.monotonic() - started
        if waited > longest or (stays is not None and not stays()):
            return False
        pause(waited)
    return True


def pause(waited: float) -> None:
    """Let others run, after ``waited`` seconds of waiting for other ranks."""
    if waited > _SPIN:
        time.sleep(min(waited / 8, _LONGEST_NAP))
        return
    # Other threads of this process, and other processes, if they want to.
    # Not time.sleep(0): from Python 3.11 on that takes 0.1 ms.
    select.select((), (), (), 0)
    os.sched_yield()


def raised_in_python(error: BaseException) -> bool:
    """Tell whether Python code raised what the caller has caught, and not a function in C.

    A function in C leaves no frame.  No name is kept for the traceback, which refers to the frames
    of all callers: with a name these would live until garbage is collected.
    """
    return getattr(error.__traceback__, "tb_next", None) is not None


class Bell:
    """Wakes one thread; rung while that does not wait, it does not wait the next time.

    A handler of a signal may raise at any moment of ``ring`` without harm.  One in the middle of
    ``Condition.notify`` leaves a thread to be woken that is awake, which Python 3.6 finds an error.
    """

    def __init__(self) -> None:
        self._silent = threading.Lock()
        self._silent.acquire()

    def ring(self) -> None:
        """Wake it."""
        try:
            self._silent.release()
        except RuntimeError as error:
            if raised_in_python(error):
                raise  # from a handler of a signal

    def wait(self, seconds: float) -> bool:
        """Sleep until it is rung, ``seconds`` at most; -1: for however long that takes.

        Return whether it was rung.
        """
        return self._silent.acquire(True, seconds)
