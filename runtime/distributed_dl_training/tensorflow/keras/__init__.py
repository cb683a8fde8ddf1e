"""Distributed training with tf.keras, with Horovod's names and semantics.

    import tensorflow as tf
    import distributed_dl_training.tensorflow.keras as hvd

    hvd.init()
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.01 * hvd.size()))
    model.compile(optimizer=optimizer, loss=loss)
    model.fit(data, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])

Collectives take values and return arrays of numpy.
"""

from typing import Any

from tensorflow import keras as _keras

from distributed_dl_training import _common, _missing
from distributed_dl_training._common import *  # noqa: F403 - all of its __all__
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
from distributed_dl_training.tensorflow.keras import callbacks

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
