"""Local accumulation of the gradients of several backward passes."""

from typing import Any, Callable, List, Sequence

import tensorflow as tf


class Accumulation:
    """Sums of gradients in local variables of TensorFlow, which no checkpoint saves.

    passes: number of backward passes of one step.
    average: whether the sum is divided by ``passes``.
    counter: variable with the number of passes since the last step; None before the first pass.
    """

    def __init__(
        self,
        passes: int,
        average: bool,
        reduce: Callable[[Sequence[Any], Sequence[Any]], List[Any]],
    ) -> None:
        self.passes = passes
        self.average = average
        self._reduce = reduce
        self._sums: List[Any] = []
        self.counter: Any = None

    def add(self, gradients: Sequence[Any], variables: Sequence[Any]) -> List[Any]:
        """Add gradients; return the sums so far, reduced over the ranks in the last pass of a step.

        Raises ValueError for IndexedSlices, which have no fixed shape.
        """
        indices = [index for index, gradient in enumerate(gradients) if gradient is not None]
        present = [gradients[index] for index in indices]
        if any(isinstance(gradient, tf.IndexedSlices) for gradient in present):
            raise ValueError("IndexedSlices cannot be added up: pass sparse_as_dense=True")
        if not self._sums:
            self._create_variables(present)
        updates = [total.assign_add(value) for total, value in zip(self._sums, present)]
        with tf.control_dependencies(_operations([*updates, self.counter.assign_add(1)])):
            totals = [total.read_value() for total in self._sums]
            last = tf.equal(self.counter.read_value(), self.passes)
        trained = [variables[index] for index in indices]
        outputs = tf.cond(last, lambda: self._finish(totals, trained), lambda: totals)
        sums = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        results = list(gradients)
        for index, total in zip(indices, sums):
            results[index] = total
        return results

    def apply(self, step: Callable[[], Any], skip: Callable[[], Any]) -> Any:
        """Call ``step`` after the last pass of a step, else ``skip``."""
        return tf.cond(tf.equal(self.counter.read_value(), 0), step, skip)

    def _create_variables(self, gradients: List[Any]) -> None:
        """Create the variables once, outside the function that TensorFlow traces."""
        options = {"trainable": False, "collections": [tf.compat.v1.GraphKeys.LOCAL_VARIABLES]}
        with tf.init_scope():
            variable = tf.compat.v1.Variable
            self.counter = variable(0, use_resource=True, **options)
            for gradient in gradients:
                zeros = tf.zeros(gradient.shape, gradient.dtype)
                self._sums.append(variable(zeros, use_resource=True, **options))

    def _finish(self, totals: List[Any], variables: List[Any]) -> List[Any]:
        gradients = self._reduce(totals, variables)
        if self.average:
            gradients = [value / tf.cast(self.passes, value.dtype) for value in gradients]
        with tf.control_dependencies(_operations(gradients)):
            resets = [total.assign(tf.zeros_like(total)) for total in self._sums]
            resets.append(self.counter.assign(0))
        with tf.control_dependencies(_operations(resets)):
            return [tf.identity(value) for value in gradients]


def _operations(values: List[Any]) -> List[Any]:
    """Return the control dependencies on ``values``; an empty list in eager mode."""
    return [] if tf.executing_eagerly() else [value for value in values if value is not None]
