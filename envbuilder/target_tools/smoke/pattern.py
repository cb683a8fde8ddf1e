"""Numbers whose sum over all ranks is known and exact."""

from ..proving.answers import CLASSES, EXACT, FACTOR, MODULUS, SHIFT, offset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from .api import Array

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
