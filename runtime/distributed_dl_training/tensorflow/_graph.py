"""Execution of collectives: directly in eager mode, as a node in a graph."""

from typing import Any, Callable, List, Optional, Sequence

import numpy
import tensorflow as tf

from distributed_dl_training.tensorflow import _operation
from distributed_dl_training.tensorflow._collective import Collective, groups_of, ungroup

Arrays = List[Any]


def run_collective(
    collective: Collective, tensors: Sequence[Any], dtypes: Sequence[Any], shapes: Sequence[Any]
) -> List[Any]:
    """Carry out a collective of tensors and return its results as tensors.

    dtypes, shapes: of the results; a shape may have unknown dimensions.

    In a graph the node is the operation in C++, which blocks no thread, or a py-function.
    """
    node = None if tf.executing_eagerly() else _operation.implementation().node
    if node is None or not all(tensor.dtype in _NUMBERS for tensor in tensors):
        return run_function(collective.run, tensors, dtypes, shapes)
    _refuse_xla()
    if not collective.in_place:
        return _operation_node(node, collective, tensors, dtypes, shapes)
    groups = groups_of(dtypes)
    results = []
    for number, group in enumerate(groups):
        members = [[values[index] for index in group] for values in (tensors, dtypes, shapes)]
        part = collective.part(number) if len(tensors) > 1 else collective
        results.append(_operation_node(node, part, *members))
    return ungroup(groups, results)


def _operation_node(
    node: Callable[..., Any],
    collective: Collective,
    tensors: Sequence[Any],
    dtypes: Sequence[Any],
    shapes: Sequence[Any],
) -> List[Any]:
    return list(
        node(
            inputs=list(tensors),
            output_types=list(dtypes),
            shapes=list(shapes),
            collective=collective.encode(),
            in_place=collective.in_place,
        )
    )


def run_function(
    function: Callable[[Arrays], Arrays],
    tensors: Sequence[Any],
    dtypes: Sequence[Any],
    shapes: Sequence[Any],
) -> List[Any]:
    """Apply ``function`` to the values of tensors and return its results as tensors.

    function: takes and returns numpy arrays; it may block.
    dtypes, shapes: see ``run_collective``.

    In a graph the node is stateful, so that TensorFlow neither drops nor merges it, and its shapes
    are set, as layers read them.  TensorFlow runs such nodes one after the other.
    """
    if tf.executing_eagerly():
        results = function([numpy.asarray(tensor) for tensor in tensors])
        return [tf.convert_to_tensor(array, dtype) for array, dtype in zip(results, dtypes)]
    _refuse_xla()

    def call(*arrays: Any) -> Arrays:
        return function(list(arrays))

    results = tf.numpy_function(call, list(tensors), list(dtypes))
    if not isinstance(
        results, (list, tuple)
    ):  # TensorFlow 1 returns a single result without a list
        results = [results]
    for result, shape in zip(results, shapes):
        result.set_shape(shape)
    return list(results)


def _refuse_xla() -> None:
    """Raise NotImplementedError inside a function that XLA compiles, which has no collectives."""
    graph = tf.compat.v1.get_default_graph()
    while graph is not None:
        context = graph._get_control_flow_context()
        while context is not None and not context.IsXLAContext():
            context = context.outer_context
        if context is not None:
            raise NotImplementedError(
                "XLA cannot compile a collective: pass jit_compile=False, or call the collective "
                "outside the function that is compiled"
            )
        graph = getattr(graph, "outer_graph", None)


def collective_name(name: Optional[str], collective: str, tensors: Sequence[Any]) -> Optional[str]:
    """Return the name by which the ranks match a collective.

    Nodes of a graph run in any order, so each needs a unique name.  The default consists of the
    names of the first and last tensor, which are equal in equal programs; the graph numbers
    duplicates, as for its nodes.  In eager mode the order of calls matches collectives.
    """
    if tf.executing_eagerly() or not tensors:
        return name
    if name is None:
        endpoints = [tensors[0]] if len(tensors) == 1 else [tensors[0], tensors[-1]]
        name = ".".join([collective] + [str(tensor.name) for tensor in endpoints])
    unique: str = tf.compat.v1.get_default_graph().unique_name(name)
    return unique


def gradient_name(name: Optional[str]) -> Optional[str]:
    """Return the name of the collective that reduces the gradient of ``name``."""
    return None if name is None else f"{name}.gradient"


def differentiable(
    function: Callable[..., List[Any]],
    gradient: Callable[[List[Any]], List[Any]],
    tensors: Sequence[Any],
) -> List[Any]:
    """Return ``function(tensors)`` with ``gradient`` as its gradient function.

    gradient: takes and returns one gradient for each tensor.
    """
    if not any(tensor.dtype.is_floating or tensor.dtype.is_complex for tensor in tensors):
        return function(list(tensors))

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def node(*inputs: Any) -> Any:
        def backward(*upstream: Any) -> List[Any]:
            return gradient([tf.convert_to_tensor(value) for value in upstream])

        return function(list(inputs)), backward

    results = node(*tensors)
    return list(results) if isinstance(results, (list, tuple)) else [results]


_NUMBERS = frozenset(
    [
        tf.bool,
        tf.uint8,
        tf.uint16,
        tf.uint32,
        tf.uint64,
        tf.int8,
        tf.int16,
        tf.int32,
        tf.int64,
        tf.float16,
        tf.bfloat16,
        tf.float32,
        tf.float64,
        tf.complex64,
        tf.complex128,
    ]
)
