"""The few things that differ between kinds of memory; everything else both kinds of arrays have.

An array is numpy's or a ``_device.DeviceArray``.  bfloat16, which numpy lacks, is a dtype of one
field of that name: it travels as it is, and is reduced in float32.
"""

from contextlib import contextmanager
from typing import Any, Iterator, Sequence

import numpy

from distributed_dl_training._core import Array

BFLOAT16 = numpy.dtype([("bfloat16", "u2")])
# Requests name the dtype of tensors on a device so: all ranks must have theirs there.
ON_DEVICE = "cuda."
# Elements that are converted at a time, so that what is between two steps stays in the cache.
_BLOCK = 1 << 15


def dtype_named(name: str) -> "numpy.dtype[Any]":
    """Return the dtype that a request names."""
    bare = name[len(ON_DEVICE) :] if name.startswith(ON_DEVICE) else name
    return BFLOAT16 if bare == "bfloat16" else numpy.dtype(bare)


def order(array: Any) -> None:
    """Note what this thread has asked of a device: what carries the array comes after it.

    It is to be called last before a request is handed in: copies may have been started for it.
    """
    if not isinstance(array, numpy.ndarray):
        array.order()


@contextmanager
def carrying(values: Sequence[Any]) -> Iterator[None]:
    """Let what this thread asks of a device come after what ``order`` noted, and after no more.

    values: what is carried together, at least one, all of the same kind of memory.
    """
    first = values[0]
    if isinstance(first, numpy.ndarray) or not hasattr(first, "carrying"):
        yield
        return
    with first.carrying(values):
        yield


def settle(value: Any) -> None:
    """Return when a device has done all that this thread has asked, if ``value`` lies on one.

    Until then streams of other threads may read what is not there yet.
    """
    if hasattr(value, "settle"):
        value.settle()


def empty(count: int, dtype: Any, like: Any) -> Array:
    """Return ``count`` elements of the kind of memory that ``like`` lies in."""
    if isinstance(like, numpy.ndarray):
        return numpy.empty(count, dtype=dtype)
    made: Array = like.empty(count, dtype)
    return made


def pack(sources: Sequence[Array], out: Array) -> None:
    """Copy sources one behind the other into ``out``, in its dtype."""
    if not isinstance(out, numpy.ndarray):
        out.pack(sources)
        return
    if all(source.dtype == out.dtype for source in sources):
        numpy.concatenate(sources, out=out)
        return
    start = 0
    for source in sources:
        convert(source, out[start : start + source.size])
        start += source.size


def convert(source: Array, target: Array) -> None:
    """Copy ``source`` into ``target``, which may have another dtype: float32 is rounded once."""
    if source.dtype == target.dtype or not isinstance(source, numpy.ndarray):
        target[:] = source
    elif target.dtype == BFLOAT16:
        for start in range(0, source.size, _BLOCK):
            _narrow(source[start : start + _BLOCK], target[start : start + _BLOCK])
    elif source.dtype == BFLOAT16:
        bits = target.view(numpy.uint32)
        bits[:] = source.view(numpy.uint16)
        bits <<= 16
    else:
        target[:] = source


def converted(source: Array, dtype: "numpy.dtype[Any]") -> Array:
    """Return a copy of ``source`` in another dtype."""
    made = empty(source.size, dtype, source)
    convert(source, made)
    return made


def _narrow(source: Array, target: Array) -> None:
    """Round float32 to bfloat16: to nearest, ties to even; every NaN becomes the quiet one."""
    bits = source.view(numpy.uint32)
    rounded = bits >> 16
    rounded &= 1
    rounded += 0x7FFF
    rounded += bits
    rounded >>= 16
    halves = target.view(numpy.uint16)
    halves[:] = rounded
    nans = numpy.isnan(source)
    if nans.any():
        halves[nans] = 0x7FC0
