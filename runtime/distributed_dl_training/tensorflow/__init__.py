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
are copied to the host and back.

In a graph a collective is an operation in C++, which ``build`` compiles: no thread of TensorFlow
waits in it, so ranks may execute independent collectives in any order.  Where it is not built, a
collective is a ``tf.numpy_function``: TensorFlow runs one at a time, in the order that its executor
chooses.  ``build_info()`` returns which of them runs, and DDLT_TENSORFLOW, ``op`` or
``py-function``, chooses.  XLA compiles neither: under ``jit_compile=True`` they raise
NotImplementedError.
"""

from distributed_dl_training import _common, _missing
from distributed_dl_training._common import *  # noqa: F403 - all of its __all__
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
from distributed_dl_training.tensorflow._operation import build_info
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

_missing.refuse(__name__, _missing.reasons("elastic"))


__all__ = [
    "BroadcastGlobalVariablesHook",
    "Compression",
    "DistributedGradientTape",
    "DistributedOptimizer",
    "PartialDistributedGradientTape",
    "PartialDistributedOptimizer",
    "SyncBatchNormalization",
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
    "build_info",
    "grouped_allgather",
    "grouped_allreduce",
    "grouped_reducescatter",
    "join",
    "local_rank_op",
    "local_size_op",
    "process_set_included_op",
    "rank_op",
    "reducescatter",
    "size_op",
]
__all__ += _common.__all__
