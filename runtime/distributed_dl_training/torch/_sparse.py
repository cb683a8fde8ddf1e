"""The allreduce of sparse tensors: what is there is gathered from all ranks and added."""

from typing import Any, Dict, List, Optional

import torch

from distributed_dl_training import _collectives, _reduce
from distributed_dl_training._agreement import Request
from distributed_dl_training._core import Op, part_name
from distributed_dl_training._device import numpy_dtype
from distributed_dl_training._session import ProcessSet, global_process_set
from distributed_dl_training.torch._tensors import TENSORS, Handles

# Torch warns if it is not told whether to check indices, which come from coalesced tensors here.
UNCHECKED: Dict[str, Any] = (
    {"check_invariants": False} if hasattr(torch.sparse, "check_sparse_tensor_invariants") else {}
)


def sparse_allreduce_async(
    tensor: Any,
    name: Optional[str] = None,
    op: Op = Op.AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Handles:
    """Start the allreduce of a sparse COO tensor, and return a handle.

    Indices and values are gathered, so that the cost grows with what is there and not with the
    shape, which must be equal on all ranks.  The result is coalesced.  A call of the handle
    synchronizes it, as in Horovod.

    op: Sum or Average.
    prescale_factor, postscale_factor: multiply what is there before and after the reduction.

    Raises ValueError for another op or a tensor that is not sparse COO, and TypeError if dtype, op
    and factors do not go together, on this rank only.
    """
    if op not in (Op.SUM, Op.AVERAGE):
        raise ValueError("a sparse allreduce takes op=Sum or op=Average")
    if tensor.layout != torch.sparse_coo:
        raise ValueError(f"a tensor of layout sparse_coo is needed, not {tensor.layout}")
    held = tensor.detach().coalesce()
    scales = (prescale_factor, postscale_factor)
    refusal = _reduce.refusal(numpy_dtype(held.dtype), op, scales != (1.0, 1.0))
    if refusal is not None:
        raise refusal
    size = process_set.size()
    # Gathering alone would not tell that ranks differ in these.
    asked = Request("sparse_allreduce", None, "", tuple(held.shape), op.value, *scales)

    def gather(part: str, mine: Any) -> Any:
        return _collectives.allgather(TENSORS, mine, part_name(name, part), process_set, asked)

    def finish(parts: List[Any]) -> Any:
        indices, values = parts
        if op is Op.AVERAGE:
            values = values / size
        if postscale_factor != 1.0:
            values = values * postscale_factor
        return torch.sparse_coo_tensor(indices.t(), values, held.shape, **UNCHECKED).coalesce()

    values = held.values() if prescale_factor == 1.0 else held.values() * prescale_factor
    return Handles([gather("indices", held.indices().t()), gather("values", values)], finish)
