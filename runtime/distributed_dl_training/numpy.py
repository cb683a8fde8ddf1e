"""Collective operations on numpy arrays, with Horovod's names and semantics.

    import distributed_dl_training.numpy as hvd

    hvd.init()
    mean = hvd.allreduce(gradient, name="gradient")

For every collective:

- All ranks must call it, in the same order, with the same name, dtype, shape and options.  They
  compare these first; if they differ, every rank raises MismatchError with the same text, and no
  data moves.
- Wrong arguments are errors on every rank, raised after that comparison, so that no rank waits
  for one that has failed.
- ``tensor`` is anything numpy.asarray takes: any memory layout, any byte order.  It is never
  changed.  The result is a new, C-contiguous array in native byte order.
- Before init, or after shutdown, NotInitializedError is raised.
"""

import operator
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

# Imports are absolute: inside this package, too, "numpy" is the library and not this file.
import numpy

from distributed_dl_training import _reduce
from distributed_dl_training._core import (
    Array,
    MismatchError,
    MPIUnavailableError,
    NotInitializedError,
    Op,
    describe,
    gather_integers,
)
from distributed_dl_training._session import (
    init,
    is_initialized,
    local_rank,
    local_size,
    mpi_threads_supported,
    rank,
    shutdown,
    size,
    turn,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Sum = Op.SUM
Average = Op.AVERAGE
Min = Op.MIN
Max = Op.MAX
Product = Op.PRODUCT

__all__ = [
    "Average",
    "MPIUnavailableError",
    "Max",
    "Min",
    "MismatchError",
    "NotInitializedError",
    "Op",
    "Product",
    "Sum",
    "allgather",
    "allreduce",
    "barrier",
    "broadcast",
    "init",
    "is_initialized",
    "local_rank",
    "local_size",
    "mpi_threads_supported",
    "rank",
    "shutdown",
    "size",
]


def allreduce(
    tensor: "ArrayLike",
    name: Optional[str] = None,
    op: Op = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Array:
    """Return ``tensor`` reduced over all ranks, element by element, in its shape and dtype.

    tensor: any shape, 0-d and empty ones included; bool, (u)int8 to 64, float16 to 64,
        complex64 or 128.
    op: Sum, Product: all but bool.  Integers wrap around as in numpy.
        Average (the default): Sum divided by size(); floating and complex dtypes only, an
        integer average is an error and not rounded.
        Min, Max: all but complex; of bool they are "all" and "any".  A NaN on any rank gives
        NaN on every rank.
    prescale_factor, postscale_factor: multiply before and after the reduction; floating and
        complex dtypes only.

    float16 is scaled and reduced in float32 and rounded once, at the end.

    Raises MismatchError, NotInitializedError, and TypeError if dtype, op and factors do not go
    together.
    """
    array, refusal = _read(tensor)
    try:
        factors = float(prescale_factor), float(postscale_factor)
    except (TypeError, ValueError, OverflowError):
        factors = 1.0, 1.0
        refusal = refusal or TypeError("prescale_factor and postscale_factor must be numbers")
    known = isinstance(op, Op)
    if refusal is None:
        if known:
            refusal = _reduce.refusal(array.dtype, op, factors != (1.0, 1.0))
        else:
            refusal = TypeError("op must be Sum, Average, Min, Max or Product")
    request = describe(
        "allreduce",
        name,
        **_seen(array, array.shape),
        op=op.value if known else type(op).__name__,
        prescale=repr(factors[0]),
        postscale=repr(factors[1]),
    )
    with turn(request, refusal) as engine:
        return _reduce.reduced(engine, array, op, *factors)


def allgather(tensor: "ArrayLike", name: Optional[str] = None) -> Array:
    """Return the arrays of all ranks joined along the first dimension, in rank order.

    tensor: at least one dimension; the first may differ between ranks and may be 0, the others
        must agree.  Any dtype of fixed size that holds no Python objects.

    Raises MismatchError, NotInitializedError, ValueError for a 0-d tensor and TypeError for a
    dtype that cannot travel.
    """
    array, refusal = _read(tensor)
    trailing: Tuple[Any, ...] = array.shape[1:]
    if refusal is None and array.ndim == 0:
        refusal = ValueError("allgather needs an array of at least one dimension")
    seen = _seen(array, ("*",) + trailing if array.ndim else ())
    with turn(describe("allgather", name, **seen), refusal) as engine:
        rows = gather_integers(engine, len(array))
        width = array.itemsize * int(numpy.prod(trailing, dtype=numpy.int64))
        result: Array = numpy.empty((sum(rows),) + trailing, dtype=array.dtype)
        if width and sum(rows):
            data = engine.allgather(_bytes(array), [count * width for count in rows])
            result = data.view(array.dtype).reshape(result.shape)
        return result


def broadcast(tensor: "ArrayLike", root_rank: int, name: Optional[str] = None) -> Array:
    """Return the root's ``tensor`` on every rank.

    tensor: any shape, equal on all ranks.  Any dtype of fixed size that holds no Python objects.
    root_rank: from 0 to size() - 1.

    Raises MismatchError, NotInitializedError, ValueError if root_rank is not a rank, and
    TypeError if it is not an integer or the dtype cannot travel.
    """
    array, refusal = _read(tensor)
    root = -1
    try:
        root = operator.index(root_rank)
    except TypeError as error:
        refusal = refusal or error
    if refusal is None and is_initialized() and not 0 <= root < size():
        refusal = ValueError(f"root_rank {root} is not a rank from 0 to {size() - 1}")
    request = describe("broadcast", name, **_seen(array, array.shape), root=str(root))
    with turn(request, refusal) as engine:
        result: Array = numpy.array(array, order="C")
        if result.nbytes:
            engine.broadcast(result.reshape(-1).view(numpy.uint8), root)
        return result


def barrier() -> None:
    """Return when every rank has called it.  Raises MismatchError, NotInitializedError."""
    with turn(describe("barrier")):
        pass  # to agree is to wait for everybody


def _read(tensor: "ArrayLike") -> Tuple[Array, Optional[Exception]]:
    """Return ``tensor`` as an array in native byte order, and what is wrong with it, if anything.

    With an error the array is good for ``_seen`` only.
    """
    try:
        array = numpy.asarray(tensor)
    except Exception as error:  # __array__ may raise anything; it must be raised in step
        return numpy.empty(0, dtype=numpy.void), error
    if array.dtype.hasobject or array.dtype.kind not in "biufcmMSUV":
        return array, TypeError(f"dtype {array.dtype} cannot travel between ranks")
    return array.astype(array.dtype.newbyteorder("="), copy=False), None


def _seen(array: Array, shape: Tuple[Any, ...]) -> Dict[str, str]:
    """Return the facts about an array that ranks must agree on, for ``describe``."""
    dtype = array.dtype
    return {
        "dtype": dtype.name if dtype.names is None else str(dtype),
        "shape": "({}{})".format(", ".join(map(str, shape)), "," if len(shape) == 1 else ""),
    }


def _bytes(array: Array) -> Array:
    """Return the array's elements in C order as flat bytes, without a copy where possible."""
    flat: Array = numpy.ascontiguousarray(array).reshape(-1)
    # An empty view would be refused for an item size that numpy cannot divide 0 by.
    return flat.view(numpy.uint8) if flat.size else numpy.empty(0, dtype=numpy.uint8)
