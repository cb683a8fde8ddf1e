"""DistributedGradientTape: a gradient tape whose gradients are reduced over all ranks."""

from typing import Any, Iterable, List, Tuple

import tensorflow as tf

from distributed_dl_training._core import Op
from distributed_dl_training._session import ProcessSet, global_process_set
from distributed_dl_training.tensorflow._compression import Compression
from distributed_dl_training.tensorflow._gradients import GradientReducer, make_options


class _ReducedTape:
    """What a tape's own class is given on top.

    _wrapped: the tape itself, which counts its steps when it is deleted; this one must not.
    """

    _reducer: GradientReducer
    _wrapped: Any

    def __del__(self) -> None:
        """Leave to the wrapped tape what it does at its end."""

    def register_local_source(self, source: Any) -> None:
        """Leave out the gradients of a variable that belongs to this rank alone."""
        self._reducer.add_local(source)

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        use_generic_names: bool = False,
        **options: Any,
    ) -> Any:
        """Return the gradients by ``sources``, in their structure, reduced over the ranks.

        use_generic_names: Horovod's, without effect; names never depend on a graph's.
        """
        gradients = super().gradient(  # type: ignore[misc]
            target, sources, output_gradients, **options
        )
        flat = tf.nest.flatten(gradients)
        reduced = self._reducer.reduce(flat, tf.nest.flatten(sources))
        return tf.nest.pack_sequence_as(gradients, reduced)

    def get_local_and_global_gradients(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        use_generic_names: bool = False,
    ) -> Tuple[List[Any], List[Any]]:
        """Return pairs of a variable and its gradient: the local ones, and the others."""
        gradients = self.gradient(target, sources, output_gradients, use_generic_names)
        pairs = list(zip(sources, gradients))
        local = [pair for pair in pairs if self._reducer.is_local(pair[0])]
        return local, [pair for pair in pairs if not self._reducer.is_local(pair[0])]


def DistributedGradientTape(
    gradtape: Any,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    op: Any = Op.AVERAGE,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """Return a tape that shares the records of ``gradtape`` and reduces its gradients.

        with tf.GradientTape() as tape:
            loss = loss_of(model(batch))
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)

    The options are those of ``DistributedOptimizer``.
    """
    options = make_options(
        compression,
        sparse_as_dense,
        op,
        gradient_predivide_factor,
        num_groups,
        groups,
        process_set,
        scale_local_gradients,
    )
    kind = type(gradtape)
    slots = {"__slots__": ("_reducer", "_wrapped")}
    made: Any = object.__new__(type(kind.__name__, (_ReducedTape, kind), slots))
    made.__dict__ = gradtape.__dict__  # both enter, leave and record as one
    made._wrapped = gradtape
    made._reducer = GradientReducer("tape", options)
    return made


def PartialDistributedGradientTape(
    gradtape: Any, *arguments: Any, local_layers: Any = None, **options: Any
) -> Any:
    """Return a ``DistributedGradientTape`` that leaves out the layers of this rank alone.

    local_layers: a layer or several; without it all gradients are reduced.
    """
    made = DistributedGradientTape(gradtape, *arguments, **options)
    for variable in variables_of_layers(local_layers):
        made.register_local_source(variable)
    return made


def variables_of_layers(layers: Any) -> Iterable[Any]:
    """Return the trainable variables of a layer, several, or None."""
    if layers is None:
        return []
    listed = layers if isinstance(layers, (list, tuple, set)) else [layers]
    return [variable for layer in listed for variable in layer.trainable_weights]
