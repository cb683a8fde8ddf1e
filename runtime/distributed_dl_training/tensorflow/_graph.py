"""Collectives inside TensorFlow: at once in eager mode, else as one node of the graph."""

from typing import Any, Callable, List, Optional, Sequence

import numpy
import tensorflow as tf

Arrays = List[Any]


def run_collective(
    function: Callable[[Arrays], Arrays],
    tensors: Sequence[Any],
    dtypes: Sequence[Any],
    shapes: Sequence[Any],
) -> List[Any]:
    """Return what ``function`` makes of the tensors' values.

    function: takes and returns numpy arrays; blocks until the collective is complete.
    dtypes, shapes: of the results; a shape may have unknown dimensions.

    In a graph the node is stateful, so that TensorFlow neither drops nor merges it, and its shapes
    are set, as layers read them.  TensorFlow runs such nodes one after the other.
    """
    if tf.executing_eagerly():
        results = function([numpy.asarray(tensor) for tensor in tensors])
        return [tf.convert_to_tensor(array, dtype) for array, dtype in zip(results, dtypes)]

    def call(*arrays: Any) -> Arrays:
        return function(list(arrays))

    results = tf.numpy_function(call, list(tensors), list(dtypes))
    if not isinstance(results, (list, tuple)):  # TensorFlow 1 returns a single result as it is
        results = [results]
    for result, shape in zip(results, shapes):
        result.set_shape(shape)
    return list(results)


def collective_name(name: Optional[str], kind: str, tensors: Sequence[Any]) -> Optional[str]:
    """Return the name under which the ranks agree on a collective.

    Nodes of a graph run in any order, so each needs a name of its own.  Without one it is made of
    the names of the first and last tensor, which are equal in equal programs; the graph numbers
    those that occur again, as it does with its nodes.  In eager mode the order of calls decides.
    """
    if tf.executing_eagerly() or not tensors:
        return name
    if name is None:
        ends = [tensors[0]] if len(tensors) == 1 else [tensors[0], tensors[-1]]
        name = ".".join([kind] + [str(tensor.name) for tensor in ends])
    unique: str = tf.compat.v1.get_default_graph().unique_name(name)
    return unique


def gradient_name(name: Optional[str]) -> Optional[str]:
    """Return the name under which the gradient of a named collective travels."""
    return None if name is None else f"{name}.gradient"


def differentiable(
    function: Callable[..., List[Any]],
    gradient: Callable[[List[Any]], List[Any]],
    tensors: Sequence[Any],
) -> List[Any]:
    """Return ``function(tensors)``, through which ``gradient`` turns the gradients back.

    gradient: takes and returns one gradient for each tensor.
    """
    if not any(tensor.dtype.is_floating or tensor.dtype.is_complex for tensor in tensors):
        return function(list(tensors))

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def node(*inputs: Any) -> Any:
        def turn_back(*upstream: Any) -> List[Any]:
            return gradient([tf.convert_to_tensor(each) for each in upstream])

        return function(list(inputs)), turn_back

    results = node(*tensors)
    return list(results) if isinstance(results, (list, tuple)) else [results]
