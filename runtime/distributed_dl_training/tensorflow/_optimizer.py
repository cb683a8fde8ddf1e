"""DistributedOptimizer for every kind of optimizer that TensorFlow and Keras have had."""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import tensorflow as tf

from distributed_dl_training._core import Op
from distributed_dl_training._session import ProcessSet, global_process_set
from distributed_dl_training.tensorflow._accumulation import Accumulation
from distributed_dl_training.tensorflow._compression import Compression
from distributed_dl_training.tensorflow._gradients import GradientReducer, make_options
from distributed_dl_training.tensorflow._tape import variables_of_layers

Pairs = Sequence[Tuple[Any, Any]]


class _Reduced:
    """What an optimizer's own class is given on top.

    The attributes begin with ``_ddlt`` so that no optimizer has them already.
    """

    _ddlt_reducer: GradientReducer
    _ddlt_accumulation: Optional[Accumulation]

    def register_local_var(self, variable: Any) -> None:
        """Leave out the gradients of a variable that belongs to this rank alone."""
        self._ddlt_reducer.add_local(variable)

    def _ddlt_reduce(self, gradients: Sequence[Any], variables: Sequence[Any]) -> List[Any]:
        reducer, accumulation = self._ddlt_reducer, self._ddlt_accumulation
        if accumulation is None:
            return reducer.reduce(gradients, variables)
        if reducer.options.sparse_as_dense:
            gradients = [each if each is None else tf.convert_to_tensor(each) for each in gradients]
        return accumulation.add(gradients, variables)

    def _ddlt_reduce_pairs(self, pairs: Pairs) -> List[Tuple[Any, Any]]:
        gradients, variables = zip(*pairs)
        return list(zip(self._ddlt_reduce(gradients, variables), variables))

    def _ddlt_apply(self, step: Callable[[], Any], skip: Callable[[], Any]) -> Any:
        accumulation = self._ddlt_accumulation
        return step() if accumulation is None else accumulation.apply(step, skip)


class _ReducedSessionOptimizer(_Reduced):
    """For tf.compat.v1.train.Optimizer: gradients are reduced where they are computed."""

    def compute_gradients(self, *arguments: Any, **options: Any) -> Any:
        """Return pairs of a gradient, reduced over the ranks, and its variable."""
        return self._ddlt_reduce_pairs(
            super().compute_gradients(*arguments, **options)  # type: ignore[misc]
        )

    def apply_gradients(
        self, grads_and_vars: Pairs, global_step: Any = None, name: Optional[str] = None
    ) -> Any:
        """Apply reduced gradients; only after the last backward pass of a step."""
        pairs = list(grads_and_vars)
        apply = super().apply_gradients  # type: ignore[misc]
        if self._ddlt_accumulation is None:
            return apply(pairs, global_step, name)

        def step() -> Any:
            with tf.control_dependencies([apply(pairs, global_step, name)]):
                return tf.constant(True)

        def skip() -> Any:
            updates = [] if global_step is None else [tf.compat.v1.assign_add(global_step, 1).op]
            with tf.control_dependencies(updates):
                return tf.constant(False)

        given = [gradient for gradient, _ in pairs if gradient is not None]
        with tf.control_dependencies([] if tf.executing_eagerly() else given):
            return self._ddlt_apply(step, skip)


class _ReducedLayerOptimizer(_Reduced):
    """For the optimizers of Keras up to 2: gradients are reduced where they are computed."""

    def get_gradients(self, loss: Any, params: Any) -> List[Any]:
        """Return the gradients of ``loss``, reduced over the ranks; Keras in graphs calls it."""
        gradients = super().get_gradients(loss, params)  # type: ignore[misc]
        return self._ddlt_reduce(gradients, params)

    def _compute_gradients(
        self, loss: Any, var_list: Any, grad_loss: Any = None, tape: Any = None
    ) -> Any:
        compute = super()._compute_gradients  # type: ignore[misc]
        options = {} if tape is None else {"tape": tape}
        return self._ddlt_reduce_pairs(compute(loss, var_list, grad_loss, **options))

    def compute_gradients(self, loss: Any, var_list: Any, tape: Any = None) -> Any:
        """Return pairs of a gradient, reduced over the ranks, and its variable."""
        parent: Any = super()
        if hasattr(parent, "_compute_gradients"):
            return self._compute_gradients(loss, var_list, None, tape)
        return self._ddlt_reduce_pairs(parent.compute_gradients(loss, var_list, tape))

    def apply_gradients(self, grads_and_vars: Pairs, *arguments: Any, **options: Any) -> Any:
        """Apply reduced gradients; only after the last backward pass of a step."""
        pairs = list(grads_and_vars)
        apply = super().apply_gradients  # type: ignore[misc]
        if self._ddlt_accumulation is None:
            return apply(pairs, *arguments, **options)
        iterations = self.iterations  # type: ignore[attr-defined]

        def step() -> Any:
            apply(pairs, *arguments, **options)
            return tf.identity(iterations)

        return self._ddlt_apply(step, lambda: iterations.assign_add(1))


class _Variables(List[Any]):
    """Variables that are called as well, as up to Keras 2 (horovod/_keras/__init__.py:270)."""

    def __call__(self) -> "_Variables":
        return self


class _ReducedApply(_Reduced):
    """For the optimizers of Keras 3: gradients are reduced where they are applied."""

    @property
    def variables(self) -> _Variables:
        """Return the variables of the optimizer."""
        return _Variables(super().variables)  # type: ignore[misc]

    def apply(self, grads: Sequence[Any], trainable_variables: Any = None) -> Any:
        """Reduce gradients over the ranks and apply them."""
        variables = trainable_variables
        if variables is None:
            variables = self._trainable_variables  # type: ignore[attr-defined]
        variables = list(variables)
        apply = super().apply  # type: ignore[misc]
        reduced = self._ddlt_reduce(list(grads), variables)
        if self._ddlt_accumulation is None:
            return apply(reduced, trainable_variables)
        if not self.built:  # type: ignore[has-type]
            self.build(variables)  # type: ignore[attr-defined]
            self.built = True
        iterations = self._iterations  # type: ignore[attr-defined]

        def step() -> Any:
            apply(reduced, variables)
            return tf.convert_to_tensor(iterations.value)

        def skip() -> Any:
            iterations.assign(iterations + 1)
            return tf.convert_to_tensor(iterations.value)

        return self._ddlt_apply(step, skip)


def DistributedOptimizer(
    optimizer: Any,
    name: Optional[str] = None,
    use_locking: bool = False,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    backward_passes_per_step: int = 1,
    op: Any = Op.AVERAGE,
    gradient_predivide_factor: float = 1.0,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """Return the optimizer, which from now on reduces gradients over all ranks.

    optimizer: of tf.compat.v1.train, of Keras 2 or of Keras 3.  It keeps its state, its name and
        its place in checkpoints; only its class is derived.
    name: the gradients travel under it; default: the optimizer's class.
    compression: Compression.none or fp16.
    sparse_as_dense: reduce tf.IndexedSlices as dense tensors.
    backward_passes_per_step: gradients of so many backward passes are added up on each rank
        before they are reduced and applied.
    op: Average (the default), Sum, Min, Max or Product.
    gradient_predivide_factor: of the division by the number of ranks this factor is done before
        the sum, the rest after it; only with op=Average.
    average_aggregated_gradients: divide added up gradients by ``backward_passes_per_step``.
    num_groups, groups: gradients that travel together: so many groups of neighbours, or lists of
        variables; all of them if both are left out.
    process_set: the ranks that train together.
    scale_local_gradients: see ``register_local_var``; divide by the number of ranks.
    use_locking, device_dense, device_sparse: Horovod's, without effect.

    Raises ValueError for options that do not go together and an optimizer that is distributed
    already, and TypeError for what is no optimizer.
    """
    if backward_passes_per_step < 1:
        raise ValueError(f"backward_passes_per_step is {backward_passes_per_step}, not above 0")
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
    kind = type(optimizer)
    derived = derive(kind)
    reducer = GradientReducer(name or kind.__name__, options)
    accumulation = None
    if backward_passes_per_step > 1:
        accumulation = Accumulation(
            backward_passes_per_step, average_aggregated_gradients, reducer.reduce
        )
    # Keras tracks what is set as an attribute; this is none of its state.
    optimizer.__dict__.update(_ddlt_reducer=reducer, _ddlt_accumulation=accumulation)
    optimizer.__class__ = derived
    return optimizer


def PartialDistributedOptimizer(
    optimizer: Any, *arguments: Any, local_layers: Any = None, **options: Any
) -> Any:
    """Return a ``DistributedOptimizer`` that leaves out the layers of this rank alone.

    local_layers: a layer or several; without it all gradients are reduced.
    """
    made = DistributedOptimizer(optimizer, *arguments, **options)
    for variable in variables_of_layers(local_layers):
        made.register_local_var(variable)
    return made


def derive(kind: type) -> type:
    """Return a class of the same name and module as ``kind`` that reduces gradients.

    Raises ValueError for one that does so already, and TypeError for no optimizer's class.
    """
    if issubclass(kind, _Reduced):
        raise ValueError(f"this {kind.__name__} is distributed already")
    names: Dict[str, Any] = {"__module__": kind.__module__, "__doc__": kind.__doc__}
    if issubclass(kind, tf.compat.v1.train.Optimizer):
        base: type = _ReducedSessionOptimizer
    elif hasattr(kind, "_backend_apply_gradients"):
        base = _ReducedApply
    elif hasattr(kind, "get_updates") or hasattr(kind, "apply_gradients"):
        base = _ReducedLayerOptimizer
    else:
        raise TypeError(f"an optimizer of TensorFlow or Keras is needed, not {kind.__name__}")
    return type(kind.__name__, (base, kind), names)
