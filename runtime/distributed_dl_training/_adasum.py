"""Adasum: gradients added up as far as they point in different directions.

Two vectors a and b are combined to (1 - a.b / 2 a.a) a + (1 - a.b / 2 b.b) b: the sum of orthogonal
ones, the mean of equal ones.  Ranks are combined in pairs, the results in pairs again.  Source of
the rule and of the order: Maleki et al., "Scaling Distributed Training with Adaptive Summation"
(2020), and horovod/common/ops/adasum/adasum.h of 0.28.1.

Each rank gets a segment of the vectors of all ranks, combines these, and gives its segment of the
result to the others: as much travels as in a ring allreduce.  Dot products are added up over
segments, three numbers for each tensor and pair.
"""

import math
import sys
from typing import Any, List, Optional, Sequence, Tuple

import numpy

from distributed_dl_training import _memory, _reduce
from distributed_dl_training._core import Array, Engine, Op
from distributed_dl_training._works import as_bytes

# A vector whose square is smaller counts as zero, as in Horovod.
_SMALLEST = math.sqrt(sys.float_info.min)
# Elements whose products are calculated in float64 at a time.
_BLOCK = 1 << 15


class Adasum:
    """Tensors of one dtype to be combined, each by itself.

    sources: flat and contiguous.
    target: as many elements as all sources; takes the results, one behind the other.
    """

    def __init__(
        self, sources: Sequence[Array], target: Array, prescale: float, postscale: float
    ) -> None:
        self.sources = sources
        self.target = target
        self.prescale = prescale
        self.postscale = postscale
        self.value: Any = target

    def run(self, engine: Engine) -> None:
        values = numpy.empty(self.target.size, _reduce.working(self.target, engine))
        _memory.pack(self.sources, values)
        with numpy.errstate(all="ignore"):
            _reduce.scale(values, self.prescale)
            if values.size and engine.size > 1:
                values = _combined(engine, values, [source.size for source in self.sources])
            _reduce.scale(values, self.postscale)
        _memory.convert(values, self.target)


def refusal(size: int, on_device: bool) -> Optional[Exception]:
    """Return what forbids Adasum over so many ranks, or None."""
    if on_device:
        return TypeError("op=Adasum takes tensors on the host over this engine")
    if size & (size - 1):
        return NotImplementedError(f"op=Adasum needs 2, 4, 8, ... ranks; these are {size}")
    return None


def _combined(engine: Engine, values: Array, lengths: Sequence[int]) -> Array:
    """Return the vectors of all ranks, combined; collective.

    values: this rank's tensors, of these lengths, one behind the other.
    """
    size, width = engine.size, values.itemsize
    bounds = [values.size * rank // size for rank in range(size + 1)]
    first, last = bounds[engine.rank], bounds[engine.rank + 1]
    sent = [(end - start) * width for start, end in zip(bounds, bounds[1:])]
    received = [(last - first) * width] * size
    rows = engine.alltoall(as_bytes(values), sent, received).view(values.dtype).reshape(size, -1)
    segments = _segments(lengths, first, last)
    distance = 1
    while distance < size:
        _combine_pairs(engine, rows, distance, segments)
        distance *= 2
    return engine.allgather(as_bytes(rows[0]), sent).view(values.dtype)


def _segments(lengths: Sequence[int], first: int, last: int) -> List[Tuple[int, int]]:
    """Return where each tensor begins and ends between two elements, counted from the first."""
    segments, start = [], 0
    for length in lengths:
        end = start + length
        segments.append((max(start, first) - first, max(min(end, last), first) - first))
        start = end
    return segments


def _combine_pairs(
    engine: Engine, rows: Array, distance: int, segments: Sequence[Tuple[int, int]]
) -> None:
    """Put the combination of rows at this distance into the first of each pair; collective."""
    lefts = range(0, len(rows), 2 * distance)
    table = numpy.array(
        [
            _products(rows[left, start:end], rows[left + distance, start:end])
            for left in lefts
            for start, end in segments
        ]
    )
    engine.allreduce(table.reshape(-1), Op.SUM)
    products = iter(table.reshape(-1, 3))
    for left in lefts:
        for start, end in segments:
            dot, left_square, right_square = next(products)
            a, b = rows[left, start:end], rows[left + distance, start:end]
            a *= _factor(dot, left_square)
            b *= _factor(dot, right_square)
            a += b


def _products(a: Array, b: Array) -> List[float]:
    """Return a.b, a.a and b.b, calculated in float64."""
    sums = [0.0, 0.0, 0.0]
    for start in range(0, a.size, _BLOCK):
        left = a[start : start + _BLOCK].astype(numpy.float64)
        right = b[start : start + _BLOCK].astype(numpy.float64)
        for at, product in enumerate((left @ right, left @ left, right @ right)):
            sums[at] += float(product)
    return sums


def _factor(dot: float, square: float) -> float:
    return 1.0 if square < _SMALLEST else float(1.0 - dot / square / 2)
