"""An exchange through memory that the ranks of one node share, and who asks whom what it does.

A rank writes what it has to say where all others see it, and then that it has: no message is sent.
The memory is a file that has no name any more once all have opened it, so that nothing is left of
it, however they end.
"""

import contextlib
import mmap
import os
import platform
import tempfile
import threading
from itertools import cycle
from typing import Any, Callable, NamedTuple, Optional, Tuple

from distributed_dl_training._core import Array

# Where files are memory.
_FOLDER = "/dev/shm"
# Bytes of a segment, at most, that there is room for.
_LONGEST = 8192
# Bytes that processors hand to each other at a time, at most.
_LINE = 128
# Tests in quick succession let the layer below carry on each so many times; those after so many,
# which are not as quick, each time.
_SOME = 10
_MANY = 100
# Exchanges are numbered up to here, and then anew: a number is a byte, which is written at once.
# It is even, so that of two in succession each has its own half of the memory.
_NUMBERS = 254


class _Half(NamedTuple):
    """Memory of every other exchange: a rank may be one ahead of those that still read.

    flags: of each rank, the number of the exchange that it has last written for; 0 at first.
    segments: one behind the other, in the length of the exchange.
    """

    flags: memoryview
    segments: memoryview


# What a thread reads and writes before comes before what it does after it on these processors
# (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3, 9.2.2), but for reading
# what it has not written: that is not needed here.
_IN_ORDER = platform.machine() in ("x86_64", "AMD64")


class _Fence:
    """What a thread reads and writes before it is done before what it does after it.

    To release and to acquire a lock is what makes that so on any processor.
    """

    def __init__(self) -> None:
        lock = threading.Lock()
        lock.acquire()
        self._release, self._acquire = lock.release, lock.acquire

    def __call__(self) -> None:
        self._release()
        self._acquire()


class SharedMemory:
    """Memory of the ranks of one group, which are on one node."""

    def __init__(self, file: int, rank: int, size: int) -> None:
        """file: as ``open`` of the system gives it; it may be closed then."""
        self.rank, self.size = rank, size
        half = _half(size)
        memory = memoryview(mmap.mmap(file, _whole(size)))
        self.halves = [
            _Half(memory[at : at + size], memory[at + _LINE : at + half]) for at in (0, half)
        ]
        self.next_number = cycle(range(1, 1 + _NUMBERS)).__next__
        # By who is asked, then by who asks: the last byte of the number of the question.
        self._questions = memory[2 * half :]
        self._asked = self._questions[rank * size : (rank + 1) * size]
        self._answered = bytearray(size)

    def ask(self, rank: int, number: int) -> None:
        """Note a question to a rank, which has been sent."""
        self._questions[rank * self.size + self.rank] = number & 255

    def answered(self, rank: int, number: int) -> None:
        """Note that a question of a rank has been answered."""
        self._answered[rank] = number & 255

    def is_asked(self) -> bool:
        """Tell whether a rank waits for an answer of this one."""
        return self._asked != self._answered

    def takes(self, result: Array) -> bool:
        """Tell whether there is room for an exchange that fills ``result``."""
        return result.size <= _LONGEST * self.size


class SharedGather:
    """Fills the segments of ``result`` with what the other ranks have in theirs.

    All that there are over one memory are started in the same order on all ranks; what has been
    started is waited for before the next start.
    """

    def __init__(self, memory: SharedMemory, result: Array, carry_on: Callable[[], Any]) -> None:
        """Prepare it.

        result: uint8, a segment for each rank.
        carry_on: is called while others are waited for, but seldom at first: they come soon, as a
            rule.  Raises PeerLostError if it finds that one will not.
        """
        self._rank = rank = memory.rank
        self._result = whole = memoryview(result)
        step = len(whole) // memory.size
        own = slice(rank * step, (rank + 1) * step)
        self._own = whole[own]
        self._places = [
            (flags, segments[own], segments[: len(whole)]) for flags, segments in memory.halves
        ]
        self._complete = [bytes([number]) * memory.size for number in range(1 + _NUMBERS)]
        self._next_number = memory.next_number
        self._fence = None if _IN_ORDER else _Fence()
        self._carry_on = carry_on
        self._number = 0
        self._tests = 0  # since the start

    def start(self) -> "SharedGather":
        """Start the exchange; ``done`` tells when it is complete."""
        self._number = number = self._next_number()
        flags, own, _ = self._places[number & 1]
        own[:] = self._own
        if self._fence is not None:
            self._fence()
        flags[self._rank] = number
        self._tests = 0
        return self

    def done(self) -> bool:
        number = self._number
        flags, _, everything = self._places[number & 1]
        if flags == self._complete[number]:
            if self._fence is not None:
                self._fence()
            self._result[:] = everything
            return True
        self._tests = tests = self._tests + 1
        if tests >= _MANY or not tests % _SOME:
            self._carry_on()
        return False

    def free(self) -> None:
        """Let go of the memory, which is the group's; not while it is under way."""
        del self._places[:]


def share(
    rank: int, size: int, broadcast: Callable[[str], str], all_say: Callable[[bool], bool]
) -> Optional[SharedMemory]:
    """Return memory of all ranks of a group; None if some cannot share it; collective.

    broadcast: returns rank 0's text.
    all_say: returns whether all ranks say yes.
    """
    file, path = _make(_whole(size)) if rank == 0 else (-1, "")
    path = broadcast(path)
    memory = None
    try:
        if rank and path:
            file = os.open(path, os.O_RDWR)  # not there where /dev/shm is another, of a container
        if file >= 0:
            memory = SharedMemory(file, rank, size)
    except (OSError, ValueError):
        pass  # messages do as well
    finally:
        if file >= 0:
            os.close(file)
    everybody = all_say(memory is not None)
    if path and rank == 0:
        with contextlib.suppress(OSError):  # it is gone already
            os.unlink(path)
    return memory if everybody else None


def _half(size: int) -> int:
    return _LINE + size * _LONGEST


def _whole(size: int) -> int:
    return 2 * _half(size) + size * size


def _make(nbytes: int) -> Tuple[int, str]:
    """Return a new file of zeros, and its path; nothing if there cannot be one."""
    try:
        file, path = tempfile.mkstemp(prefix="ddlt-", dir=_FOLDER)
    except OSError:
        return -1, ""
    try:
        os.posix_fallocate(file, 0, nbytes)  # else who writes where there is no room is killed
    except OSError:
        os.close(file)
        os.unlink(path)
        return -1, ""
    return file, path
