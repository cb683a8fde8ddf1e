"""What a rank holds ready for a collective that has been agreed on, and how it is carried out."""

from typing import Any, List, Optional, Sequence

import numpy

from distributed_dl_training import _reduce, _threads
from distributed_dl_training._agreement import Request
from distributed_dl_training._core import Array, Engine, Op, Protocol, elements
from distributed_dl_training._memory import ON_DEVICE, dtype_named, empty, order


class Work(Protocol):
    """One rank's part in one collective; ``value`` is what came of it, once it has run."""

    value: Any

    def run(self, engine: Engine) -> None:
        """Exchange the data; collective."""


class Arithmetic(Protocol):
    """How values are reduced."""

    op: Op
    prescale: float
    postscale: float


class Allreduce:
    """Tensors to be reduced; several of them if they were asked for as a group.

    sources: flat and contiguous, in this order in ``target``.
    target: flat and contiguous; takes the result.  It may be the one source itself.
    arena: the array that ``target`` is a segment of, if it lies in one.
    start: the target's first element in ``arena``.

    Several of these are carried out together: see ``_fusion``.
    """

    arena: Optional[Array] = None
    start = 0

    def __init__(
        self, sources: Sequence[Array], target: Array, op: Op, prescale: float, postscale: float
    ) -> None:
        self.sources = sources
        self.target = target
        self.op = op
        self.prescale = prescale
        self.postscale = postscale
        self.value: Any = target

    def in_arena(self, arena: Optional[Array], start: int) -> "Allreduce":
        """Note where in an arena its target lies; None: other ranks have one, and this one none."""
        self.arena, self.start = arena, start
        return self

    def run(self, engine: Engine) -> None:
        """Do nothing: Fusion carries it out, together with others."""


def zeros(request: Request, local_rank: int) -> Allreduce:
    """Return what a rank that has joined adds to ``request``; it has no use for the result.

    So it neither divides nor scales it: an average of integers, which Horovod's rules have, is a
    scaled sum on the other ranks.
    """
    count, dtype = elements(request.shape), dtype_named(request.dtype)
    if request.dtype.startswith(ON_DEVICE):
        from distributed_dl_training._device import device_zeros

        target: Any = device_zeros(count, dtype, local_rank)
        order(target)
    else:
        target = numpy.zeros(count, dtype=dtype)
    start = request.place[1] if request.place else 0
    op = Op.SUM if request.op == Op.AVERAGE.value else Op(request.op)
    return Allreduce([target], target, op, 1.0, 1.0).in_arena(None, start)


class Nothing:
    """Only the agreement counts, as for a barrier; or all has been done and ``value`` is there."""

    __slots__ = ("value",)

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def run(self, engine: Engine) -> None:
        """Do nothing: to agree is to wait for everybody."""


class Subset:
    """An engine over some ranks; None where this rank is not among them, or there are none."""

    def __init__(self, ranks: Optional[List[int]]) -> None:
        self.ranks = ranks
        self.value: Any = None

    def run(self, engine: Engine) -> None:
        if self.ranks is not None:
            with _threads.starting_engine():
                self.value = engine.subset(self.ranks)


class Broadcast:
    """``data`` is replaced by the root's on every rank."""

    def __init__(self, data: Array, root: int) -> None:
        self.value = data
        self.root = root

    def run(self, engine: Engine) -> None:
        if self.value.nbytes:
            engine.broadcast(as_bytes(self.value), self.root)


class Allgather:
    """``data``, whose rows are ``width`` elements each, from all ranks in rank order."""

    def __init__(self, data: Array, rows: int, width: int) -> None:
        self.value = data
        self.rows = rows
        self.width = width

    def run(self, engine: Engine) -> None:
        data = self.value
        stride = self.width * data.itemsize
        rows = gather_integers(engine, [self.rows])
        if not stride or not sum(rows):
            self.value = data[:0]
        else:
            moved = engine.allgather(as_bytes(data), [count * stride for count in rows])
            self.value = moved.view(data.dtype)
        self.rows = sum(rows)


class Alltoall:
    """Pieces of ``data``, ``splits[r]`` rows of ``width`` elements to rank r."""

    def __init__(self, data: Array, splits: Sequence[int], width: int) -> None:
        self.value = data
        self.splits = list(splits)
        self.width = width
        self.received: List[int] = []

    def run(self, engine: Engine) -> None:
        data = self.value
        stride = self.width * data.itemsize
        table = gather_integers(engine, self.splits)
        self.received = table[engine.rank :: engine.size]
        if not stride or not sum(table):
            self.value = data[:0]
            return
        sent = [count * stride for count in self.splits]
        received = [count * stride for count in self.received]
        self.value = engine.alltoall(as_bytes(data), sent, received).view(data.dtype)


class ReduceScatter:
    """``values`` reduced; each rank takes ``counts[rank]`` elements of the result."""

    def __init__(
        self, values: Array, counts: Sequence[int], op: Op, prescale: float, postscale: float
    ) -> None:
        self.value = values
        self.counts = list(counts)
        self.op = op
        self.prescale = prescale
        self.postscale = postscale

    def run(self, engine: Engine) -> None:
        values = self.value
        if not values.size:
            return
        _reduce.scale(values, self.prescale)
        kind = Op.SUM if self.op is Op.AVERAGE else self.op
        segment = engine.reducescatter(values, self.counts, kind)
        _reduce.finish(segment, self.op, engine.size, self.postscale)
        self.value = segment


def gather_integers(engine: Engine, values: Sequence[int]) -> List[int]:
    """Return every rank's ``values`` (int64, equally many), in rank order; collective."""
    data = as_bytes(numpy.array(values, dtype=numpy.int64))
    gathered = engine.allgather(data, [data.size] * engine.size)
    return [int(one) for one in gathered.view(numpy.int64)]


def as_bytes(flat: Array) -> Array:
    """Return a flat contiguous array's memory as bytes."""
    # An empty view would be refused for an item size that numpy cannot divide 0 by.
    return flat.view(numpy.uint8) if flat.size else empty(0, numpy.uint8, flat)
