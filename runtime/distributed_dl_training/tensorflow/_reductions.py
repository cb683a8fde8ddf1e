"""Allreduce and reducescatter with Horovod's names, arguments and defaults."""

from typing import Any, List, Optional, Sequence, Tuple

import tensorflow as tf

from distributed_dl_training import _session
from distributed_dl_training._core import Op
from distributed_dl_training._horovod import combined_operation, operation
from distributed_dl_training._session import ProcessSet, global_process_set
from distributed_dl_training.tensorflow._collective import Collective
from distributed_dl_training.tensorflow._compression import Compression
from distributed_dl_training.tensorflow._graph import (
    collective_name,
    differentiable,
    gradient_name,
    run_collective,
)
from distributed_dl_training.tensorflow._movement import allgather, grouped_allgather

Factors = Tuple[float, float]


def allreduce(
    tensor: Any,
    average: Optional[bool] = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: Any = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
) -> Any:
    """Return ``tensor`` reduced over all ranks, element by element, in its shape and dtype.

    tensor: a tensor or variable, equal in shape on all ranks; or tf.IndexedSlices, whose rows are
        gathered from all ranks.
    average: deprecated; True is op=Average, False is op=Sum.
    op: Average (the default), Sum, Min, Max or Product; Average and Sum for IndexedSlices.
    prescale_factor, postscale_factor: multiply before and after the reduction; not with
        IndexedSlices.
    device_dense, device_sparse, ignore_name_scope: Horovod's, without effect.

    Differentiable: the gradient is reduced in the same way.

    Raises MismatchError, NotInitializedError, NotImplementedError for an op or a factor that
    IndexedSlices do not support, and TypeError if dtype, op and factors are incompatible.
    """
    return grouped_allreduce(
        [tensor],
        average,
        device_dense,
        device_sparse,
        compression,
        op,
        prescale_factor,
        postscale_factor,
        process_set,
        ignore_name_scope,
        name,
    )[0]


def grouped_allreduce(
    tensors: Sequence[Any],
    average: Optional[bool] = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: Any = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    name: Optional[str] = None,
) -> List[Any]:
    """Return several tensors, each reduced as by ``allreduce``; those of one dtype as one exchange.

    Differentiable.  Raises as ``allreduce``.
    """
    operator = combined_operation(op, average)
    factors = (prescale_factor, postscale_factor)
    sparse = [index for index, tensor in enumerate(tensors) if isinstance(tensor, tf.IndexedSlices)]
    dense = [index for index in range(len(tensors)) if index not in set(sparse)]
    results: List[Any] = [None] * len(tensors)
    outputs = _reduce_slices(
        [tensors[index] for index in sparse], operator, factors, name, process_set
    )
    for index, output in zip(sparse, outputs):
        results[index] = output
    pairs = [compression.compress(tf.convert_to_tensor(tensors[index])) for index in dense]
    outputs = _reduce_dense([pair[0] for pair in pairs], operator, factors, name, process_set)
    for index, output, (_, context) in zip(dense, outputs, pairs):
        results[index] = compression.decompress(output, context)
    return results


def _reduce_dense(
    tensors: List[Any], op: Any, factors: Factors, name: Optional[str], process_set: ProcessSet
) -> List[Any]:
    """Reduce dense tensors, those of one dtype together."""
    if not tensors:
        return []
    label = collective_name(name, "allreduce", tensors)
    collective = Collective("allreduce", label, process_set, op, *factors)

    def reduce_gradients(gradients: List[Any]) -> List[Any]:
        if op not in (Op.SUM, Op.AVERAGE) and not _session.horovod_rules():
            raise NotImplementedError(f"allreduce with op={op.value} has no gradient")
        return _reduce_dense(gradients, op, factors, gradient_name(label), process_set)

    def reduce_tensors(inputs: List[Any]) -> List[Any]:
        dtypes = [tensor.dtype for tensor in inputs]
        return run_collective(collective, inputs, dtypes, [tensor.shape for tensor in inputs])

    return differentiable(reduce_tensors, reduce_gradients, tensors)


def _reduce_slices(
    slices: List[Any], op: Any, factors: Factors, name: Optional[str], process_set: ProcessSet
) -> List[Any]:
    """Gather the rows of IndexedSlices from all ranks; an average divides them."""
    if not slices:
        return []
    if op not in (Op.SUM, Op.AVERAGE):
        raise NotImplementedError(
            "IndexedSlices require op=Sum or op=Average: convert them to tensors"
        )
    if factors != (1.0, 1.0):
        raise NotImplementedError("IndexedSlices support no factors: convert them to tensors")

    def gather(part: str, tensors: List[Any]) -> List[Any]:
        label = None if name is None else f"{name}.{part}"
        return grouped_allgather(tensors, label, process_set=process_set)

    values = gather("values", [tensor.values for tensor in slices])
    indices = gather("indices", [tensor.indices for tensor in slices])
    if op is Op.AVERAGE:
        values = [rows / tf.cast(process_set.size(), rows.dtype) for rows in values]
    return [
        tf.IndexedSlices(rows, row_indices, dense_shape=tensor.dense_shape)
        for rows, row_indices, tensor in zip(values, indices, slices)
    ]


def reducescatter(
    tensor: Any,
    device_dense: str = "",
    compression: Any = Compression.none,
    op: Any = Op.AVERAGE,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Any:
    """Return this rank's share, along the first dimension, of ``tensor`` reduced over all ranks.

    tensor: at least one dimension, equal shapes on all ranks.  Rows are shared equally; the
        first ranks get one more where they do not come out even.
    op: Average (the default) or Sum.

    Differentiable.  Raises as ``allreduce``, and ValueError for a 0-d tensor or another op.
    """
    factors = (prescale_factor, postscale_factor)
    compressed, context = compression.compress(tf.convert_to_tensor(tensor))
    result = _scatter(compressed, operation(op), factors, name, process_set)
    return compression.decompress(result, context)


def _scatter(
    tensor: Any, op: Any, factors: Factors, name: Optional[str], process_set: ProcessSet
) -> Any:
    label = collective_name(name, "reducescatter", [tensor])

    collective = Collective("reducescatter", label, process_set, op, *factors)

    def gather_gradients(gradients: List[Any]) -> List[Any]:
        scale = factors[0] * factors[1] * (process_set.size() if op is Op.SUM else 1)
        scaled = gradients[0] * tf.cast(scale, gradients[0].dtype)
        return [allgather(scaled, gradient_name(label), process_set=process_set)]

    def scatter_tensors(inputs: List[Any]) -> List[Any]:
        shape = tf.TensorShape([None]).concatenate(inputs[0].shape[1:])
        return run_collective(collective, inputs, [inputs[0].dtype], [shape])

    return differentiable(scatter_tensors, gather_gradients, [tensor])[0]


def grouped_reducescatter(
    tensors: Sequence[Any],
    device_dense: str = "",
    compression: Any = Compression.none,
    op: Any = Op.AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: Optional[str] = None,
) -> List[Any]:
    """Return this rank's share of several tensors, each as by ``reducescatter``."""
    factors = (prescale_factor, postscale_factor)
    return [
        reducescatter(
            tensor,
            device_dense,
            compression,
            op,
            None if name is None else f"{name}.{number}",
            process_set,
            False,
            *factors,
        )
        for number, tensor in enumerate(tensors)
    ]
