"""DistributedGradientTape: a gradient tape whose gradients are reduced over all ranks."""

from typing import Any, Iterable, List, Tuple

import tensorflow as tf

from distributed_dl_training._core import Op
from distributed_dl_training._session import ProcessSet, global_process_set
from distributed_dl_training.tensorflow._compression import Compression
from distributed_dl_training.tensorflow._gradients import GradientReducer, make_options


class _DistributedTape:
    """Mixin of a distributed tape.

    _wrapped: the original tape, which cleans up when it is deleted; this one must not.
    """

    _reducer: GradientReducer
    _wrapped: Any

    def __del__(self) -> None:
        """Do nothing: the original tape cleans up."""

    def register_local_source(self, source: Any) -> None:
        """Do not reduce the gradients of a local variable."""
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
        outputs = self._reducer.reduce(flat, tf.nest.flatten(sources))
        return tf.nest.pack_sequence_as(gradients, outputs)

    def get_local_and_global_gradients(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        use_generic_names: bool = False,
    ) -> Tuple[List[Any], List[Any]]:
        """Return pairs of variable and gradient: of local variables, then of shared ones."""
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
    tape_class = type(gradtape)
    slots = {"__slots__": ("_reducer", "_wrapped")}
    tape: Any = object.__new__(type(tape_class.__name__, (_DistributedTape, tape_class), slots))
    tape.__dict__ = gradtape.__dict__  # both share one recording
    tape._wrapped = gradtape
    tape._reducer = GradientReducer("tape", options)
    return tape


def PartialDistributedGradientTape(
    gradtape: Any, *arguments: Any, local_layers: Any = None, **options: Any
) -> Any:
    """Return a ``DistributedGradientTape`` that does not reduce the gradients of local layers.

    local_layers: a layer or a list of layers.  Default: none.
    """
    tape = DistributedGradientTape(gradtape, *arguments, **options)
    for variable in variables_of_layers(local_layers):
        tape.register_local_source(variable)
    return tape


def variables_of_layers(layers: Any) -> Iterable[Any]:
    """Return the trainable variables of a layer or a list of layers; none for None."""
    if layers is None:
        return []
    layer_list = layers if isinstance(layers, (list, tuple, set)) else [layers]
    return [variable for layer in layer_list for variable in layer.trainable_weights]
