"""The checks that take all ranks, whatever the ranks talk through."""

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

from ..proving.answers import (
    CLASSES,
    DIGEST_ELEMENTS,
    EXACT,
    FACTOR,
    MODULUS,
    SHIFT,
    digest,
    offset,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from types import ModuleType
    from typing import Any

    from .api import Api, Array
    from .recorder import Problem, Recorder

PERIOD = 1000003  # elements after which the classes repeat: a prime, so no block size hides a shift


class Pattern:
    """Numbers for an allreduce whose sum is known, and exact in whatever order it is formed.

    Rank r holds table[r, c] where c is the class of an element, a hash of its index: the data
    depend on both. The sum over all ranks is one number per class, so that it is known for any
    number of ranks and elements without adding arrays, and without the runtime. ``answers``
    computes the same sums without numpy.
    """

    def __init__(self, numpy: "ModuleType", ranks: int, nonce: str = "") -> None:
        self.numpy = numpy
        self.ranks = ranks
        start = 1 + offset(nonce)
        mixed = numpy.arange(start, start + PERIOD, dtype="int64") * FACTOR % MODULUS
        mixed ^= mixed >> SHIFT
        self.classes = (mixed % CLASSES).astype("uint8")

    def tables(self, dtype: str) -> "tuple[Array, Array]":
        """Return (values by rank and class, their sum by class), scaled to use dtype's range."""
        limit = EXACT[dtype]
        rank = self.numpy.arange(self.ranks, dtype="int64")[:, None]
        one = self.numpy.arange(CLASSES, dtype="int64")[None, :]
        # With more ranks than dtype has integers, only every step-th rank adds to an element.
        step = -(-2 * self.ranks // limit)
        adding = (rank + one) % step == 0
        most = max(2, min(CLASSES, limit // self.ranks))
        table = self.numpy.where(adding, 1 + (31 * rank + 17 * one + rank * one) % most, 0)
        # An odd factor: the sum then needs all of dtype's bits, the lowest included.
        factor = limit // int(table.sum(axis=0).max())
        table *= max(1, factor - 1 + factor % 2)
        return table.astype(dtype), table.sum(axis=0).astype(dtype)

    def spread(self, table: "Array", count: int) -> "Array":
        """Return *count* elements, each the table's value for its class."""
        period = self._period(table, count)
        values = self.numpy.empty(count, dtype=table.dtype)
        for start in range(0, count, PERIOD):
            part = values[start : start + PERIOD]
            part[:] = period[: part.size]
        return values

    def difference(self, values: "Array", table: "Array") -> "str | None":
        """Return how values differ from the table, or None."""
        period = self._period(table, values.size)
        wrong = 0
        first: "tuple[Any, ...]" = ()
        for start in range(0, values.size, PERIOD):
            part = values[start : start + PERIOD]
            expected = period[: part.size]
            if _same_bits(part, expected):
                continue
            bad = self.numpy.flatnonzero(part != expected)
            if bad.size and not first:
                first = (start + bad[0], part[bad[0]], expected[bad[0]])
            wrong += bad.size
        return differing(wrong, *first) if wrong else None

    def _period(self, table: "Array", count: int) -> "Array":
        """Return the elements up to the first that repeats: the rest is copied, or compared."""
        return table.take(self.classes[:count])


def _same_bits(one: "Array", other: "Array") -> bool:
    """Return whether two arrays are equal bit by bit: quicker than their values for float16."""
    kind = f"u{one.itemsize}"
    return one.dtype == other.dtype and bool((one.view(kind) == other.view(kind)).all())


def differing(wrong: int, index: int, value: "Any", expected: "Any") -> str:
    more = f" (and {wrong - 1} more)" if wrong > 1 else ""
    return f"element {index} is {value.item()!r}, must be {expected.item()!r}{more}"


# Seconds that the timing of one size should take; it sets the number of repetitions.
TIMING_BUDGET = 0.03
REPETITIONS = (3, 500)
# Seconds that one rank comes late to the barrier.
LATE = 0.1
# A count that no rank number or block size divides: chunks of unequal length are a classic error.
ODD_BYTES = 4 * 100003
# What is summed and timed in every power of four: how bytes travel, this one shows for all.
TIMED = "float32"
# The largest message of the others, which are summed in few sizes.
LARGE_ENOUGH = 4 * 2**20
# What an allgather is given: rank n gives n + 1 rows, up to so many, of so many numbers.
MOST_ROWS, COLUMNS = 64, 3


class Conversation:
    """One small method for each check, so there are many. ``api`` talks in numpy's arrays."""

    def __init__(
        self, api: "Api", numpy: "ModuleType", recorder: "Recorder", options: "argparse.Namespace"
    ) -> None:
        self.api = api
        self.numpy = numpy
        self.recorder = recorder
        self.max_bytes = options.max_bytes
        self.asked = options.ranks
        self.rank = api.rank()
        self.size = api.size()
        self.pattern = Pattern(numpy, self.size, options.nonce)
        # Values of the allreduce before, their sums, and its seconds.
        self.latest: "tuple[Array, ...]" = ()

    def run(self) -> None:
        self.check("hello", self.hello)
        self.check("world", self.world)
        for dtype in EXACT:
            for nbytes in self.sizes(dtype) if self.can("allreduce", dtype) else []:
                self.check("allreduce", partial(self.allreduce, dtype, nbytes), dtype, nbytes)
        self.gathers([rank % MOST_ROWS + 1 for rank in range(self.size)])
        self.check("broadcast", self.broadcast, "int64")
        if self.can("barrier"):
            self.check("barrier", self.barrier)
        if self.size > 1 and self.can("mismatch"):
            self.check("mismatch", self.mismatch)
        # At the end, as the ranks agree by a broadcast on how often.
        for nbytes in steps(self.max_bytes):
            self.check("allreduce", partial(self.allreduce, TIMED, nbytes), TIMED, nbytes)
            self.check("timing", self.timing, TIMED, nbytes)

    def check(
        self,
        name: str,
        work: "Callable[[], Problem]",
        dtype: "str | None" = None,
        nbytes: "int | None" = None,
    ) -> None:
        self.recorder.check(name, work, dtype, nbytes)

    def can(self, name: str, dtype: "str | None" = None) -> bool:
        """Return whether a check can be made; one that cannot is recorded with the reason."""
        why = self.api.lacks.get((name, dtype)) or self.api.lacks.get(name)
        if why:
            self.recorder.leave_out(name, why, dtype)
        return not why

    def gathers(self, counts: "list[int]") -> None:
        """Check allgather: ``counts[n]`` rows from rank n, then no rows from the last."""
        if self.can("allgather"):
            self.check("allgather", partial(self.allgather, "int64", counts), "int64")
            work = partial(self.allgather, "float32", [*counts[:-1], 0])
            self.check("allgather with no rows", work, "float32")
        else:
            work = partial(self.allgather, "int64", [3] * self.size)
            self.check("allgather of equal rows", work, "int64")

    def sizes(self, dtype: str) -> "list[int]":
        """Return the sizes that are not timed."""
        item = self.numpy.dtype(dtype).itemsize
        some = [4, 4096, 2**20, min(self.max_bytes, LARGE_ENOUGH)]
        sizes = [ODD_BYTES] if dtype == TIMED else some
        sizes = [max(item, size // item * item) for size in sizes if size <= self.max_bytes]
        return sorted(set(sizes))

    def hello(self) -> "Problem":
        said = f"Hello from: {self.rank}"
        sys.stdout.write(said + "\n")
        sys.stdout.flush()
        wrong = not 0 <= self.rank < self.size
        return {"problem": f"rank {self.rank} of {self.size}" if wrong else None, "said": said}

    def world(self) -> "Problem":
        found = self.api.allgather(self.numpy.array([self.rank], dtype="int64")).tolist()
        if self.size != self.asked:
            return f"size is {self.size}, must be {self.asked}"
        if found != list(range(self.size)):
            return f"the ranks are {found[:20]}, must be 0 to {self.size - 1}"
        return None

    def allreduce(self, dtype: str, nbytes: int) -> "Problem":
        count = nbytes // self.numpy.dtype(dtype).itemsize
        table, sums = self.pattern.tables(dtype)
        values = self.pattern.spread(table[self.rank], count)
        result, seconds = self.timed(values)
        self.latest = values, sums, seconds
        problem = kind_of(result, dtype, (count,)) or self.pattern.difference(result, sums)
        changed = self.pattern.difference(values, table[self.rank])
        if problem or changed:
            return problem or f"the input was changed: {changed}"
        # Only the data of this run have this sum.
        return {"problem": None, "answer": digest(result[:DIGEST_ELEMENTS].tolist())}

    def compare(self, result: "Array", expected: "Array") -> "str | None":
        """Return how a small result differs from what is expected, or None."""
        problem = kind_of(result, str(expected.dtype), expected.shape)
        bad = [] if problem else self.numpy.flatnonzero(result != expected)
        if len(bad):
            problem = differing(len(bad), bad[0], result.flat[bad[0]], expected.flat[bad[0]])
        return problem

    def allgather(self, dtype: str, counts: "list[int]") -> "Problem":
        rows = self.numpy.arange(MOST_ROWS * COLUMNS, dtype=dtype).reshape(MOST_ROWS, COLUMNS)
        parts = [rows[:count] + 1000 * (rank + 1) for rank, count in enumerate(counts)]
        expected = self.numpy.concatenate(parts)
        return self.compare(self.api.allgather(parts[self.rank]), expected)

    def broadcast(self) -> "Problem":
        problems = []
        for root in range(self.size):
            expected = self.numpy.arange(1000, dtype="int64") + 7919 * (root + 1)
            values = expected.copy() if self.rank == root else -expected
            before = values.copy()
            problem = self.compare(self.api.broadcast(values, root), expected)
            changed = self.compare(values, before)
            if problem or changed:
                problems.append(f"from root {root}: {problem or 'the input was changed'}")
        return problems[0] if problems else None  # not sooner: the other ranks go on

    def barrier(self) -> "Problem":
        """Come late on one rank after the other; whether all waited is seen from the records."""
        entered: "list[float]" = []
        left: "list[float]" = []
        for late in sorted({0, self.size - 1}):
            self.api.barrier()
            if self.rank == late:
                time.sleep(LATE)
            entered.append(time.monotonic())
            self.api.barrier()
            left.append(time.monotonic())
        return {"problem": None, "entered": entered, "left": left}

    def mismatch(self) -> "Problem":
        values = self.numpy.ones(4 if self.rank == 0 else 3, dtype="float32")
        try:
            self.api.allreduce(values)
        except Exception as error:
            if self.api.tells_of_mismatch(error):
                return None
            raise
        return f"shapes differed between ranks, yet no {self.api.mismatch} was raised"

    def timing(self) -> "Problem":
        """Time the previous allreduce; the last result must be exact as well."""
        values, sums, first = self.latest
        # The first of all may have made connections.
        result, again = self.timed(values)
        wanted = int(TIMING_BUDGET / max(min(first, again), 1e-9))
        wanted = min(max(wanted, REPETITIONS[0]), REPETITIONS[1])
        agreed = int(self.api.broadcast(self.numpy.array([wanted], dtype="int64"), 0)[0])
        # Where few are wanted, each takes long, and the one that was checked is as good as any.
        times = [first, again] if agreed == REPETITIONS[0] else [again]
        while len(times) < agreed:
            result, seconds = self.timed(values)
            times.append(seconds)
        self.latest = ()
        problem = self.pattern.difference(result, sums)
        return {"problem": problem, "median": statistics.median(times), "repetitions": len(times)}

    def timed(self, values: "Array") -> "tuple[Array, float]":
        """Return the sum over all ranks, and the seconds that it took."""
        started = time.perf_counter()
        result = self.api.allreduce(values)
        return result, time.perf_counter() - started


def steps(max_bytes: int) -> "list[int]":
    """Return the message sizes in bytes, in powers of four up to the largest."""
    largest = max_bytes // 4 * 4
    return [4**power for power in range(1, 17) if 4**power < largest] + [largest]


def kind_of(result: object, dtype: str, shape: "tuple[int, ...]") -> "str | None":
    """Return the problem of the type or shape of a result, or None."""
    found = (str(getattr(result, "dtype", type(result))), getattr(result, "shape", None))
    text = "the result has dtype {} and shape {}, must be {} and {}"
    return None if found == (dtype, shape) else text.format(*found, dtype, shape)
