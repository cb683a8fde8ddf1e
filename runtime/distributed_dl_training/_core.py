"""What every engine and every framework module shares: operations, errors, agreement.

Nothing here knows MPI.  An engine moves flat buffers; this module sees to it that all ranks
mean the same thing before any buffer moves.
"""

import enum
import hashlib
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

import numpy

if TYPE_CHECKING:
    from typing import Protocol

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


class NotInitializedError(ValueError):
    """A call that needs ranks came before init() or after shutdown().

    It is a ValueError because that is what Horovod raises, and what its users catch.
    """


class MPIUnavailableError(RuntimeError):
    """mpi4py is not installed, or it finds no MPI library to load."""


class MismatchError(RuntimeError):
    """The ranks did not ask for the same collective.

    Every rank gets the same text.  ``requests`` holds what each rank asked for, by rank.
    No data has moved, and the ranks are still in step: a program may go on.
    """

    def __init__(self, text: str, requests: Sequence[str]) -> None:
        super().__init__(text)
        self.requests = tuple(requests)


class Engine(Protocol):
    """What moves data between the ranks of one group.

    All buffers are one-dimensional, contiguous and in native byte order.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    world_size: int  # ranks in the whole job, of which ``size`` are in this group
    threads_supported: bool

    def allreduce(self, values: Array, op: Op) -> None:
        """Reduce ``values`` (bool excepted, at least one) in place; op is not AVERAGE."""

    def broadcast(self, data: Array, root: int) -> None:
        """Replace ``data`` (uint8) on every rank by the root's."""

    def allgather(self, data: Array, counts: Sequence[int]) -> Array:
        """Return all ranks' ``data`` (uint8) in rank order; ``counts[r]`` is rank r's length."""
        raise NotImplementedError

    def same_group(self, comm: Any) -> bool:
        """Tell whether ``comm``, as given to init, means the ranks of this engine."""
        raise NotImplementedError

    def alive(self) -> bool:
        """Tell whether the layer below still takes calls."""
        raise NotImplementedError

    def abort(self, code: int) -> None:
        """End every process of the job, with exit code ``code`` where the launcher obeys."""

    def close(self) -> None:
        """Free what the engine holds; collective."""

    def finalize(self) -> None:
        """Undo at the end of the process what starting the engine began, if it began it."""


def describe(call: str, name: Optional[str] = None, **facts: str) -> str:
    """Return one line that says what a rank asks for; ranks agree if the lines are equal.

    Facts keep the order in which they are given, so that equal requests give equal lines.
    """
    shown: List[Tuple[str, str]] = [] if name is None else [("name", repr(str(name)))]
    shown.extend(facts.items())
    return "{}({})".format(call, ", ".join("{}={}".format(*fact) for fact in shown))


def fingerprint(request: str) -> int:
    """Return a hash of ``request`` in [0, 2**63).

    63 bits, so that its negative fits an int64 as well.  It must not be Python's hash(),
    which is salted differently in every process.
    """
    digest = hashlib.blake2b(request.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def agree(engine: Engine, number: int, request: str) -> None:
    """Return once all ranks have asked for the same thing; collective.

    One reduction of 16 bytes: the largest fingerprint and the largest negated one, which is
    the smallest.  No rank's result is known before every rank has entered, so this is also a
    barrier.

    number: how many collectives came before on this engine, for the text only.
    Raises MismatchError, with the same text on every rank.
    """
    if engine.size == 1:
        return
    value = fingerprint(request)
    extremes = numpy.array([value, -value], dtype=numpy.int64)
    engine.allreduce(extremes, Op.MAX)
    if extremes[0] == -extremes[1]:
        return
    requests = gather_texts(engine, request)
    raise MismatchError(mismatch_text(number, requests), requests)


def gather_integers(engine: Engine, value: int) -> List[int]:
    """Return every rank's ``value`` (an int64), in rank order; collective."""
    data = numpy.array([value], dtype=numpy.int64).view(numpy.uint8)
    gathered = engine.allgather(data, [data.size] * engine.size)
    return [int(one) for one in gathered.view(numpy.int64)]


def gather_texts(engine: Engine, text: str) -> List[str]:
    """Return every rank's ``text``, in rank order; collective."""
    data = numpy.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=numpy.uint8)
    counts = gather_integers(engine, data.size)
    joined = engine.allgather(data, counts).tobytes()
    texts = []
    start = 0
    for count in counts:
        texts.append(joined[start : start + count].decode("utf-8", "surrogatepass"))
        start += count
    return texts


def mismatch_text(number: int, requests: Sequence[str]) -> str:
    """Return the text of a MismatchError: which ranks asked for what, lowest rank first."""
    ranks: Dict[str, List[int]] = {}
    for rank, request in enumerate(requests):
        ranks.setdefault(request, []).append(rank)
    lines = [f"the ranks do not agree on collective number {number}:"]
    for request, members in sorted(ranks.items(), key=lambda item: item[1]):
        label = "rank" if len(members) == 1 else "ranks"
        lines.append(f"  {label} {fold_ranks(members)}: {request}")
    lines.append("")
    lines.append("hint: all ranks must make the same calls in the same order with equal arguments")
    return "\n".join(lines)


def fold_ranks(ranks: Sequence[int]) -> str:
    """Return ascending ranks as text with runs folded: [0, 1, 2, 5] gives ``0-2,5``."""
    runs: List[List[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
