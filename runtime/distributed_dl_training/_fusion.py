"""Allreduces that are agreed on at the same time travel together.

Small tensors are packed into one buffer and reduced as one.  Tensors that lie side by side in an
*arena*, one long array that gradients are views of, are reduced where they are, without a copy.
How they are put together follows from what the ranks have agreed on, so that it is the same on
every rank.
"""

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from distributed_dl_training import _memory, _reduce
from distributed_dl_training._agreement import Request
from distributed_dl_training._core import Array, Engine
from distributed_dl_training._handle import Item
from distributed_dl_training._result_buffers import HUGE, ResultBuffers
from distributed_dl_training._works import Allreduce, Arithmetic

# Runs of an arena shorter than this many bytes are packed: a copy costs less than a message.
SHORT_RUN = 1 << 16
# Tensors of this many bytes or more are not packed: a message of their own costs less than copies.
LONG = 1 << 20
# Longer arrays of the host are reduced in chunks of so many bytes.  A MPI library takes memory for
# as much as it reduces: below the C library's threshold of 32 MiB it gets the same memory again,
# above it new pages each time.  Two ranks of MPICH reduced 102 MB in half the time so.
LONGEST_CHUNK = 16 << 20


class Batch(NamedTuple):
    """What is reduced together; ``in_place`` says that the items are one run of an arena."""

    items: Tuple[Item, ...]
    in_place: bool


def batches(items: Sequence[Item]) -> Iterator[Batch]:
    """Yield how to carry out allreduces that were agreed on together, in order."""
    kinds: Dict[Tuple[Any, ...], List[Item]] = {}
    last: Optional[Tuple[Any, ...]] = None
    alike: List[Item] = []
    for item in items:
        kind = item.request.kind or kind_of(item.request)
        if kind != last:
            alike = kinds.setdefault(kind, [])
            last = kind
        alike.append(item)
    for kind, alike in kinds.items():
        if kind[-1] is None:
            yield Batch(tuple(alike), False)
            continue
        short: List[Item] = []
        for run in _runs(alike):
            if _nbytes(run) < SHORT_RUN and len(alike) > len(run):
                short += run
            else:
                yield Batch(tuple(run), True)
        if short:
            yield Batch(tuple(short), False)


def kind_of(request: Request) -> Tuple[Any, ...]:
    """Return what all have in common that travel together; it is kept."""
    if request.kind is not None:
        return request.kind
    _, _, dtype, _, op, prescale, postscale, _, place, _ = request
    kind = request.kind = (dtype, op, prescale, postscale, place[0] if place else None)
    return kind


def _runs(items: Sequence[Item]) -> Iterator[List[Item]]:
    """Yield items of one arena that lie side by side in it, in the order of the arena."""
    run: List[Item] = []
    end = 0
    for item in sorted(items, key=lambda one: _work(one).start):
        work = _work(item)
        if run and work.start != end:
            yield run
            run = []
        run.append(item)
        end = work.start + work.target.size
    if run:
        yield run


def _nbytes(items: Sequence[Item]) -> int:
    return sum(_work(item).target.nbytes for item in items)


def _work(item: Item) -> Allreduce:
    assert isinstance(item.work, Allreduce)
    return item.work


class Fusion:
    """Carries batches out over an engine, through one buffer that is kept.

    threshold: bytes of the buffer, at most; 0 switches packing off.
    """

    def __init__(self, engine: Engine, threshold: int) -> None:
        self.engine = engine
        self.threshold = threshold
        self.most = min(threshold, LONG)  # bytes from which a tensor is not packed
        self.capacity = max(threshold, 1 << 20)  # bytes of the buffer, at most
        self._buffers: Dict[type, Array] = {}  # by kind of array
        self._result_buffers = ResultBuffers()

    def run(self, batch: Batch) -> None:
        """Reduce all items of a batch; collective."""
        works = [_work(item) for item in batch.items]
        if isinstance(works[0].target, numpy.ndarray):  # nothing to order: no device has it
            self._run(works, batch.in_place)
            return
        with _memory.carrying([work.target for work in works]):
            self._run(works, batch.in_place)
            _memory.settle(works[0].target)

    def run_packed(
        self, sources: Sequence[Array], size: int, how: Arithmetic, in_place: bool
    ) -> Tuple[Array, bool]:
        """Reduce numpy arrays of one working dtype, of ``size`` elements in all; collective.

        Returns what they are reduced to, one behind the other, and whether it is the caller's: else
        it is in the buffer, and there only until something else is reduced.

        in_place: results replace the sources, so that the caller needs no memory for them.
        """
        dtype = sources[0].dtype
        own = None if in_place else self._result_buffers.take(size, dtype)
        values = self._buffer(size, dtype, sources[0]) if own is None else own
        if size:
            numpy.concatenate(sources, out=values)
            self._reduce(values, how)
        return values, own is not None

    def _run(self, works: Sequence[Allreduce], in_place: bool) -> None:
        dtype = _reduce.working(works[0].target, self.engine)
        if dtype != works[0].target.dtype:
            self._reduce_packed(works, dtype)  # even in an arena: it is calculated elsewhere
        elif in_place:
            self._reduce_run(works)
        else:
            most = self.most
            alone = [work for work in works if work.target.nbytes >= most]
            short = works if not alone else [work for work in works if work.target.nbytes < most]
            for work in alone if len(short) > 1 else works:
                self._reduce_alone(work)
            if len(short) > 1:
                self._reduce_packed(short, dtype)

    def _reduce_run(self, works: Sequence[Allreduce]) -> None:
        """Reduce a run of an arena where it lies."""
        first, last = works[0], works[-1]
        if first.arena is None:  # this rank has joined: it has zeros and no arena
            count = last.start + last.target.size - first.start
            values = _memory.empty(count, first.target.dtype, first.target)
            values[:] = 0
        else:
            values = first.arena[first.start : last.start + last.target.size]
        self._reduce(values, first)

    def _reduce_alone(self, work: Allreduce) -> None:
        """Reduce one work in its own target."""
        if work.sources and work.sources[0] is not work.target:
            _memory.pack(work.sources, work.target)
        self._reduce(work.target, work)

    def _reduce_packed(self, works: Sequence[Allreduce], dtype: "numpy.dtype[Any]") -> None:
        """Reduce works through the buffer, as often as it takes to pass all of them."""
        total = sum([work.target.size for work in works])
        capacity = self.capacity // dtype.itemsize
        buffer = self._buffer(min(total, capacity), dtype, works[0].target)
        if total <= buffer.size:
            sources = [source for work in works for source in work.sources]
            self._pass_through(sources, [work.target for work in works], buffer[:total], works[0])
            return
        for chunks in _fills(works, buffer.size):
            sources, targets = [source for source, _ in chunks], [target for _, target in chunks]
            count = sum([target.size for target in targets])
            self._pass_through(sources, targets, buffer[:count], works[0])

    def _pass_through(
        self, sources: Sequence[Array], targets: Sequence[Array], values: Array, like: Allreduce
    ) -> None:
        """Copy sources to ``values``, of the buffer, reduce it and copy it to the targets."""
        if not values.size:
            return
        # Where they are of one dtype, do at once what ``pack`` and ``convert`` would find out.
        alike = isinstance(values, numpy.ndarray) and values.dtype == like.target.dtype
        if alike:
            numpy.concatenate(sources, out=values)
        else:
            _memory.pack(sources, values)
        self._reduce(values, like)
        start = 0
        for target in targets:
            end = start + target.size
            if alike:
                target[:] = values[start:end]
            else:
                _memory.convert(values[start:end], target)
            start = end

    def _reduce(self, values: Array, like: Arithmetic) -> None:
        chunks = LONGEST_CHUNK if isinstance(values, numpy.ndarray) else values.nbytes
        step = max(1, chunks // values.itemsize)
        for start in range(0, values.size, step):
            chunk = values[start : start + step]
            _reduce.reduce(self.engine, chunk, like.op, like.prescale, like.postscale)

    def _buffer(self, count: int, dtype: "numpy.dtype[Any]", like: Array) -> Array:
        """Return ``count`` elements of the buffer, which grows as needed."""
        nbytes = count * dtype.itemsize
        kind = type(like)
        if kind not in self._buffers or self._buffers[kind].size < nbytes:
            least = HUGE if kind is numpy.ndarray and nbytes > HUGE // 8 else 0
            self._buffers[kind] = _memory.empty(max(nbytes, least), numpy.uint8, like)
        return self._buffers[kind][:nbytes].view(dtype)


def _fills(works: Sequence[Allreduce], capacity: int) -> Iterator[List[Tuple[Array, Array]]]:
    """Yield pairs of source and target, cut so that each list has ``capacity`` elements at most."""
    chunks: List[Tuple[Array, Array]] = []
    room = capacity
    for work in works:
        base = 0
        for source in work.sources:
            start = 0
            while start < source.size:
                count = min(room, source.size - start)
                target = work.target[base + start : base + start + count]
                chunks.append((source[start : start + count], target))
                start += count
                room -= count
                if not room:
                    yield chunks
                    chunks, room = [], capacity
            base += source.size
    if chunks:
        yield chunks
