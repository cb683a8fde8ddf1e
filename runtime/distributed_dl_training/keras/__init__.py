"""Distributed training with Keras, with Horovod's names and semantics.

    import keras
    import distributed_dl_training.keras as hvd

See ``distributed_dl_training.tensorflow.keras``.  Keras 2 and 3, on TensorFlow.
"""

from typing import Any

import keras as _keras

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
from distributed_dl_training.keras import callbacks
from distributed_dl_training.tensorflow import _models
from distributed_dl_training.tensorflow._compression import Compression
from distributed_dl_training.tensorflow._models import (
    allgather,
    allreduce,
    broadcast,
    reducescatter,
)
from distributed_dl_training.tensorflow._optimizer import (
    DistributedOptimizer,
    PartialDistributedOptimizer,
)
from distributed_dl_training.tensorflow._variables import (
    broadcast_global_variables,
    broadcast_variables,
)

_missing.refuse(__name__, _missing.reasons("elastic"))

Sum = Op.SUM
Average = Op.AVERAGE


def load_model(filepath: str, *arguments: Any, **options: Any) -> Any:
    """Return a saved model whose optimizer is distributed; see ``_models.load_model``.

    custom_optimizers, custom_objects, compression: in this order.
    """
    return _models.load_model(_keras.models.load_model, filepath, *arguments, **options)


__all__ = [
    "Average",
    "Compression",
    "DistributedOptimizer",
    "DuplicateNameError",
    "EngineUnavailableError",
    "MPIUnavailableError",
    "MismatchError",
    "NotInitializedError",
    "Op",
    "PartialDistributedOptimizer",
    "PeerLostError",
    "ProcessSet",
    "StallError",
    "Sum",
    "add_process_set",
    "allgather",
    "allreduce",
    "broadcast",
    "broadcast_global_variables",
    "broadcast_variables",
    "callbacks",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "engine_name",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
    "init",
    "is_homogeneous",
    "is_initialized",
    "load_model",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "rank",
    "reducescatter",
    "remove_process_set",
    "rocm_built",
    "shutdown",
    "size",
    "start_timeline",
    "stop_timeline",
]
