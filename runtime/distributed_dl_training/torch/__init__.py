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

from distributed_dl_training import _missing
from distributed_dl_training._builds import (
    ccl_built,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    is_homogeneous,
    mpi_built,
    mpi_enabled,
    nccl_built,
    rocm_built,
)
from distributed_dl_training._collectives import join
from distributed_dl_training._core import (
    DuplicateNameError,
    EngineUnavailableError,
    MismatchError,
    MPIUnavailableError,
    NotInitializedError,
    Op,
    PeerLostError,
    StallError,
)
from distributed_dl_training._facts import (
    cross_rank,
    cross_size,
    engine_name,
    local_rank,
    local_size,
    mpi_threads_supported,
    rank,
    size,
)
from distributed_dl_training._handle import Handle, poll, synchronize
from distributed_dl_training._session import (
    ProcessSet,
    add_process_set,
    global_process_set,
    init,
    is_initialized,
    remove_process_set,
    shutdown,
    start_timeline,
    stop_timeline,
)
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

_missing.refuse(__name__, _missing.reasons("Adasum", "elastic"))

Sum = Op.SUM
Average = Op.AVERAGE
Min = Op.MIN
Max = Op.MAX
Product = Op.PRODUCT

__all__ = [
    "Average",
    "Compression",
    "DistributedOptimizer",
    "DuplicateNameError",
    "EngineUnavailableError",
    "Handle",
    "MPIUnavailableError",
    "Max",
    "Min",
    "MismatchError",
    "NotInitializedError",
    "Op",
    "PeerLostError",
    "ProcessSet",
    "Product",
    "StallError",
    "Sum",
    "SyncBatchNorm",
    "add_process_set",
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
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "engine_name",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
    "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "init",
    "is_homogeneous",
    "is_initialized",
    "join",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "poll",
    "rank",
    "reducescatter",
    "reducescatter_async",
    "remove_process_set",
    "rocm_built",
    "shutdown",
    "size",
    "sparse_allreduce_async",
    "start_timeline",
    "stop_timeline",
    "synchronize",
]
