"""Collectives that move tensors or share them out, with Horovod's names and defaults."""

from typing import Any, List, Optional, Sequence, Tuple

import torch

from distributed_dl_training import _collectives
from distributed_dl_training._core import Op, part_name
from distributed_dl_training._facts import rank
from distributed_dl_training._handle import Handle
from distributed_dl_training._session import ProcessSet, global_process_set
from distributed_dl_training.torch._compression import Compression
from distributed_dl_training.torch._grad import differentiable
from distributed_dl_training.torch._reductions import (
    allreduce,
    compressed,
    grouped_allreduce,
)
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

    Differentiable: this rank's rows of the gradient's average over all ranks, as in Horovod.

    Raises MismatchError, NotInitializedError, ValueError for a 0-d tensor and TypeError for a
    tensor that cannot travel.
    """

    def gathered(mine: List[Any]) -> List[Any]:
        return [allgather_async(mine[0], name, process_set).synchronize()]

    def backward(gradients: List[Any], shapes: List[Any]) -> List[Any]:
        return _own_rows(gradients, shapes, part_name(name, "gradient"), process_set)

    return differentiable([tensor], gathered, backward)[0]


def _own_rows(
    gradients: Sequence[Any], shapes: Sequence[Any], name: Optional[str], process_set: ProcessSet
) -> List[Any]:
    """Return what of gathered gradients, averaged, belongs to this rank's tensors."""
    rows = torch.tensor([[shape[0] for shape in shapes]], device="cpu")
    counts = allgather(rows, part_name(name, "rows"), process_set)
    averaged = grouped_allreduce(gradients, None, name, op=Op.AVERAGE, process_set=process_set)
    starts = counts[: process_set.rank()].sum(0).tolist()
    return [each[start : start + shape[0]] for each, start, shape in zip(averaged, starts, shapes)]


def grouped_allgather_async(
    tensors: Sequence[Any], name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Handles:
    """Start what ``grouped_allgather`` does, and return a handle."""
    handles = [
        allgather_async(each, part_name(name, at), process_set) for at, each in enumerate(tensors)
    ]
    return Handles(handles, list)


def grouped_allgather(
    tensors: Sequence[Any], name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> List[Any]:
    """Return several tensors, each gathered as by ``allgather``, gradients included."""

    def gathered(mine: List[Any]) -> List[Any]:
        made: List[Any] = grouped_allgather_async(mine, name, process_set).synchronize()
        return made

    def backward(gradients: List[Any], shapes: List[Any]) -> List[Any]:
        return _own_rows(gradients, shapes, part_name(name, "gradient"), process_set)

    return differentiable(tensors, gathered, backward)


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

    Differentiable: the gradient is the average over all ranks on the root, and 0 elsewhere, as in
    Horovod.

    Raises MismatchError, NotInitializedError, ValueError if root_rank is not one of the ranks, and
    TypeError if it is not an integer or the tensor cannot travel.
    """

    def moved(mine: List[Any]) -> List[Any]:
        return [broadcast_async(mine[0], root_rank, name, process_set).synchronize()]

    def backward(gradients: List[Any], shapes: List[Any]) -> List[Any]:
        named = part_name(name, "gradient")
        averaged = allreduce(gradients[0], None, named, op=Op.AVERAGE, process_set=process_set)
        return [averaged if rank() == root_rank else torch.zeros_like(averaged)]

    return differentiable([tensor], moved, backward)[0]


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
    """Start what ``alltoall`` does, and return a handle; without gradients.

    Its result is the pair of rows and counts, also without ``splits``, as in Horovod.
    """
    given = isinstance(splits, torch.Tensor)
    counts, device = (splits.tolist(), splits.device) if given else (splits, "cpu")
    handle = _collectives.alltoall(TENSORS, tensor, counts, name, process_set)

    def result(both: Tuple[Any, List[int]]) -> Any:
        return both[0], torch.tensor(both[1], dtype=torch.int32, device=device)

    return then(handle, result)


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

    def moved(mine: List[Any]) -> List[Any]:
        rows, counts = alltoall_async(mine[0], splits, name, process_set).synchronize()
        received.append(counts)
        return [rows]

    def backward(gradients: List[Any], shapes: List[Any]) -> List[Any]:
        # Without splits too the ranks may have had unequally many rows.
        return [alltoall(gradients[0], received[0], part_name(name, "gradient"), process_set)[0]]

    rows = differentiable([tensor], moved, backward)[0]
    return rows if splits is None else (rows, received[0])


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

    Differentiable, with Horovod's scale: the ranks' gradients are gathered, times the number of
    ranks with op=Sum.

    Raises as ``allreduce``, and ValueError for a 0-d tensor or another op.
    """
    return _reducescatter(
        [tensor], name, compression, op, process_set, prescale_factor, postscale_factor, False
    )[0]


def _reducescatter(
    tensors: Sequence[Any],
    name: Optional[str],
    compression: Any,
    op: Op,
    process_set: ProcessSet,
    prescale_factor: float,
    postscale_factor: float,
    grouped: bool,
) -> List[Any]:
    factors = (prescale_factor, postscale_factor)

    def reduced(mine: List[Any]) -> List[Any]:
        pairs = [compressed(compression, each) for each in mine]
        handles = [
            reducescatter_async(
                travels, part_name(name, at) if grouped else name, op, process_set, *factors
            )
            for at, (travels, _) in enumerate(pairs)
        ]
        return [
            compression.decompress(handle.synchronize(), context)
            for handle, (_, context) in zip(handles, pairs)
        ]

    def backward(gradients: List[Any], shapes: List[Any]) -> List[Any]:
        scales = [process_set.size() if op is Op.SUM else 1, prescale_factor, postscale_factor]
        scaled = []
        for gradient in gradients:
            pair = compressed(compression, gradient)
            travels = pair[0]
            for scale in scales:
                travels = travels if scale == 1 else travels * scale
            scaled.append((travels, pair[1]))
        gathered = grouped_allgather_async(
            [travels for travels, _ in scaled], part_name(name, "gradient"), process_set
        ).synchronize()
        return [compression.decompress(each, pair[1]) for each, pair in zip(gathered, scaled)]

    return differentiable(tensors, reduced, backward)


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
        reducescatter_async(each, part_name(name, at), op, process_set, *factors)
        for at, each in enumerate(tensors)
    ]
    return Handles(handles, list)


def grouped_reducescatter(
    tensors: Sequence[Any],
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: Op = Op.AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> List[Any]:
    """Return this rank's share of several tensors, each as by ``reducescatter``."""
    return _reducescatter(
        tensors, name, compression, op, process_set, prescale_factor, postscale_factor, True
    )
