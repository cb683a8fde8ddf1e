"""Distributed training with the names of IBM DDL's module for TensorFlow.

    import ddl                                     # the alias; see distributed_dl_training.alias

An import joins the ranks.  From then on the optimizers of compiled Keras models and of
``tf.compat.v1.train`` average their gradients over the ranks, the initializer of all global
variables gives every rank the values of rank 0, and each rank sees one GPU.  A program that calls
``init`` does all of this by itself, with ``bcast``, ``allreduce_n`` and ``grads_reduce``.

Sources: document 003; IBM's ddl.py of 2018 (https://dataplatform.cloud.ibm.com/docs,
ml_dlaas_e2e_ddl_example) for the other names; IBM's examples of WMLCE (mnist-env.py, mnist-init.py,
mnist-eager-env.py), which use them.
"""

import functools
import glob
import importlib
import os
from typing import Any, List, Optional, Sequence, Tuple

import tensorflow as tf

from distributed_dl_training import _session, _settings
from distributed_dl_training._core import Op
from distributed_dl_training._facts import cross_size as num_hosts
from distributed_dl_training._facts import local_rank, rank, size
from distributed_dl_training.tensorflow._gradients import GradientReducer, Options
from distributed_dl_training.tensorflow._movement import broadcast
from distributed_dl_training.tensorflow._optimizer import DistributedOptimizer, is_distributed
from distributed_dl_training.tensorflow._reductions import grouped_allreduce
from distributed_dl_training.tensorflow._variables import (
    broadcast_global_variables,
    broadcast_variables,
)
from distributed_dl_training.tensorflow.keras import callbacks

_automatic = True


def init(options: str = "") -> None:
    """Leave broadcasts and reductions to the program.

    options: DDL's, such as ``-mode p:4x2``; without effect, as MPI gives the layout of the nodes.
    """
    global _automatic
    _automatic = False


def bcast(init_val: Any) -> Any:
    """Return the tensor of rank 0."""
    return broadcast(init_val, 0)


def allreduce_n(
    grads: Sequence[Any], average: bool = True, device_dense: str = "", device_sparse: str = ""
) -> List[Any]:
    """Return tensors, reduced over the ranks in one exchange; the devices have no effect."""
    results: List[Any] = grouped_allreduce(list(grads), op=Op.AVERAGE if average else Op.SUM)
    return results


def grads_reduce(grads_and_vars: Sequence[Tuple[Any, Any]], average: bool = True) -> List[Any]:
    """Return pairs of a gradient, reduced over the ranks, and its variable."""
    reducer = GradientReducer("ddl", Options(op=Op.AVERAGE if average else Op.SUM))
    gradients, variables = zip(*grads_and_vars)
    return list(zip(reducer.reduce(gradients, variables), variables))


class DDLCallback(callbacks.MetricAverageCallback):
    """Averages the metrics of an epoch over the ranks; the first in the list of callbacks."""

    def __init__(self) -> None:
        super().__init__()


class DDLGlobalVariablesCallback(callbacks.BroadcastGlobalVariablesCallback):
    """Gives every rank the variables of rank 0; the last in the list of callbacks.

    Before the first batch those that exist, and after it all.
    """

    def __init__(self) -> None:
        super().__init__(0)

    def on_train_begin(self, logs: Any = None) -> None:
        """Broadcast what exists."""
        if self.model.built:
            self.on_batch_end(0)
            self.broadcast_done = False


def _choose_gpu() -> None:
    """Let this process see the GPU of its local rank, before TensorFlow looks for GPUs."""
    variable = os.environ.get("CUDA_VISIBLE_DEVICES")
    if variable is None:
        devices = [str(number) for number in range(len(glob.glob("/dev/nvidia[0-9]*")))]
    else:
        devices = variable.split(",")
    if len(devices) > 1:
        os.environ["CUDA_VISIBLE_DEVICES"] = devices[local_rank() % len(devices)]


def _distribute_compiled_models() -> None:
    model_class = tf.keras.Model
    compile_model = model_class.compile

    @functools.wraps(compile_model)
    def compile_distributed(
        self: Any, optimizer: Any = "rmsprop", *arguments: Any, **options: Any
    ) -> Any:
        if _automatic and not isinstance(optimizer, tf.compat.v1.train.Optimizer):
            optimizer = tf.keras.optimizers.get(optimizer)
            if not is_distributed(optimizer):
                optimizer = DistributedOptimizer(optimizer)
        return compile_model(self, optimizer, *arguments, **options)

    model_class.compile = compile_distributed


def _distribute_session_optimizers() -> None:
    optimizer_class = tf.compat.v1.train.Optimizer
    apply_gradients = optimizer_class.apply_gradients

    @functools.wraps(apply_gradients)
    def apply_reduced(
        self: Any, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None
    ) -> Any:
        pairs = list(grads_and_vars)
        if not _automatic or is_distributed(self):
            return apply_gradients(self, pairs, global_step, name)
        is_new = "_ddl_reducer" not in self.__dict__
        if is_new:
            self.__dict__["_ddl_reducer"] = GradientReducer(type(self).__name__, Options())
        if is_new and tf.executing_eagerly():  # which has no initializer of all variables
            broadcast_variables([variable for _, variable in pairs], 0)
        gradients, variables = zip(*pairs)
        reduced = self.__dict__["_ddl_reducer"].reduce(gradients, variables)
        return apply_gradients(self, list(zip(reduced, variables)), global_step, name)

    optimizer_class.apply_gradients = apply_reduced


def _broadcast_initial_values() -> None:
    initialize = tf.compat.v1.global_variables_initializer

    @functools.wraps(initialize)
    def initialize_equally() -> Any:
        initializer = initialize()
        if not _automatic or tf.executing_eagerly():
            return initializer
        with tf.control_dependencies([initializer]):
            return broadcast_global_variables(0)

    # The last module is where MonitoredTrainingSession finds the function.
    names = ("tensorflow.compat.v1", "tensorflow.python.ops.variables")
    for module in (tf, tf.compat.v1, *map(importlib.import_module, names)):
        if hasattr(module, "global_variables_initializer"):
            setattr(module, "global_variables_initializer", initialize_equally)  # noqa: B010


if not any(os.environ.get(name) for name in _settings.NAMES["hierarchical"]):
    os.environ["DDLT_HIERARCHICAL_ALLREDUCE"] = "1"  # DDL knows the nodes
_session.init()
_choose_gpu()
_distribute_compiled_models()
_distribute_session_optimizers()
_broadcast_initial_values()

__all__ = [
    "DDLCallback",
    "DDLGlobalVariablesCallback",
    "allreduce_n",
    "bcast",
    "grads_reduce",
    "init",
    "local_rank",
    "num_hosts",
    "rank",
    "size",
]
