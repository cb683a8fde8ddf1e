"""An exchange through memory that the ranks of one node share.

A rank writes what it has to say where all others see it, and then that it has: no message is sent.
"""

from itertools import cycle
from typing import Any, NamedTuple, Optional

from distributed_dl_training._core import Array, PeerLostError

# Bytes of a segment, at most, that there is room for.
_LONGEST = 8192
# Bytes that processors hand to each other at a time, at most.
_LINE = 128
# Exchanges are numbered up to here, and then anew: a number is a byte, which is written at once.
# It is even, so that of two in succession each has its own half of the memory.
_NUMBERS = 254


class _Half(NamedTuple):
    """Memory of every other exchange: a rank may be one ahead of those that still read.

    flags: of each rank, the number of the exchange that it has last written for.
    segments: one behind the other, in the length of the exchange.
    """

    flags: memoryview
    segments: memoryview


class SharedMemory:
    """Memory of the ranks of one communicator, which are on one node."""

    def __init__(self, mpi: Any, comm: Any) -> None:
        """Allocate it; collective, and to be used once all ranks have.

        Raises what MPI raises where it cannot.
        """
        self.mpi, self.comm = mpi, comm
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        half = _LINE + self.size * _LONGEST
        self._window = mpi.Win.Allocate_shared(0 if self.rank else 2 * half, 1, comm=comm)
        memory = memoryview(self._window.Shared_query(0)[0]).cast("B")
        self.halves = [
            _Half(memory[at : at + self.size], memory[at + _LINE : at + half]) for at in (0, half)
        ]
        self._window.Lock_all()
        self.sync = self._window.Sync  # what is written before it is seen before what is after it
        if self.rank == 0:
            for each in self.halves:
                each.flags[:] = bytes(self.size)
            self.sync()
        self.next_number = cycle(range(1, 1 + _NUMBERS)).__next__

    def takes(self, result: Array) -> bool:
        """Tell whether there is room for an exchange that fills ``result``."""
        return result.size <= _LONGEST * self.size

    def free(self) -> None:
        """Give it back; collective."""
        self._window.Unlock_all()
        self._window.Free()


class SharedGather:
    """Fills the segments of ``result`` with what the other ranks have in theirs.

    All that there are over one memory are started in the same order on all ranks; what has been
    started is waited for before the next start.
    """

    def __init__(self, memory: SharedMemory, result: Array) -> None:
        """Prepare it; ``result`` (uint8) has one segment for each rank."""
        self._memory = memory
        self._rank = rank = memory.rank
        self._result = whole = memoryview(result)
        step = len(whole) // memory.size
        own = slice(rank * step, (rank + 1) * step)
        self._own = whole[own]
        self._places = [
            (flags, segments[own], segments[: len(whole)]) for flags, segments in memory.halves
        ]
        self._complete = [bytes([number]) * memory.size for number in range(1 + _NUMBERS)]
        self._next_number, self._sync = memory.next_number, memory.sync
        self._progress = memory.comm.Iprobe
        self._number = 0
        self._tested = False  # since the start

    def start(self) -> "SharedGather":
        """Start the exchange; ``done`` tells when it is complete."""
        self._number = number = self._next_number()
        flags, own, _ = self._places[number & 1]
        own[:] = self._own
        self._sync()
        flags[self._rank] = number
        self._tested = False
        return self

    def done(self) -> bool:
        number = self._number
        flags, _, everything = self._places[number & 1]
        if flags == self._complete[number]:
            self._sync()
            self._result[:] = everything
            return True
        if self._tested:  # not at once: they come soon, as a rule
            try:
                self._progress()  # other ranks may need what MPI has under way here to come as far
            except self._memory.mpi.Exception as error:
                raise PeerLostError(f"MPI: {error}") from error
        self._tested = True
        return False

    def free(self) -> None:
        """Let go of the memory, which is the group's; not while it is under way."""
        del self._places[:]


def share(mpi: Any, comm: Any) -> Optional[SharedMemory]:
    """Return memory of the ranks of ``comm``, one node's; None if some cannot; collective."""
    made = None
    try:
        made = SharedMemory(mpi, comm)
    except (mpi.Exception, NotImplementedError):
        pass  # messages do as well
    return None if comm.allreduce(made is None, op=mpi.LOR) else made
