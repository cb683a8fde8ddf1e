"""Batch normalization with the statistics of the batches of all ranks."""

from typing import Any

import tensorflow as tf

from distributed_dl_training import _facts
from distributed_dl_training._core import Op
from distributed_dl_training.tensorflow._reductions import allreduce


class SyncBatchNormalization(tf.keras.layers.BatchNormalization):
    """Batch normalization over the batches of all ranks, with equal weights."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Take the options of the layer of Keras.  Raises ValueError for fused=True."""
        if options.pop("fused", False):
            raise ValueError("SyncBatchNormalization cannot be fused")
        options.setdefault("name", None)
        super().__init__(*arguments, **options)
        if hasattr(self, "fused"):
            self.fused = False

    def _moments(self, inputs: Any, *arguments: Any, **options: Any) -> Any:
        mean, variance = super()._moments(inputs, *arguments, **options)
        if _facts.size() == 1:
            return mean, variance
        moments = tf.stack([mean, variance + tf.math.square(mean)])
        mean, mean_of_squares = tf.unstack(allreduce(moments, op=Op.AVERAGE))
        return mean, mean_of_squares - tf.math.square(mean)
