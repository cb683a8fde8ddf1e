"""Functions of the Keras modules: collectives of numpy arrays, and ``load_model``."""

from typing import Any, Callable, Dict, Iterable, Optional

import tensorflow as tf

from distributed_dl_training import _horovod, _session
from distributed_dl_training import numpy as arrays
from distributed_dl_training._core import Op
from distributed_dl_training.tensorflow._compression import Compression
from distributed_dl_training.tensorflow._optimizer import DistributedOptimizer


def allreduce(
    value: Any,
    name: Optional[str] = None,
    average: Optional[bool] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    op: Any = None,
    compression: Any = Compression.none,
) -> Any:
    """Return a value, reduced over all ranks, as an array of numpy.

    compression: Horovod's, without effect: the result has the dtype of ``value``.
    """
    operator = _horovod.combined_operation(op, average)
    return _by_rules(arrays.allreduce(value, name, operator, prescale_factor, postscale_factor))


def allgather(value: Any, name: Optional[str] = None) -> Any:
    """Return the values of all ranks joined along the first dimension, as an array of numpy."""
    return _by_rules(arrays.allgather(value, name))


def broadcast(value: Any, root_rank: int, name: Optional[str] = None) -> Any:
    """Return the root's value on every rank, as an array of numpy."""
    return _by_rules(arrays.broadcast(value, root_rank, name))


def reducescatter(value: Any, name: Optional[str] = None, op: Any = Op.AVERAGE) -> Any:
    """Return this rank's share of a value reduced over all ranks, as an array of numpy."""
    return _by_rules(arrays.reducescatter(value, name, _horovod.operation(op)))


def _by_rules(result: Any) -> Any:
    """Return a tensor in eager mode by Horovod's rules, and ``result`` itself else."""
    if _session.horovod_rules() and tf.executing_eagerly():
        return tf.convert_to_tensor(result)
    return result


def load_model(
    load: Callable[..., Any],
    filepath: str,
    custom_optimizers: Optional[Iterable[Any]] = None,
    custom_objects: Optional[Dict[str, Any]] = None,
    compression: Any = Compression.none,
) -> Any:
    """Load a model, its optimizer state included, and distribute its optimizer.

    load: ``keras.models.load_model``.
    custom_optimizers: optimizer classes that Keras does not define.
    """
    objects = {optimizer.__name__: optimizer for optimizer in custom_optimizers or ()}
    objects.update(custom_objects or {})
    model = load(filepath, custom_objects=objects)
    if getattr(model, "optimizer", None) is not None:
        DistributedOptimizer(model.optimizer, compression=compression)
    return model
