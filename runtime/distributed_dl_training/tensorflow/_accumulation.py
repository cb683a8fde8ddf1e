"""Gradients of several backward passes, added up on each rank before they are reduced."""

from typing import Any, Callable, List, Sequence

import tensorflow as tf


class Accumulation:
    """Sums of gradients in variables of TensorFlow, which no checkpoint saves.

    passes: how many backward passes make one step.
    average: whether the sum is divided by ``passes``.
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
        self._count: Any = None

    def add(self, gradients: Sequence[Any], variables: Sequence[Any]) -> List[Any]:
        """Add gradients; return the reduced sums in the last pass of a step, else the sums so far.

        Raises ValueError for IndexedSlices, which have no fixed shape.
        """
        places = [at for at, gradient in enumerate(gradients) if gradient is not None]
        given = [gradients[at] for at in places]
        if any(isinstance(gradient, tf.IndexedSlices) for gradient in given):
            raise ValueError("IndexedSlices cannot be added up: pass sparse_as_dense=True")
        if not self._sums:
            self._make(given)
        updates = [total.assign_add(each) for total, each in zip(self._sums, given)]
        with tf.control_dependencies(_operations([*updates, self._count.assign_add(1)])):
            totals = [total.read_value() for total in self._sums]
            last = tf.equal(self._count.read_value(), self.passes)
        members = [variables[at] for at in places]
        summed = tf.cond(last, lambda: self._finish(totals, members), lambda: totals)
        results = list(gradients)
        for at, total in zip(places, summed if isinstance(summed, (list, tuple)) else [summed]):
            results[at] = total
        return results

    def apply(self, step: Callable[[], Any], skip: Callable[[], Any]) -> Any:
        """Take ``step`` after the last pass of a step, else do ``skip``."""
        return tf.cond(tf.equal(self._count.read_value(), 0), step, skip)

    def _make(self, gradients: List[Any]) -> None:
        """Make the variables once, outside of what TensorFlow traces."""
        options = {"trainable": False, "collections": [tf.compat.v1.GraphKeys.LOCAL_VARIABLES]}
        with tf.init_scope():
            make = tf.compat.v1.Variable
            self._count = make(0, use_resource=True, **options)
            for gradient in gradients:
                zeros = tf.zeros(gradient.shape, gradient.dtype)
                self._sums.append(make(zeros, use_resource=True, **options))

    def _finish(self, totals: List[Any], variables: List[Any]) -> List[Any]:
        reduced = self._reduce(totals, variables)
        if self.average:
            reduced = [each / tf.cast(self.passes, each.dtype) for each in reduced]
        with tf.control_dependencies(_operations(reduced)):
            resets = [total.assign(tf.zeros_like(total)) for total in self._sums]
            resets.append(self._count.assign(0))
        with tf.control_dependencies(_operations(resets)):
            return [tf.identity(each) for each in reduced]


def _operations(values: List[Any]) -> List[Any]:
    """Return what control dependencies take; in eager mode there are none."""
    return [] if tf.executing_eagerly() else [each for each in values if each is not None]
