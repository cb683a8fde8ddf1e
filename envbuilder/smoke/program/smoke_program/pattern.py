"""Numbers whose sum over all ranks is known and exact."""

# The largest integer up to which every integer has an exact value.
EXACT = {"int32": 2**31 - 1, "int64": 2**63 - 1}
EXACT.update(float16=2**11, float32=2**24, float64=2**53)
CLASSES = 251  # values per rank; below 256, so that the class of an element fits a byte
PERIOD = 1000003  # elements after which the classes repeat: a prime, so no block size hides a shift
BLOCK = 1 << 18  # elements handled at once, to keep temporaries small


class Pattern:
    """Numbers for an allreduce whose sum is known, and exact in whatever order it is formed.

    Rank r holds table[r, c] where c is the class of an element, a hash of its index: the data
    depend on both. The sum over all ranks is one number per class, so that it is known for any
    number of ranks and elements without adding arrays, and without the runtime.
    """

    def __init__(self, numpy, ranks, most):
        """most: the largest number of elements that will be asked for."""
        self.numpy = numpy
        self.ranks = ranks
        # A multiplicative hash; no product of these numbers needs more than 63 bits.
        mixed = numpy.arange(1, PERIOD + 1, dtype="int64") * 2654435761 % 2**32
        mixed ^= mixed >> 15
        self.classes = numpy.resize((mixed % CLASSES).astype("uint8"), most)

    def tables(self, dtype):
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

    def spread(self, table, count):
        """Return *count* elements, each the table's value for its class."""
        values = self.numpy.empty(count, dtype=table.dtype)
        for start in range(0, count, BLOCK):
            part = self.classes[start : min(start + BLOCK, count)]
            values[start : start + len(part)] = table[part]
        return values

    def difference(self, values, table):
        """Return what differs from the table, or None."""
        wrong, first = 0, ()
        for start in range(0, values.size, BLOCK):
            part = values[start : start + BLOCK]
            expected = table[self.classes[start : start + part.size]]
            bad = self.numpy.flatnonzero(part != expected)
            if bad.size and not first:
                first = (start + bad[0], part[bad[0]], expected[bad[0]])
            wrong += bad.size
        return differing(wrong, *first) if wrong else None


def differing(wrong, index, value, expected):
    more = f" (and {wrong - 1} more)" if wrong > 1 else ""
    return f"element {index} is {value.item()!r}, must be {expected.item()!r}{more}"
