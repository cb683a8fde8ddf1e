"""Bursts: small allreduces that come together, in the same order as some time before.

A training step asks for what the last one has asked for.  What follows from the whole of it is
worked out once: how it is packed, where each result lies, and a *signature* of all that is asked
for.  A rank says its signature when it opens a cycle.  Where those of all ranks are equal, all ask
for the same in the same order, so that nothing is looked up or compared one by one.  Where they are
not, the cycle goes on as any other.
"""

import hashlib
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from distributed_dl_training._agreement import Request
from distributed_dl_training._core import Array, elements
from distributed_dl_training._fusion import kind_of
from distributed_dl_training._handle import ArrayHandle, Handle
from distributed_dl_training._opening import SIGNATURE

# Fewer requests than this are not worth it.
_LEAST = 4
# Bursts that are kept, at most.
_KEPT = 16
# What is calculated in its own dtype, by the name that requests have for it, and its bytes.
SIZES = {name: numpy.dtype(name).itemsize for name in ("complex64", "complex128")}
SIZES.update((f"{kind}{8 * size}", size) for kind in ("int", "uint") for size in (1, 2, 4, 8))
SIZES.update(float32=4, float64=8)
# Results that are copied lie in blocks of so many, at most, and bytes.  Whoever keeps one result
# keeps its block; memory for each would take longer than all else here.
_NEIGHBOURS = 16
_BLOCK = 1 << 16


class Run(NamedTuple):
    """Results of one shape, one behind the other.

    start: the first one's first element.
    number: how many there are, of ``size`` elements each.
    """

    start: int
    shape: Tuple[int, ...]
    number: int
    size: int


class Pack(NamedTuple):
    """What of a burst is reduced as one.

    at: places in the burst; None: all of it.
    size: elements.
    runs: of the results, in order.
    """

    at: Optional[List[int]]
    size: int
    dtype: "numpy.dtype[Any]"
    runs: List[Run]

    def of(self, handles: List[Handle]) -> List[Handle]:
        """Return which of a burst's handles are in it."""
        return handles if self.at is None else [handles[at] for at in self.at]

    def results(self, values: Array, copies: bool) -> List[Array]:
        """Return the results in order: copies, or views, of what was reduced."""
        made: List[Array] = []
        for start, shape, number, size in self.runs:
            nbytes = size * self.dtype.itemsize
            most = max(1, min(_NEIGHBOURS, _BLOCK // max(1, nbytes))) if copies else number
            for first in range(0, number, most):
                count = min(most, number - first)
                block = values[start + first * size : start + (first + count) * size]
                _add_rows(made, block.copy() if copies else block, count, shape)
        return made


def _add_rows(made: List[Array], values: Array, count: int, shape: Tuple[int, ...]) -> None:
    """Add ``count`` views of ``values``, of this shape, one behind the other."""
    if shape:
        made.extend(values.reshape((count,) + shape))
    else:  # of what has one dimension numpy gives numbers
        made.extend(one.reshape(()) for one in values.reshape(count, 1))


class Burst:
    """Requests in the order in which they were asked for, and what follows from them.

    packs: how they are carried out once they come again; empty if one by one.
    said: their cache bits as bytes, as of ``changes`` of the cache.
    """

    def __init__(self, requests: List[Request]) -> None:
        self.requests = requests
        self.packs: Optional[List[Pack]] = None
        self.repeated = False
        self.said = b""
        self.changes = -1
        self._mark = _mark(requests)

    def signature(self, handles: Sequence[Handle], numbered: bool) -> bytes:
        """Return what ``sign`` returns of these requests."""
        return _numbered(self._mark, handles) if numbered else self._mark

    def packed(self, handles: Sequence[Handle], most: int, capacity: int) -> bool:
        """Tell whether it can be carried out as a whole.

        most: bytes of a tensor that travels together with others, not reached.
        capacity: bytes that are reduced as one, at most.
        """
        if not self.repeated:
            return False
        if not all(issubclass(kind, ArrayHandle) for kind in set(map(type, handles))):
            return False
        if self.packs is None:
            self.packs = _packs(self.requests, most, capacity)
        return bool(self.packs)


class Bursts:
    """The last bursts of one group."""

    def __init__(self) -> None:
        self._known: Dict[Any, Burst] = {}

    def find(self, handles: Sequence[Handle]) -> Optional[Burst]:
        """Return the burst that these are; None if they are few."""
        if len(handles) < _LEAST:
            return None
        requests = [handle.request for handle in handles]
        key = len(requests), requests[0], requests[-1]
        found = self._known.get(key)
        if found is not None and found.requests == requests:
            found.repeated = True
            return found
        if len(self._known) >= _KEPT:
            self._known.clear()
        made = self._known[key] = Burst(requests)
        return made


def sign(handles: Sequence[Handle], numbered: bool) -> bytes:
    """Return what is equal on ranks that ask for the same, in this order.

    numbered: requests without a name are told apart by their numbers, as there are several.
    """
    mark = _mark([handle.request for handle in handles])
    return _numbered(mark, handles) if numbered else mark


def _mark(requests: Sequence[Request]) -> bytes:
    return _digest(b"".join([request.digest() for request in requests]))


def _numbered(mark: bytes, handles: Sequence[Handle]) -> bytes:
    numbers = [handle.label for handle in handles if handle.request.name is None]
    return _digest(mark + numpy.array(numbers, dtype=numpy.int64).tobytes())


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:SIGNATURE]  # of the digests that FIPS allows


def _packs(requests: Sequence[Request], most: int, capacity: int) -> List[Pack]:
    """Return how requests are carried out together; nothing if some are not to be.

    It follows from the requests and from settings that ``init`` compares, so that ranks with equal
    signatures carry out the same.
    """
    kinds: Dict[Any, List[int]] = {}
    for at, request in enumerate(requests):
        shape = request.shape
        plain = request.call == "allreduce" and not request.place and not request.refusal
        if not plain or request.dtype not in SIZES or (shape and isinstance(shape[0], tuple)):
            return []
        if elements(shape) * SIZES[request.dtype] >= most:
            return []
        kinds.setdefault(kind_of(request), []).append(at)
    packs = []
    for places in kinds.values():
        dtype = numpy.dtype(requests[places[0]].dtype)
        runs = _runs([requests[at].shape for at in places])
        size = runs[-1].start + runs[-1].number * runs[-1].size
        if size * dtype.itemsize > capacity:
            return []
        packs.append(Pack(places if len(kinds) > 1 else None, size, dtype, runs))
    return packs


def _runs(shapes: Sequence[Tuple[int, ...]]) -> List[Run]:
    """Return the runs of results of these shapes."""
    runs: List[Run] = []
    start = at = 0
    while at < len(shapes):
        shape, first = shapes[at], at
        while at < len(shapes) and shapes[at] == shape:
            at += 1
        runs.append(Run(start, shape, at - first, elements(shape)))
        start += (at - first) * elements(shape)
    return runs
