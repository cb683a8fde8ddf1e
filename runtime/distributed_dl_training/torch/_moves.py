"""Collectives that move tensors or share them out, with Horovod's names and defaults."""

from typing import Any, List, Optional, Sequence, Tuple

import torch

from distributed_dl_training import _collectives
from distributed_dl_training._conductor import Handle
from distributed_dl_training._core import Op
from distributed_dl_training._session import ProcessSet, global_process_set, rank
from distributed_dl_training.torch._compression import Compression
from distributed_dl_training.torch._grad import differentiable, of_gradient
from distributed_dl_training.torch._reductions import allreduce, compressed, numbered
from distributed_dl_training.torch._tensors import TENSORS, Handles, then


def allgather_async(
    tensor: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Handle:
    """Start what ``allgather`` does, and return a handle; without gradients."""
    return _collectives.allgather(TENSORS, tensor, name, process_set)


def allgather(
    tensor: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Any:
    """Return the tensors of all ranks joined along the first dimension, in rank order.

    tensor: dense, at least one dimension; the first may differ between ranks and may be 0, the
        others must agree.  Any dtype that is not quantized.

    Differentiable: the gradient is summed over all ranks.

    Raises MismatchError, NotInitializedError, ValueError for a 0-d tensor and TypeError for a
    tensor that cannot travel.
    """

    def gathered(mine: Any) -> Any:
        return allgather_async(mine, name, process_set).synchronize()

    def transpose(gradient: Any) -> Any:
        named = of_gradient(name)
        rows = torch.tensor([tensor.shape[0]], device="cpu")
        counts = allgather(rows, named and f"{named}.rows", process_set).tolist()
        summed = allreduce(gradient, None, named, op=Op.SUM, process_set=process_set)
        start = sum(counts[: process_set.rank()])
        return summed[start : start + tensor.shape[0]]

    return differentiable(tensor, gathered, transpose)


def grouped_allgather_async(
    tensors: Sequence[Any], name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Handles:
    """Start what ``grouped_allgather`` does, and return a handle."""
    handles = [
        allgather_async(each, numbered(name, at), process_set) for at, each in enumerate(tensors)
    ]
    return Handles(handles, list)


def grouped_allgather(
    tensors: Sequence[Any], name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> List[Any]:
    """Return several tensors, each gathered as by ``allgather``; without gradients."""
    gathered: List[Any] = grouped_allgather_async(tensors, name, process_set).synchronize()
    return gathered


def broadcast_async(
    tensor: Any,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """Start what ``broadcast`` does, and return a handle; without gradients."""
    return _collectives.broadcast(TENSORS, tensor, root_rank, name, process_set)


def broadcast(
    tensor: Any,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return the root's ``tensor`` on every rank.

    tensor: dense, equal shapes on all ranks, any dtype that is not quantized.
    root_rank: from 0 to size() - 1, a rank of all and not of the process set, as in Horovod.

    Differentiable: the gradient is summed over all ranks on the root, and 0 elsewhere.

    Raises MismatchError, NotInitializedError, ValueError if root_rank is not one of the ranks, and
    TypeError if it is not an integer or the tensor cannot travel.
    """

    def moved(mine: Any) -> Any:
        return broadcast_async(mine, root_rank, name, process_set).synchronize()

    def transpose(gradient: Any) -> Any:
        summed = allreduce(gradient, None, of_gradient(name), op=Op.SUM, process_set=process_set)
        return summed if rank() == root_rank else torch.zeros_like(summed)

    return differentiable(tensor, moved, transpose)


def broadcast_async_(
    tensor: Any,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """Start what ``broadcast_`` does, and return a handle."""
    return _collectives.broadcast(TENSORS, tensor, root_rank, name, process_set, in_place=True)


def broadcast_(
    tensor: Any,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Replace ``tensor`` by the root's, and return it; see ``broadcast``.  Without gradients."""
    return broadcast_async_(tensor, root_rank, name, process_set).synchronize()


def alltoall_async(
    tensor: Any,
    splits: Any = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """Start what ``alltoall`` does, and return a handle; without gradients."""
    handle = _alltoall_async(tensor, splits, name, process_set)
    return then(handle, lambda both: both[0]) if splits is None else handle


def alltoall(
    tensor: Any,
    splits: Any = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Send rows of ``tensor`` to all ranks; return the rows received.

    tensor: dense, at least one dimension; the first may differ between ranks, the others must
        agree.
    splits: rows for each rank, in rank order, together the first dimension; a tensor or a list.
        Without it every rank gets equally many.  With it the result is a pair: the rows, and how
        many came from each rank (int32, on the host unless ``splits`` lies on a device).

    Differentiable: gradients go back to where the rows came from.

    Raises MismatchError, NotInitializedError, TypeError for a tensor that cannot travel, and
    ValueError for splits that do not fit.
    """
    received: List[Any] = []

    def moved(mine: Any) -> Any:
        rows, counts = _alltoall_async(mine, splits, name, process_set).synchronize()
        received.append(counts)
        return rows

    def transpose(gradient: Any) -> Any:
        # Without splits too the ranks may have had unequally many rows.
        return alltoall(gradient, received[0], of_gradient(name), process_set)[0]

    rows = differentiable(tensor, moved, transpose)
    return rows if splits is None else (rows, received[0])


def _alltoall_async(
    tensor: Any, splits: Any, name: Optional[str], process_set: ProcessSet
) -> Handle:
    """Return a handle of the rows and how many came from each rank (int32)."""
    given = isinstance(splits, torch.Tensor)
    counts, device = (splits.tolist(), splits.device) if given else (splits, "cpu")
    handle = _collectives.alltoall(TENSORS, tensor, counts, name, process_set)

    def result(both: Tuple[Any, List[int]]) -> Any:
        return both[0], torch.tensor(both[1], dtype=torch.int32, device=device)

    return then(handle, result)


def reducescatter_async(
    tensor: Any,
    name: Optional[str] = None,
    op: Op = Op.AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Handle:
    """Start what ``reducescatter`` does, and return a handle; without gradients."""
    factors = (prescale_factor, postscale_factor)
    return _collectives.reducescatter(TENSORS, tensor, name, op, factors, process_set)


def reducescatter(
    tensor: Any,
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: Op = Op.AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Any:
    """Return this rank's share, along the first dimension, of ``tensor`` reduced over all ranks.

    tensor: dense, at least one dimension, equal shapes on all ranks.  Rows are shared equally;
        the first ranks get one more where they do not come out even.
    op: Sum or Average; dtypes and factors as for ``allreduce``.

    Differentiable.  Raises as ``allreduce``, and ValueError for a 0-d tensor or another op.
    """

    def reduced(mine: Any) -> Any:
        travels, context = compressed(compression, mine)
        handle = reducescatter_async(
            travels, name, op, process_set, prescale_factor, postscale_factor
        )
        return compression.decompress(handle.synchronize(), context)

    def transpose(gradient: Any) -> Any:
        ranks = process_set.size() if op is Op.AVERAGE else 1
        factor = prescale_factor * postscale_factor / ranks
        return allgather(gradient, of_gradient(name), process_set) * factor

    return differentiable(tensor, reduced, transpose)


def grouped_reducescatter_async(
    tensors: Sequence[Any],
    name: Optional[str] = None,
    op: Op = Op.AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Handles:
    """Start what ``grouped_reducescatter`` does, and return a handle."""
    factors = (prescale_factor, postscale_factor)
    handles = [
        reducescatter_async(each, numbered(name, at), op, process_set, *factors)
        for at, each in enumerate(tensors)
    ]
    return Handles(handles, list)


def grouped_reducescatter(
    tensors: Sequence[Any],
    name: Optional[str] = None,
    op: Op = Op.AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> List[Any]:
    """Return this rank's share of several tensors, each as by ``reducescatter``.

    Without gradients.
    """
    factors = (prescale_factor, postscale_factor)
    shares: List[Any] = grouped_reducescatter_async(
        tensors, name, op, process_set, *factors
    ).synchronize()
    return shares
