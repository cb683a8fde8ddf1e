"""Distributed training with TensorFlow, with Horovod's names and semantics.

    import tensorflow as tf
    import distributed_dl_training.tensorflow as hvd

    hvd.init()
    with tf.GradientTape() as tape:
        loss = loss_of(model(batch))
    tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))

TensorFlow 1.14, 1.15 and 2.4 or newer; eager, in ``tf.function`` and in sessions.  For every
collective what ``distributed_dl_training.numpy`` says holds here as well.  Tensors on a device
are copied to the host and back.  In a graph a collective is a ``tf.numpy_function``: XLA cannot
compile it (``jit_compile=True``), and TensorFlow runs one at a time, in the order that its
executor chooses.
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
from distributed_dl_training.numpy import barrier
from distributed_dl_training.tensorflow._compression import Compression
from distributed_dl_training.tensorflow._movement import (
    allgather,
    alltoall,
    broadcast,
    grouped_allgather,
)
from distributed_dl_training.tensorflow._numbers import (
    join,
    local_rank_op,
    local_size_op,
    process_set_included_op,
    rank_op,
    size_op,
)
from distributed_dl_training.tensorflow._optimizer import (
    DistributedOptimizer,
    PartialDistributedOptimizer,
)
from distributed_dl_training.tensorflow._reductions import (
    allreduce,
    grouped_allreduce,
    grouped_reducescatter,
    reducescatter,
)
from distributed_dl_training.tensorflow._sync_batch_norm import SyncBatchNormalization
from distributed_dl_training.tensorflow._tape import (
    DistributedGradientTape,
    PartialDistributedGradientTape,
)
from distributed_dl_training.tensorflow._variables import (
    BroadcastGlobalVariablesHook,
    allgather_object,
    broadcast_,
    broadcast_global_variables,
    broadcast_object,
    broadcast_object_fn,
    broadcast_variables,
)

_missing.refuse(__name__, _missing.reasons("Adasum", "elastic"))

Sum = Op.SUM
Average = Op.AVERAGE
Min = Op.MIN
Max = Op.MAX
Product = Op.PRODUCT

__all__ = [
    "Average",
    "BroadcastGlobalVariablesHook",
    "Compression",
    "DistributedGradientTape",
    "DistributedOptimizer",
    "DuplicateNameError",
    "EngineUnavailableError",
    "MPIUnavailableError",
    "Max",
    "Min",
    "MismatchError",
    "NotInitializedError",
    "Op",
    "PartialDistributedGradientTape",
    "PartialDistributedOptimizer",
    "PeerLostError",
    "ProcessSet",
    "Product",
    "StallError",
    "Sum",
    "SyncBatchNormalization",
    "add_process_set",
    "allgather",
    "allgather_object",
    "allreduce",
    "alltoall",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_global_variables",
    "broadcast_object",
    "broadcast_object_fn",
    "broadcast_variables",
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
    "grouped_allreduce",
    "grouped_reducescatter",
    "init",
    "is_homogeneous",
    "is_initialized",
    "join",
    "local_rank",
    "local_rank_op",
    "local_size",
    "local_size_op",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "process_set_included_op",
    "rank",
    "rank_op",
    "reducescatter",
    "remove_process_set",
    "rocm_built",
    "shutdown",
    "size",
    "size_op",
    "start_timeline",
    "stop_timeline",
]
