"""Collective operations on numpy arrays, with Horovod's names and semantics.

    import distributed_dl_training.numpy as hvd

    hvd.init()
    mean = hvd.allreduce(gradient, name="gradient")

For every collective:

- All ranks must ask for it, under the same name and with the same dtype, shape and options; if they
  differ, every rank raises MismatchError with the same text, and no data moves.  Those with a name
  may come in any order, those without one must come in the same order.
- Wrong arguments are errors on every rank, raised after that comparison, so that no rank waits
  for one that has failed.
- ``tensor`` is anything numpy.asarray takes: any memory layout, any byte order.  It is never
  changed, and must not be while a collective is under way.  The result is a new, C-contiguous
  array in native byte order.
- ``process_set`` names the ranks that take part; all of them if it is left out.
- The form that ends in ``_async`` returns a handle at once: ``synchronize`` waits for its result,
  ``poll`` tells whether it is there.
- Before init, or after shutdown, NotInitializedError is raised.  If a rank is lost while others
  wait for it, they raise PeerLostError, or StallError after DDLT_STALL_SHUTDOWN_TIME_SECONDS.
"""

from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Tuple

from distributed_dl_training import _collectives, _common, _missing, _objects
from distributed_dl_training._arrays import ARRAYS as _ARRAYS
from distributed_dl_training._collectives import join
from distributed_dl_training._common import *  # noqa: F403 - all of its __all__
from distributed_dl_training._common import Average, ProcessSet
from distributed_dl_training._core import Array, Op
from distributed_dl_training._handle import Handle, poll, synchronize

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_missing.refuse(__name__, _missing.REASONS)


__all__ = [
    "Handle",
    "allgather",
    "allgather_async",
    "allgather_object",
    "allreduce",
    "allreduce_async",
    "alltoall",
    "alltoall_async",
    "barrier",
    "broadcast",
    "broadcast_async",
    "broadcast_object",
    "grouped_allreduce",
    "grouped_allreduce_async",
    "join",
    "poll",
    "reducescatter",
    "reducescatter_async",
    "synchronize",
]
__all__ += _common.__all__


def allreduce_async(
    tensor: "ArrayLike",
    name: Optional[str] = None,
    op: Op = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Optional[ProcessSet] = None,
) -> Handle:
    """Start what ``allreduce`` does, and return a handle."""
    return _collectives.reduce_one(
        _ARRAYS, tensor, name, op, prescale_factor, postscale_factor, process_set
    )


def allreduce(
    tensor: "ArrayLike",
    name: Optional[str] = None,
    op: Op = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Optional[ProcessSet] = None,
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
    handle = _collectives.reduce_one(
        _ARRAYS, tensor, name, op, prescale_factor, postscale_factor, process_set, True
    )
    result: Array = handle.synchronize()
    return result


def grouped_allreduce_async(
    tensors: Sequence["ArrayLike"],
    name: Optional[str] = None,
    op: Op = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Optional[ProcessSet] = None,
) -> Handle:
    """Start what ``grouped_allreduce`` does, and return a handle."""
    factors = (prescale_factor, postscale_factor)
    return _collectives.allreduce(
        _ARRAYS, list(tensors), name, op, factors, process_set, grouped=True
    )


def grouped_allreduce(
    tensors: Sequence["ArrayLike"],
    name: Optional[str] = None,
    op: Op = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Optional[ProcessSet] = None,
) -> List[Array]:
    """Return several arrays of one dtype, each reduced as by ``allreduce``, as one exchange.

    The group is agreed on as a whole, so that it costs no more than a single array.

    Raises as ``allreduce``, and TypeError for mixed dtypes.
    """
    handle = grouped_allreduce_async(
        tensors, name, op, prescale_factor, postscale_factor, process_set
    )
    result: List[Array] = handle.synchronize()
    return result


def allgather_async(
    tensor: "ArrayLike", name: Optional[str] = None, process_set: Optional[ProcessSet] = None
) -> Handle:
    """Start what ``allgather`` does, and return a handle."""
    return _collectives.allgather(_ARRAYS, tensor, name, process_set)


def allgather(
    tensor: "ArrayLike", name: Optional[str] = None, process_set: Optional[ProcessSet] = None
) -> Array:
    """Return the arrays of all ranks joined along the first dimension, in rank order.

    tensor: at least one dimension; the first may differ between ranks and may be 0, the others
        must agree.  Any dtype of fixed size that holds no Python objects.

    Raises MismatchError, NotInitializedError, ValueError for a 0-d tensor and TypeError for a
    dtype that cannot travel.
    """
    result: Array = allgather_async(tensor, name, process_set).synchronize()
    return result


def broadcast_async(
    tensor: "ArrayLike",
    root_rank: int,
    name: Optional[str] = None,
    process_set: Optional[ProcessSet] = None,
) -> Handle:
    """Start what ``broadcast`` does, and return a handle."""
    return _collectives.broadcast(_ARRAYS, tensor, root_rank, name, process_set)


def broadcast(
    tensor: "ArrayLike",
    root_rank: int,
    name: Optional[str] = None,
    process_set: Optional[ProcessSet] = None,
) -> Array:
    """Return the root's ``tensor`` on every rank.

    tensor: any shape, equal on all ranks.  Any dtype of fixed size that holds no Python objects.
    root_rank: from 0 to size() - 1, a rank of all and not of the process set, as in Horovod.

    Raises MismatchError, NotInitializedError, ValueError if root_rank is not one of the ranks, and
    TypeError if it is not an integer or the dtype cannot travel.
    """
    result: Array = broadcast_async(tensor, root_rank, name, process_set).synchronize()
    return result


def alltoall_async(
    tensor: "ArrayLike",
    splits: Optional[Sequence[int]] = None,
    name: Optional[str] = None,
    process_set: Optional[ProcessSet] = None,
) -> Handle:
    """Start what ``alltoall`` does, and return a handle."""
    return _collectives.alltoall(_ARRAYS, tensor, splits, name, process_set)


def alltoall(
    tensor: "ArrayLike",
    splits: Optional[Sequence[int]] = None,
    name: Optional[str] = None,
    process_set: Optional[ProcessSet] = None,
) -> Tuple[Array, List[int]]:
    """Send rows of ``tensor`` to all ranks; return the rows received, and how many from each.

    tensor: at least one dimension; the first may differ between ranks, the others must agree.
    splits: rows for each rank, in rank order, together the first dimension; equally many if it
        is left out.

    Raises MismatchError, NotInitializedError, TypeError for a dtype that cannot travel, and
    ValueError for splits that do not fit.
    """
    result: Tuple[Array, List[int]] = alltoall_async(
        tensor, splits, name, process_set
    ).synchronize()
    return result


def reducescatter_async(
    tensor: "ArrayLike",
    name: Optional[str] = None,
    op: Op = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Optional[ProcessSet] = None,
) -> Handle:
    """Start what ``reducescatter`` does, and return a handle."""
    factors = (prescale_factor, postscale_factor)
    return _collectives.reducescatter(_ARRAYS, tensor, name, op, factors, process_set)


def reducescatter(
    tensor: "ArrayLike",
    name: Optional[str] = None,
    op: Op = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Optional[ProcessSet] = None,
) -> Array:
    """Return this rank's share, along the first dimension, of ``tensor`` reduced over all ranks.

    tensor: at least one dimension, equal shapes on all ranks.  Rows are shared equally; the
        first ranks get one more where they do not come out even.
    op: Sum or Average; dtypes and factors as for ``allreduce``.

    Raises as ``allreduce``, and ValueError for a 0-d tensor or another op.
    """
    handle = reducescatter_async(tensor, name, op, prescale_factor, postscale_factor, process_set)
    result: Array = handle.synchronize()
    return result


def barrier(process_set: Optional[ProcessSet] = None) -> None:
    """Return when every rank has called it.  Raises MismatchError, NotInitializedError."""
    _collectives.barrier(process_set).synchronize()


def broadcast_object(
    obj: Any = None,
    root_rank: int = 0,
    name: Optional[str] = None,
    process_set: Optional[ProcessSet] = None,
) -> Any:
    """Return the root's ``obj`` on every rank, by pickle; the root gets its own back.

    Raises as ``broadcast``; if the root's object cannot be pickled MismatchError, caused there by
    what pickle raises.
    """
    return _objects.broadcast(obj, root_rank, name, process_set)


def allgather_object(
    obj: Any, name: Optional[str] = None, process_set: Optional[ProcessSet] = None
) -> List[Any]:
    """Return every rank's ``obj``, by pickle, in rank order.

    Raises as ``allgather``; if an object cannot be pickled MismatchError, caused on its rank by
    what pickle raises.
    """
    return _objects.allgather(obj, name, process_set)
