"""Allreduce in all its forms, with Horovod's names, arguments and defaults."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

from distributed_dl_training import _collectives, _session
from distributed_dl_training._core import Op, part_name
from distributed_dl_training._handle import Handle
from distributed_dl_training._horovod import combined_operation
from distributed_dl_training._session import ProcessSet, global_process_set
from distributed_dl_training.torch._compression import Compression
from distributed_dl_training.torch._grad import differentiable
from distributed_dl_training.torch._sparse import sparse_allreduce_async
from distributed_dl_training.torch._tensors import TENSORS, Handles


def allreduce_async(
    tensor: Any,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[Op] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Start what ``allreduce`` does, and return a handle; without gradients."""
    kind = combined_operation(op, average)
    factors = (prescale_factor, postscale_factor)
    return _start(tensor, name, kind, factors, process_set, False)


def _start(
    tensor: Any,
    name: Optional[str],
    op: Op,
    factors: Tuple[float, float],
    process_set: ProcessSet,
    waits: bool,
) -> Any:
    if isinstance(tensor, torch.Tensor) and tensor.is_sparse:
        return sparse_allreduce_async(tensor, name, op, process_set, *factors)
    return _collectives.reduce_one(TENSORS, tensor, name, op, *factors, process_set, waits)


def allreduce(
    tensor: Any,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: Optional[Op] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return ``tensor`` reduced over all ranks, element by element, in its shape and dtype.

    tensor: any shape.  bool, integers of 8 to 64 bits, float16, bfloat16, float32, float64,
        complex64, complex128; or sparse COO, which comes back coalesced.
    average: deprecated; True is op=Average, False is op=Sum.
    op: Sum, Product: all but bool.  Integers wrap around.
        Average (the default): Sum divided by size(); floating and complex dtypes only.
        Min, Max: all but complex; of bool they are "all" and "any".  A NaN on any rank gives
        NaN on every rank.
        Sparse tensors: Sum and Average.
    prescale_factor, postscale_factor: multiply before and after the reduction.

    float16 and bfloat16 are reduced in float32 and rounded once, at the end; the engine nccl sums
    them itself.  Differentiable: the gradient is reduced in the same way.

    Raises MismatchError, NotInitializedError, and TypeError if dtype, op and factors do not go
    together.
    """
    kind = combined_operation(op, average)
    options = (prescale_factor, postscale_factor, process_set)

    def reduced(mine: List[Any]) -> List[Any]:
        travels, context = compressed(compression, mine[0])
        handle = _start(travels, name, kind, (prescale_factor, postscale_factor), process_set, True)
        return [compression.decompress(handle.synchronize(), context)]

    def backward(gradients: List[Any], shapes: List[Any]) -> List[Any]:
        _need_gradient(kind)
        named = part_name(name, "gradient")
        return [allreduce(gradients[0], None, named, compression, kind, *options)]

    return differentiable([tensor], reduced, backward)[0]


def allreduce_async_(
    tensor: Any,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[Op] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """Start what ``allreduce_`` does, and return a handle."""
    kind = combined_operation(op, average)
    factors = (prescale_factor, postscale_factor)
    return _collectives.reduce_one(TENSORS, tensor, name, kind, *factors, process_set, False, True)


def allreduce_(
    tensor: Any,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[Op] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Reduce ``tensor`` over all ranks in place, and return it; see ``allreduce``.

    A dense tensor.  Without gradients.
    """
    return allreduce_async_(
        tensor, average, name, op, prescale_factor, postscale_factor, process_set
    ).synchronize()


def grouped_allreduce_async(
    tensors: Sequence[Any],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[Op] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handles:
    """Start what ``grouped_allreduce`` does, and return a handle; without gradients."""
    factors = (prescale_factor, postscale_factor)
    return _grouped(tensors, name, combined_operation(op, average), factors, process_set, False)


def grouped_allreduce(
    tensors: Sequence[Any],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: Optional[Op] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> List[Any]:
    """Return several tensors, each reduced as by ``allreduce``; those of one dtype as one exchange.

    Differentiable.  Raises as ``allreduce``.
    """
    kind = combined_operation(op, average)
    options = (prescale_factor, postscale_factor, process_set)

    def reduced(mine: List[Any]) -> List[Any]:
        pairs = [compressed(compression, each) for each in mine]
        handle = grouped_allreduce_async([each for each, _ in pairs], None, name, kind, *options)
        contexts = [context for _, context in pairs]
        return [compression.decompress(*each) for each in zip(handle.synchronize(), contexts)]

    def backward(gradients: List[Any], shapes: List[Any]) -> List[Any]:
        _need_gradient(kind)
        named = part_name(name, "gradient")
        return grouped_allreduce(gradients, None, named, compression, kind, *options)

    return differentiable(tensors, reduced, backward)


def grouped_allreduce_async_(
    tensors: Sequence[Any],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[Op] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handles:
    """Start what ``grouped_allreduce_`` does, and return a handle."""
    factors = (prescale_factor, postscale_factor)
    return _grouped(tensors, name, combined_operation(op, average), factors, process_set, True)


def grouped_allreduce_(
    tensors: Sequence[Any],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[Op] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> List[Any]:
    """Reduce several tensors in place, and return them; see ``grouped_allreduce``."""
    reduced: List[Any] = grouped_allreduce_async_(
        tensors, average, name, op, prescale_factor, postscale_factor, process_set
    ).synchronize()
    return reduced


def _need_gradient(op: Op) -> None:
    """Raise NotImplementedError for an operation whose gradient is not that of a sum.

    Horovod reduces the gradient by the same operation, so its rules do so as well.
    """
    if op not in (Op.SUM, Op.AVERAGE) and not _session.horovod_rules():
        raise NotImplementedError(f"allreduce with op={op.value} has no gradient")


def compressed(compression: Any, tensor: Any) -> Tuple[Any, Any]:
    """Compress what is a dense tensor; the others are refused together with other ranks."""
    if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided:
        return tensor, None
    pair: Tuple[Any, Any] = compression.compress(tensor)
    return pair


def _grouped(
    tensors: Sequence[Any],
    name: Optional[str],
    op: Any,
    factors: Tuple[float, float],
    process_set: ProcessSet,
    in_place: bool,
) -> Handles:
    """Reduce tensors, those of one dtype together."""
    # An empty group is agreed on as well: other ranks may have tensors in it.
    places: Dict[str, List[int]] = {} if tensors else {"": []}
    for at, tensor in enumerate(tensors):
        places.setdefault(str(getattr(tensor, "dtype", "")), []).append(at)
    handles = [
        _collectives.allreduce(
            TENSORS,
            [tensors[at] for at in alike],
            part_name(name, number),
            op,
            factors,
            process_set,
            grouped=True,
            in_place=in_place,
        )
        for number, alike in enumerate(places.values())
    ]

    def in_order(parts: List[List[Any]]) -> List[Any]:
        made: List[Any] = [None] * len(tensors)
        for alike, part in zip(places.values(), parts):
            for at, result in zip(alike, part):
                made[at] = result
        return made

    return Handles(handles, in_order)
