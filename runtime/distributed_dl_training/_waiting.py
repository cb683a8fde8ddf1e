"""Waiting for other ranks without keeping them from the cores that they need."""

import os
import select
import time
from typing import Any, Sequence

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


def comes_soon(
    pending: Pending, reasons_to_stop: Sequence[Any] = (), longest: float = _LINGER
) -> bool:
    """Wait for the other ranks, for ``longest`` seconds; tell whether they have come.

    reasons_to_stop: not for so long either once there is one.
    """
    done = pending.done
    for _ in range(_YIELDS):
        os.sched_yield()  # another rank may need this core to come as far
        for _ in range(_TESTS):
            if done():
                return True
    started = time.monotonic()
    while not done():
        waited = time.monotonic() - started
        if waited > longest or reasons_to_stop:
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
