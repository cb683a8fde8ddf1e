"""The data of the smoke test, which depend on the nonce of its run, and their sums.

A rank records a digest of each sum that it received. The judge computes the same digest without
numpy and without the runtime, so the records of another run do not fit. Pure: nothing is read.
"""

import hashlib
from functools import lru_cache
from typing import Iterable

# The largest integer up to which every integer has an exact value.
EXACT = {"int32": 2**31 - 1, "int64": 2**63 - 1}
EXACT.update(float16=2**11, float32=2**24, float64=2**53)
ITEM_BYTES = {"int32": 4, "int64": 8, "float16": 2, "float32": 4, "float64": 8}
CLASSES = 251  # values per rank; below 256, so that the class of an element fits a byte
# A multiplicative hash: no product of a factor and an index below 2**30 needs more than 63 bits.
FACTOR, MODULUS, SHIFT = 2654435761, 2**32, 15
# So many elements of a sum are part of its digest.
DIGEST_ELEMENTS = 64


def offset(nonce: str) -> int:
    """Return the number that a nonce adds to the index of every element; 0 without a nonce."""
    return int(hashlib.sha256(nonce.encode()).hexdigest(), 16) % 2**30 if nonce else 0


def digest(values: "Iterable[float]") -> str:
    """Return the digest of the first elements of a sum, which are integers."""
    text = ",".join(str(int(value)) for value in values)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@lru_cache(maxsize=64)
def sums(dtype: str, ranks: int) -> "tuple[int, ...]":
    """Return the sum over all ranks by class of element: see ``Pattern.tables``."""
    limit = EXACT[dtype]
    step = -(-2 * ranks // limit)
    most = max(2, min(CLASSES, limit // ranks))
    by_class = [
        sum(1 + (31 * r + 17 * c + r * c) % most for r in range(-c % step, ranks, step))
        for c in range(CLASSES)
    ]
    factor = limit // max(by_class)
    factor = max(1, factor - 1 + factor % 2)
    return tuple(factor * each for each in by_class)


@lru_cache(maxsize=4096)
def expected(nonce: str, dtype: "str | None", nbytes: "int | None", ranks: int) -> "str | None":
    """Return the digest of the sum in the run with this nonce; None for a sum that no run makes."""
    if dtype not in EXACT or nbytes is None or nbytes < ITEM_BYTES[dtype]:
        return None
    start, by_class, values = 1 + offset(nonce), sums(dtype, ranks), []
    for index in range(start, start + min(nbytes // ITEM_BYTES[dtype], DIGEST_ELEMENTS)):
        mixed = index * FACTOR % MODULUS
        values.append(by_class[(mixed ^ mixed >> SHIFT) % CLASSES])
    return digest(values)
