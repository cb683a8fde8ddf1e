"""Threads of this process that Python has not started, which may still ask for collectives."""

import os
import threading
from contextlib import contextmanager
from typing import Iterator, Set

_TASKS = "/proc/self/task"
# Threads of the layer below, which ask for nothing, as the kernel numbers them.
_of_engines: Set[str] = set()


def _tasks() -> Set[str]:
    """Return the numbers of this process's threads; empty on a system without /proc."""
    try:
        return set(os.listdir(_TASKS))
    except OSError:
        return set()


@contextmanager
def starting_engine() -> Iterator[None]:
    """Take the threads that start meanwhile for those of the layer below."""
    before, count = _tasks(), threading.active_count()
    try:
        yield
    finally:
        numbers = [getattr(thread, "native_id", None) for thread in threading.enumerate()]
        # Python 3.6 and 3.7 do not tell which of these threads are theirs.
        if None not in numbers or threading.active_count() == count:
            _of_engines.update(_tasks() - before - set(map(str, numbers)))


def is_pythons(thread: threading.Thread) -> bool:
    """Tell whether Python has started the thread, so that it knows when that ends."""
    return not isinstance(thread, threading._DummyThread)


def unseen_threads() -> int:
    """Return how many threads there are that neither Python nor an engine has started."""
    tasks = _tasks()
    _of_engines.intersection_update(tasks)
    known = sum(map(is_pythons, threading.enumerate()))
    return max(0, len(tasks - _of_engines) - known)
