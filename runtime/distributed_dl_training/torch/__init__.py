"""Distributed training with PyTorch, with Horovod's names and semantics.

    import torch
    import distributed_dl_training.torch as hvd

    hvd.init()
    torch.manual_seed(42 + hvd.rank())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

For every collective what ``distributed_dl_training.numpy`` says holds here as well: all ranks
must ask for it with equal arguments, those with a name in any order; wrong arguments are errors
on every rank; ``..._async`` returns a handle.  Names that end in ``_`` change their tensors in
place.  Tensors on a device are copied to the host and back, unless the engine is nccl.
"""

from distributed_dl_training import _common, _missing
from distributed_dl_training._collectives import join
from distributed_dl_training._common import *  # noqa: F403 - all of its __all__
from distributed_dl_training._handle import Handle, poll, synchronize
from distributed_dl_training.numpy import allgather_object, barrier, broadcast_object
from distributed_dl_training.torch._compression import Compression
from distributed_dl_training.torch._data_movement import (
    allgather,
    allgather_async,
    alltoall,
    alltoall_async,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_allgather,
    grouped_allgather_async,
    grouped_reducescatter,
    grouped_reducescatter_async,
    reducescatter,
    reducescatter_async,
)
from distributed_dl_training.torch._optimizer import DistributedOptimizer
from distributed_dl_training.torch._reductions import (
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
)
from distributed_dl_training.torch._sparse import sparse_allreduce_async
from distributed_dl_training.torch._state import broadcast_optimizer_state, broadcast_parameters
from distributed_dl_training.torch._sync_batch_norm import SyncBatchNorm

_missing.refuse(__name__, _missing.reasons("elastic"))


__all__ = [
    "Compression",
    "DistributedOptimizer",
    "Handle",
    "SyncBatchNorm",
    "allgather",
    "allgather_async",
    "allgather_object",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "alltoall",
    "alltoall_async",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "join",
    "poll",
    "reducescatter",
    "reducescatter_async",
    "sparse_allreduce_async",
    "synchronize",
]
__all__ += _common.__all__
