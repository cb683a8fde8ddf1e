"""Distributed training with Keras, with Horovod's names and semantics.

    import keras
    import distributed_dl_training.keras as hvd

See ``distributed_dl_training.tensorflow.keras``.  Keras 2 and 3, on TensorFlow.
"""

from typing import Any

import keras as _keras

from distributed_dl_training import _common, _missing
from distributed_dl_training._common import *  # noqa: F403 - all of its __all__
from distributed_dl_training.keras import callbacks
from distributed_dl_training.tensorflow import _models
from distributed_dl_training.tensorflow.keras import (
    Compression,
    DistributedOptimizer,
    PartialDistributedOptimizer,
    allgather,
    allreduce,
    broadcast,
    broadcast_global_variables,
    broadcast_variables,
    reducescatter,
)

_missing.refuse(__name__, _missing.reasons("elastic"))


def load_model(filepath: str, *arguments: Any, **options: Any) -> Any:
    """Return a saved model whose optimizer is distributed; see ``_models.load_model``.

    custom_optimizers, custom_objects, compression: in this order.
    """
    return _models.load_model(_keras.models.load_model, filepath, *arguments, **options)


__all__ = [
    "Compression",
    "DistributedOptimizer",
    "PartialDistributedOptimizer",
    "allgather",
    "allreduce",
    "broadcast",
    "broadcast_global_variables",
    "broadcast_variables",
    "callbacks",
    "load_model",
    "reducescatter",
]
__all__ += _common.__all__
