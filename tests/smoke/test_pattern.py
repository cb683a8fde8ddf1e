"""The numbers of the allreduce: exact for any number of ranks, and apt to show every error."""

from __future__ import annotations

import numpy
import pytest

from envbuilder.target_tools.smoke.conversation import CLASSES, EXACT, PERIOD, Pattern

RANKS = [
    *range(1, 18),
    61,
    127,
    251,
    255,
    256,
    511,
    1023,
    1024,
    1025,
    2047,
    2048,
    2049,
    3071,
    3072,
    4096,
]
DTYPES = ["int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_are_exact_in_any_order(dtype: str) -> None:
    """All values are whole and none is negative: if the sum is exact, every partial sum is."""
    for ranks in RANKS:
        table, sums = Pattern(numpy, ranks).tables(dtype)
        assert table.dtype == sums.dtype == numpy.dtype(dtype)
        true_sums = table.astype("int64").sum(axis=0)
        assert numpy.allclose(true_sums, table.astype("float64").sum(axis=0)), "it wrapped around"
        assert (true_sums == sums.astype("int64")).all()
        assert true_sums.max() <= EXACT[dtype]
        assert (table == table.astype("int64")).all()
        assert table.min() >= 0
        assert true_sums.min() > 0


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_sums_need_the_whole_width_of_the_dtype(dtype: str) -> None:
    """A runtime that squeezes the data through a narrower type gets caught."""
    narrower = {"int32": "int16", "int64": "float64", "float32": "float16", "float64": "float32"}
    for ranks in (2, 3, 4, 64):
        _, sums = Pattern(numpy, ranks).tables(dtype)
        with numpy.errstate(over="ignore", invalid="ignore"):
            squeezed = sums.astype(narrower[dtype]).astype(dtype)
        assert (squeezed != sums).sum() > len(sums) // 2


def test_data_depend_on_rank_and_element() -> None:
    pattern = Pattern(numpy, 4)
    table, sums = pattern.tables("float32")
    assert all((table[a] != table[b]).mean() > 0.9 for a in range(4) for b in range(a))
    values = pattern.spread(sums, 5000)
    for shift in (1, 2, 4, 16, 256, 1024, 1250):
        moved = numpy.roll(values, shift)
        assert (moved != values).mean() > 0.9, f"a shift by {shift} elements must show"


def test_the_classes_repeat_only_after_a_prime_number_of_elements() -> None:
    assert all(PERIOD % n for n in range(2, int(PERIOD**0.5) + 1))
    pattern = Pattern(numpy, 1)
    own = numpy.arange(CLASSES, dtype="int64")
    classes = pattern.spread(own, 3 * PERIOD)
    assert (classes[PERIOD:] == classes[:-PERIOD]).all()
    counts = numpy.bincount(classes, minlength=CLASSES)
    assert counts.min() > 0.8 * counts.mean()
    for block in (2**k for k in range(21)):
        assert (classes[:4096] != classes[block : block + 4096]).mean() > 0.9


@pytest.mark.parametrize(
    "at", [0, 1, 1_000_002, 1_000_003, 1_299_999], ids=["first", "next", "edge", "over", "end"]
)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_one_wrong_element_is_found_and_named(dtype: str, at: int) -> None:
    pattern = Pattern(numpy, 2)
    table, sums = pattern.tables(dtype)
    result = pattern.spread(table[0], 1_300_000) + pattern.spread(table[1], 1_300_000)
    assert pattern.difference(result, sums) is None
    right = result[at].item()
    result[at] -= 1
    assert pattern.difference(result, sums) == f"element {at} is {right - 1}, must be {right}"
    result[:] = -1
    assert pattern.difference(result, sums).endswith("(and 1299999 more)")
