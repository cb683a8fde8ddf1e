"""What every engine and every framework module shares: operations, errors, the engine's interface.

Nothing here knows MPI or a framework.  An engine moves flat arrays; ``_agreement`` sees to it that
all ranks mean the same thing before any array moves.
"""

import enum
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence

import numpy

if TYPE_CHECKING:
    from typing import Protocol as Protocol

    from numpy.typing import NDArray

    Array = NDArray[Any]
else:  # Python 3.6 and 3.7 have no Protocol, numpy below 1.20 has no NDArray
    Protocol = object
    Array = numpy.ndarray


class Op(enum.Enum):
    """How allreduce combines the ranks' values; the values are the names users read."""

    SUM = "Sum"
    AVERAGE = "Average"
    MIN = "Min"
    MAX = "Max"
    PRODUCT = "Product"
    ADASUM = "Adasum"

    # Each is one object; that of Enum is a function of Python, called for each tensor.
    __hash__ = object.__hash__


class Threads(enum.Enum):
    """Which threads of a process may call the engine."""

    MULTIPLE = "multiple"  # any, at any time
    SERIALIZED = "serialized"  # any, one at a time: the program must not use MPI itself meanwhile
    FUNNELED = "funneled"  # only the one that started it: no communication thread


class NotInitializedError(ValueError):
    """A call that needs ranks came before init() or after shutdown().

    It is a ValueError because that is what Horovod raises, and what its users catch.
    """


class EngineUnavailableError(RuntimeError):
    """The engine that was asked for cannot run here."""


class MPIUnavailableError(EngineUnavailableError):
    """mpi4py is not installed, or it finds no MPI library to load."""


class CollectiveError(RuntimeError):
    """A collective has failed; what follows says how.  Horovod's name is HorovodInternalError."""


class MismatchError(CollectiveError):
    """The ranks did not ask for the same collective.

    Every rank gets the same text.  ``requests`` holds what each rank asked for, by rank.
    No data has moved, and the ranks are still in step: a program may go on.
    """

    def __init__(self, text: str, requests: Sequence[str]) -> None:
        super().__init__(text)
        self.requests = tuple(requests)

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.requests)  # so that it can be copied and pickled


class DuplicateNameError(CollectiveError, ValueError):
    """A collective of this name is already under way in this process."""


class ArgumentError(CollectiveError, ValueError, TypeError):
    """What is wrong with arguments, by the rules of Horovod: it raises the one or the other."""


class PeerLostError(CollectiveError):
    """Another rank is gone, or the connection to it: nothing more can be exchanged."""


class StallError(CollectiveError):
    """Some ranks did not take part within the limit; the text names them and the tensors."""


class _Forks:
    """Which process this is, where Python tells of forks (from 3.7 on); else 0."""

    def __init__(self) -> None:
        self.pid = 0
        if hasattr(os, "register_at_fork"):
            self._note()
            os.register_at_fork(after_in_child=self._note)

    def _note(self) -> None:
        self.pid = os.getpid()


forks = _Forks()


class Pending(Protocol):
    """A transfer that has been started."""

    def done(self) -> bool:
        """Move it on, and tell whether it is complete; raises what the engine raises."""
        raise NotImplementedError


class Transfer:
    """A nonblocking call of the layer below, which can be made again and again.

    A handler of a signal may run, and raise, between any two steps of Python.  ``started`` is right
    all the same: the call and the note of its request are one step, made by functions in C.
    """

    def __init__(self, call: Callable[..., Any], *arguments: Any) -> None:
        """call: starts the transfer and returns its request; a function in C."""
        self.requests: List[Any] = []
        self._call = call
        self._arguments = [[argument] for argument in arguments]

    @property
    def started(self) -> bool:
        """Whether it was started since ``reset``."""
        return bool(self.requests)

    def start(self) -> None:
        """Start it.  Raises what the layer below raises."""
        self.requests.extend(map(self._call, *self._arguments))

    def disarm(self) -> None:
        """Let ``start`` start nothing, also one that was interrupted just before it does."""
        self._arguments[0].clear()

    def reset(self) -> None:
        """Prepare it to be started again; not while it is under way."""
        self.requests.clear()

    def done(self) -> bool:
        """Make progress, and tell whether it is complete.  Raises PeerLostError."""
        raise NotImplementedError

    def result(self, values: Array) -> Array:
        """Return a new array of what ``values`` were reduced to, once it is complete."""
        return values.copy()


class Engine(Protocol):
    """What moves data between the ranks of one group.

    All arrays are one-dimensional, contiguous and in native byte order.  Two kinds of calls: short
    ones by which ranks agree (``prepare_reductions``, ``start_gather``), which never block, and
    those that move tensors, which return when the data is there.  Both are collective, and each
    kind is called in the same order on every rank.  A failure of the layer below is a
    PeerLostError.

    One method for each thing that only the layer below can do, which makes them many; whatever can
    be made of these is made of them, once, outside.
    """

    name: str  # mpi, gloo, nccl or single
    rank: int
    size: int
    local_rank: int  # among the ranks of this group that share a node
    local_size: int
    cross_rank: int  # this node's place among the group's nodes
    cross_size: int
    world_size: int  # ranks in the whole job, of which ``size`` are in this group
    threads: Threads
    devices: bool  # whether it takes arrays that lie on a device; else they come by the host
    halves: bool  # whether it sums float16 on a device itself; else that is done in float32

    def prepare_reductions(
        self, words: Array, values: Optional[Array], op: Optional[Op]
    ) -> List[Transfer]:
        """Return what reduces ``words`` (int64) by bitwise AND, in place, and ``values`` by op.

        Values are of (u)int8, int32, int64, float32 or float64, at least one; the last transfer has
        their result.  Other ranks may count on this one once the first has been started.
        """
        raise NotImplementedError

    def start_gather(self, data: Array, counts: Sequence[int], result: Array) -> Pending:
        """Fill ``result`` with all ranks' ``data`` (uint8) in rank order; see ``allgather``."""
        raise NotImplementedError

    def allreduce(self, values: Array, op: Op) -> None:
        """Reduce ``values`` (bool excepted, at least one) in place; op is not AVERAGE."""

    def broadcast(self, data: Array, root: int) -> None:
        """Replace ``data`` (uint8) on every rank by the root's."""

    def allgather(self, data: Array, counts: Sequence[int]) -> Array:
        """Return all ranks' ``data`` (uint8) in rank order; ``counts[r]`` is rank r's length."""
        raise NotImplementedError

    def alltoall(self, data: Array, sent: Sequence[int], received: Sequence[int]) -> Array:
        """Send the r-th piece of ``data`` (uint8) to rank r; return what came, in rank order.

        ``sent[r]`` and ``received[r]`` are bytes to and from rank r.
        """
        raise NotImplementedError

    def reducescatter(self, values: Array, counts: Sequence[int], op: Op) -> Array:
        """Reduce ``values`` and return this rank's piece; ``counts[r]`` elements are rank r's."""
        raise NotImplementedError

    def subset(self, ranks: Sequence[int]) -> Optional["Engine"]:
        """Return an engine over these ranks, None on the others; collective over all of them."""
        raise NotImplementedError

    def answer(self, status: str) -> None:
        """Let other ranks know that this one lives and what it does; never blocks.

        Without effect once the layer below takes no calls any more.
        Any thread may call this and ``probe``, but only one at a time.
        """

    def probe(self, seconds: float) -> Dict[int, Optional[str]]:
        """Return the status of every other rank, None for one that does not answer in time."""
        raise NotImplementedError

    def same_group(self, comm: Any) -> bool:
        """Tell whether ``comm``, as given to init, means the ranks of this engine."""
        raise NotImplementedError

    def alive(self) -> bool:
        """Tell whether the layer below still takes calls."""
        raise NotImplementedError

    def abort(self, code: int) -> None:
        """End every process of the job, with exit code ``code`` where the launcher obeys.

        What was written and flushed before gets the time to be read by the launcher.
        """

    def close(self) -> None:
        """Free what the engine holds; collective, unless a peer is lost."""

    def finalize(self) -> None:
        """Undo at the end of the process what starting the engine began, if it began it."""


def elements(shape: Sequence[Any]) -> int:
    """Return how many elements a tensor of this shape has, or a group of tensors of these."""
    if shape and isinstance(shape[0], tuple):
        return sum(map(elements, shape))
    count = 1
    for length in shape:
        count *= length
    return count


def part_name(name: Optional[str], part: Any) -> Optional[str]:
    """Return the name of a part of a collective; None if that has no name."""
    return None if name is None else f"{name}.{part}"


def name_ranks(ranks: Sequence[int]) -> str:
    """Return ascending ranks as words: ``rank 3``, ``ranks 0-2,5``."""
    return ("rank " if len(ranks) == 1 else "ranks ") + fold_ranks(ranks)


def fold_ranks(ranks: Sequence[int]) -> str:
    """Return ascending ranks as text with runs folded: [0, 1, 2, 5] gives ``0-2,5``."""
    runs: List[List[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
