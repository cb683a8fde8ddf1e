"""The exchange that opens a cycle, through memory that the ranks of a node share.

A rank writes its segment where all ranks of its node see it, and then a flag: no message is sent.
On one node all ranks reduce all segments, to the same bits.  With several nodes, or
many ranks, the first rank of each node does that, reduces the result with the first ranks of other
nodes, and writes it for its node.

The memory is a file without a name once all have opened it: nothing is left of it, however they
end.
"""

import contextlib
import functools
import mmap
import operator
import os
import platform
import tempfile
import threading
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from distributed_dl_training import _reduce
from distributed_dl_training._core import Array, Op, Transfer

# Where files are memory.
_FOLDER = "/dev/shm"
# Bytes of a segment, at most, that there is room for.
_LONGEST = 8192
# Bytes that processors hand to each other at a time, at most.
_LINE = 128
# Ranks of a node, at most, that all read the segments of all others.
_DIRECT = 16
# Tests in quick succession let the layer below make progress each so many times; those after so
# many, which are not as quick, each time.
_SOME = 10
_MANY = 100
# Exchanges are numbered 1 to 254, and then anew: a number is a byte, which is written at once.
# Of two in succession each has its own half of the memory.
_NUMBERS = 254


class _Half(NamedTuple):
    """Memory of every other exchange: a rank may be one ahead of those that still read.

    flags: of each rank, the number of the exchange that it has last written for; 0 at first.
    result_flag: the same of the node's result.
    segments: of all ranks, and after them the node's result.
    """

    flags: memoryview
    result_flag: memoryview
    segments: memoryview


# Stores are seen in their order, and loads are not done before earlier ones, on these processors
# (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3, 9.2.2).
_IN_ORDER = platform.machine() in ("x86_64", "AMD64")


def _fence() -> None:
    """Let what a thread has read and written be done before what it does next, on any processor."""
    with threading.Lock():
        pass


class SharedMemory:
    """Memory of the ranks of one node."""

    def __init__(self, file: int, rank: int, size: int, several_nodes: bool) -> None:
        """Map ``file``, as ``open`` of the system gives it; it may be closed then."""
        self.rank, self.size = rank, size
        self.direct = not several_nodes and size <= _DIRECT
        half, flags = _half(size), _flags(size)
        memory = memoryview(mmap.mmap(file, 2 * half))
        self.halves = [
            _Half(
                memory[at : at + size],
                memory[at + size : at + size + 1],
                memory[at + flags : at + half],
            )
            for at in (0, half)
        ]
        self.quietly = _reduce.quiet_caller()
        self.fence = None if _IN_ORDER else _fence
        # What the flags are that this rank waits for, by number.
        count = size if self.direct or rank == 0 else 1
        self.complete = [bytes([number]) * count for number in range(_NUMBERS + 1)]
        self.flags = [half.flags for half in self.halves]
        self.next = 1  # the number of the next exchange, or of the last one
        # By half: the transfer that has written its words there last, which still says the same.
        self.writers: List[Any] = [None, None]

    def takes(self, nbytes: int) -> bool:
        """Tell whether there is room for an exchange of so many bytes."""
        return nbytes <= _LONGEST


class _Views:
    """One half of the memory, as an exchange sees it: words of all ranks, values, and the results.

    Rows are by rank.
    """

    def __init__(
        self, memory: SharedMemory, half: _Half, words: Array, values: Optional[Array]
    ) -> None:
        rank, size, segments = memory.rank, memory.size, half.segments
        nbytes, more = words.nbytes, 0 if values is None else values.nbytes
        first = (size + 1) * nbytes  # of the values
        self.half = half
        self.own_words = segments[rank * nbytes : (rank + 1) * nbytes]
        self.own_values = segments[first + rank * more : first + (rank + 1) * more]
        self.words = segments[: size * nbytes]
        self.word_rows = numpy.frombuffer(self.words, numpy.int64).reshape(size, -1)
        self.value_rows: Any = ()
        if values is not None:
            flat = numpy.frombuffer(segments, values.dtype, size * values.size, first)
            self.value_rows = flat.reshape(size, -1)
        self.result_words = segments[size * nbytes : first]
        self.result_values = segments[first + size * more : first + (size + 1) * more]


class SharedReduction(Transfer):
    """Reduces words by AND, in place, and values by an operation.

    All of one memory are started in the same order on all ranks; what has been started is waited
    for before the next start.
    """

    def __init__(
        self,
        memory: SharedMemory,
        words: Array,
        values: Optional[Array],
        op: Optional[Op],
        cross: Sequence[Transfer],
        progress: Callable[[], Any],
    ) -> None:
        """Prepare it.

        cross: reduce words and values between the first ranks of the nodes; on these alone.
        progress: is called while others are waited for, but seldom at first: they come soon, as a
            rule.  Raises PeerLostError if it finds that one will not.
        """
        super().__init__(operator.setitem)
        self._memory = memory
        self._words, self._values = words, values
        self._ufunc = None if op is None else _reduce.UFUNCS[op]
        self._quietly = memory.quietly
        self._own_words, self._own_values = _bytes(words), _bytes(values)
        self._views = [_Views(memory, half, words, values) for half in memory.halves]
        self._writes = [
            self._prepare_writes(views, words) for words in (True, False) for views in self._views
        ]
        self._reduce = [self._prepare_reduce(views.value_rows) for views in self._views]
        self._cross = cross
        self._progress = progress
        # The flags that are awaited, by half; those of the last exchange; what they are to be.
        alone = memory.direct or memory.rank == 0
        self._awaited = [half.flags if alone else half.result_flag for half in memory.halves]
        self._flags, self._complete = self._awaited[0], b""
        self._number = self._tests = 0
        self._all_said = b""

    def _prepare_writes(self, views: _Views, words: bool) -> List[List[Any]]:
        """Return what writes the segment, with the words or without, and the flag of this rank.

        Three lists: the arguments of ``operator.setitem``.
        """
        memory, whole = self._memory, slice(None)
        writes = [[views.own_words, whole, self._own_words]] if words else []
        if self._values is not None:
            writes.append([views.own_values, whole, self._own_values])
        writes.append([views.half.flags, memory.rank, 0])
        return [list(column) for column in zip(*writes)]

    def start(self) -> None:
        memory = self._memory
        # Whether this one was started its flag tells: to note that may have been interrupted.
        number = memory.next
        half = number & 1
        if memory.flags[half][memory.rank] == number:
            number = memory.next = number % _NUMBERS + 1
            half = number & 1
        self._number, self._tests = number, 0
        self._flags, self._complete = self._awaited[half], memory.complete[number]
        written = memory.writers[half] is self
        targets, keys, values = self._writes[half + 2 * written]
        for transfer in self._cross:
            transfer.reset()
        values[-1] = number
        if memory.fence is not None:  # the segment is seen before the flag
            list(map(operator.setitem, targets[:-1], keys, values))
            memory.fence()
        self.requests.extend(map(operator.setitem, targets, keys, values))
        if not written:
            memory.writers[half] = self

    def disarm(self) -> None:
        for writes in self._writes:
            writes[0].clear()

    def done(self) -> bool:
        if self._flags.tobytes() != self._complete:
            self._tests = tests = self._tests + 1
            if tests >= _MANY or not tests % _SOME:
                self._progress()
            return False
        memory, views = self._memory, self._views[self._number & 1]
        if memory.fence is not None:
            memory.fence()
        if memory.direct:
            if views.words.tobytes() != self._all_said:
                self._combine_words(views)
            return True
        return self._publish(views) if memory.rank == 0 else self._read(views)

    def result(self, values: Array) -> Array:
        return self._reduce[self._number & 1]() if self._memory.direct else values.copy()

    def _combine_words(self, views: _Views) -> None:
        """Combine the words of this node; all that ranks say is equal as a rule."""
        self._all_said = self._own_words.tobytes() * self._memory.size
        if views.words.tobytes() != self._all_said:
            numpy.bitwise_and.reduce(views.word_rows, axis=0, out=self._words)

    def _prepare_reduce(self, rows: Sequence[Array]) -> Callable[[], Array]:
        """Return what reduces the values of this node; the same bits on all its ranks."""
        quietly, ufunc = self._quietly, self._ufunc
        if ufunc is None or len(rows) < 2:
            return lambda: rows[0].copy()
        if len(rows) == 2:  # in half the time
            return functools.partial(quietly, ufunc, rows[0], rows[1])
        # Without a type, NumPy adds up small integers as int64.
        return functools.partial(quietly, ufunc.reduce, rows, 0, rows[0].dtype)

    def _publish(self, views: _Views) -> bool:
        """Reduce with other nodes, and write the result for this one; tell whether that is done."""
        if not (self._cross and self._cross[0].started):
            self._combine_words(views)
            if self._values is not None:
                self._values[:] = self._reduce[self._number & 1]()
        for transfer in self._cross:
            if not transfer.started:
                transfer.start()
        for transfer in self._cross:
            if not transfer.done():
                return False
        views.result_words[:] = self._own_words
        if self._values is not None:
            views.result_values[:] = self._own_values
        if self._memory.fence is not None:
            self._memory.fence()
        views.half.result_flag[0] = self._number
        return True

    def _read(self, views: _Views) -> bool:
        self._own_words[:] = views.result_words
        if self._values is not None:
            self._own_values[:] = views.result_values
        return True


def _bytes(array: Optional[Array]) -> memoryview:
    if array is None:
        return memoryview(b"")
    data: Any = array.view(numpy.uint8)
    return memoryview(data)


def share(
    rank: int,
    size: int,
    several_nodes: bool,
    broadcast: Callable[[str], str],
    all_agree: Callable[[bool], bool],
) -> Optional[SharedMemory]:
    """Return memory of the ranks of a node; None if some cannot share it; collective.

    rank, size: of the node.
    broadcast: returns the text of the node's first rank.
    all_agree: returns whether all ranks, of all nodes, say yes.
    """
    file, path = _make(2 * _half(size)) if rank == 0 else (-1, "")
    path = broadcast(path)
    memory = None
    try:
        if rank and path:
            file = os.open(path, os.O_RDWR)  # not there where /dev/shm is another, of a container
        if file >= 0:
            memory = SharedMemory(file, rank, size, several_nodes)
    except (OSError, ValueError):
        pass  # messages do as well
    finally:
        if file >= 0:
            os.close(file)
    everybody = all_agree(memory is not None)
    if path and rank == 0:
        with contextlib.suppress(OSError):  # it is gone already
            os.unlink(path)
    return memory if everybody else None


def _flags(size: int) -> int:
    """Return the bytes of the flags of so many ranks and of their result."""
    return -(-(size + 1) // _LINE) * _LINE


def _half(size: int) -> int:
    return _flags(size) + (size + 1) * _LONGEST


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
