"""Allgather, broadcast and alltoall, with Horovod's names and defaults."""

from typing import Any, List, Optional, Sequence

import tensorflow as tf

from distributed_dl_training import _facts
from distributed_dl_training._core import Op
from distributed_dl_training._session import ProcessSet, global_process_set
from distributed_dl_training.tensorflow._collective import Collective
from distributed_dl_training.tensorflow._graph import (
    collective_name,
    differentiable,
    gradient_name,
    run_collective,
)


def allgather(
    tensor: Any,
    name: Optional[str] = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return the tensors of all ranks joined along the first dimension, in rank order.

    tensor: at least one dimension; the first may differ between ranks and may be 0, the others
        must agree.
    ignore_name_scope: Horovod's, without effect.

    Differentiable: this rank's rows of the gradient's average over all ranks, as in Horovod.

    Raises MismatchError, NotInitializedError, ValueError for a 0-d tensor and TypeError for a
    dtype that is not supported.
    """
    return grouped_allgather([tensor], name, ignore_name_scope, process_set)[0]


def grouped_allgather(
    tensors: Sequence[Any],
    name: Optional[str] = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> List[Any]:
    """Return several tensors, each gathered as by ``allgather``, gradients included."""
    inputs = [tf.convert_to_tensor(tensor) for tensor in tensors]
    if not inputs:
        return []
    label = collective_name(name, "allgather", inputs)

    collective = Collective("allgather", label, process_set)

    def local_rows(gradients: List[Any]) -> List[Any]:
        return _local_rows(gradients, inputs, gradient_name(label), process_set)

    def gather_tensors(values: List[Any]) -> List[Any]:
        shapes = [_any_rows(value) for value in values]
        return run_collective(collective, values, [value.dtype for value in values], shapes)

    return differentiable(gather_tensors, local_rows, inputs)


def _any_rows(tensor: Any) -> Any:
    return tf.TensorShape([None]).concatenate(tensor.shape[1:])


def _local_rows(
    gradients: List[Any], tensors: List[Any], name: Optional[str], process_set: ProcessSet
) -> List[Any]:
    """Return this rank's rows of the averages of gathered gradients."""
    averages = _averages(gradients, name, process_set)
    label = collective_name(name, "allgather_gradient", gradients)
    rows = [tf.cast(tf.shape(tensor)[:1], tf.int64) for tensor in tensors]

    counts_name = None if label is None else f"{label}.rows"
    collective = Collective("allgather", counts_name, process_set)
    local_counts = tf.reshape(tf.concat(rows, 0), [1, -1])
    shape = tf.TensorShape([None, len(rows)])
    counts = run_collective(collective, [local_counts], [tf.int64], [shape])[0]
    starts = tf.reduce_sum(counts[: process_set.rank()], 0)
    parts = [
        average[start : start + counts[0]]
        for average, start, counts in zip(averages, tf.unstack(starts, len(rows)), rows)
    ]
    for part, tensor in zip(parts, tensors):
        part.set_shape(tensor.shape)
    return parts


def _averages(gradients: List[Any], name: Optional[str], process_set: ProcessSet) -> List[Any]:
    """Return the averages of gradients over the ranks."""
    label = collective_name(name, "average", gradients)
    collective = Collective("allreduce", label, process_set, Op.AVERAGE)
    dtypes = [gradient.dtype for gradient in gradients]
    shapes = [gradient.shape for gradient in gradients]
    return run_collective(collective, gradients, dtypes, shapes)


def broadcast(
    tensor: Any,
    root_rank: int,
    name: Optional[str] = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return the root's ``tensor`` on every rank.

    tensor: equal shapes on all ranks.
    root_rank: from 0 to size() - 1, a rank of all and not of the process set, as in Horovod.
    ignore_name_scope: Horovod's, without effect.

    Differentiable: the gradient is the average over all ranks on the root, and 0 elsewhere, as in
    Horovod.

    Raises MismatchError, NotInitializedError, ValueError if root_rank is not one of the ranks, and
    TypeError if it is not an integer or the dtype is not supported.
    """
    return broadcast_all([tensor], root_rank, name, process_set)[0]


def broadcast_all(
    tensors: Sequence[Any], root_rank: int, name: Optional[str], process_set: ProcessSet
) -> List[Any]:
    """Return the root's tensors on every rank; in a graph they are one node for each dtype."""
    inputs = [tf.convert_to_tensor(tensor) for tensor in tensors]
    if not inputs:
        return []
    label = collective_name(name, "broadcast", inputs)

    collective = Collective("broadcast", label, process_set, root=root_rank)

    def root_gradients(gradients: List[Any]) -> List[Any]:
        averages = _averages(gradients, gradient_name(label), process_set)
        if _facts.rank() == root_rank:
            return averages
        # The zeros depend on the averages, or TensorFlow would prune this rank's collective.
        with tf.control_dependencies([] if tf.executing_eagerly() else averages):
            return [tf.zeros(tf.shape(gradient), gradient.dtype) for gradient in gradients]

    def broadcast_tensors(values: List[Any]) -> List[Any]:
        shapes = [value.shape for value in values]
        return run_collective(collective, values, [value.dtype for value in values], shapes)

    return differentiable(broadcast_tensors, root_gradients, inputs)


def alltoall(
    tensor: Any,
    splits: Any = None,
    name: Optional[str] = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Send rows of ``tensor`` to all ranks; return the rows received.

    tensor: at least one dimension; the first may differ between ranks, the others must agree.
    splits: rows for each rank, in rank order, together the first dimension; equally many if it
        is left out.  With it the result is a pair, of which the second is how many rows came from
        each rank, int32.
    ignore_name_scope: Horovod's, without effect.

    Differentiable.  Raises MismatchError, NotInitializedError, TypeError for a dtype that is not
    supported, and ValueError for splits that do not fit.
    """
    value = tf.convert_to_tensor(tensor)
    rows, received = _exchange_rows(value, splits, name, process_set)
    return rows if splits is None else (rows, received)


def _exchange_rows(value: Any, splits: Any, name: Optional[str], process_set: ProcessSet) -> Any:
    label = collective_name(name, "alltoall", [value])
    counts = [] if splits is None else [tf.cast(splits, tf.int64)]

    collective = Collective("alltoall", label, process_set)

    def exchange(tensor: Any) -> List[Any]:
        shapes = [_any_rows(tensor), tf.TensorShape([None])]
        return run_collective(collective, [tensor, *counts], [tensor.dtype, tf.int32], shapes)

    if not (value.dtype.is_floating or value.dtype.is_complex):
        return exchange(value)

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def node(tensor: Any) -> Any:
        results = exchange(tensor)

        def backward(upstream: Any, _: Any) -> Any:
            return _exchange_rows(upstream, results[1], gradient_name(label), process_set)[0]

        return results, backward

    return node(value)
