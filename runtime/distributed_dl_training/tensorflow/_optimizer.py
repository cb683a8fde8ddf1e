"""DistributedOptimizer for the optimizers of tf.compat.v1.train, Keras 2 and Keras 3."""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import tensorflow as tf

from distributed_dl_training._core import Op
from distributed_dl_training._session import ProcessSet, global_process_set
from distributed_dl_training.tensorflow._accumulation import Accumulation
from distributed_dl_training.tensorflow._compression import Compression
from distributed_dl_training.tensorflow._gradients import GradientReducer, make_options
from distributed_dl_training.tensorflow._tape import variables_of_layers

Pairs = Sequence[Tuple[Any, Any]]


class _OptimizerMixin:
    """Mixin of all distributed optimizers.

    Attributes begin with ``_ddlt`` to avoid conflicts with those of the optimizer.
    """

    _ddlt_reducer: GradientReducer
    _ddlt_accumulation: Optional[Accumulation]

    @property
    def _agg_helper(self) -> Optional[Accumulation]:
        """Horovod's name, which its own tests read."""
        return self._ddlt_accumulation

    def register_local_var(self, variable: Any) -> None:
        """Do not reduce the gradients of a local variable."""
        self._ddlt_reducer.add_local(variable)

    def _ddlt_reduce(self, gradients: Sequence[Any], variables: Sequence[Any]) -> List[Any]:
        reducer, accumulation = self._ddlt_reducer, self._ddlt_accumulation
        if accumulation is None:
            return reducer.reduce(gradients, variables)
        if reducer.options.sparse_as_dense:
            gradients = [
                gradient if gradient is None else tf.convert_to_tensor(gradient)
                for gradient in gradients
            ]
        return accumulation.add(gradients, variables)

    def _ddlt_reduce_pairs(self, pairs: Pairs) -> List[Tuple[Any, Any]]:
        gradients, variables = zip(*pairs)
        return list(zip(self._ddlt_reduce(gradients, variables), variables))

    def _ddlt_apply(self, step: Callable[[], Any], skip: Callable[[], Any]) -> Any:
        accumulation = self._ddlt_accumulation
        return step() if accumulation is None else accumulation.apply(step, skip)


class _SessionOptimizer(_OptimizerMixin):
    """Mixin for tf.compat.v1.train.Optimizer: reduces gradients in ``compute_gradients``."""

    @property
    def _optimizer(self) -> Any:
        """Horovod's name for the optimizer that it wraps."""
        return self

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

        dependencies = [gradient for gradient, _ in pairs if gradient is not None]
        with tf.control_dependencies([] if tf.executing_eagerly() else dependencies):
            return self._ddlt_apply(step, skip)


class _KerasOptimizer(_OptimizerMixin):
    """Mixin for the optimizers up to Keras 2: reduces gradients in ``compute_gradients``."""

    def get_gradients(self, loss: Any, params: Any) -> List[Any]:
        """Return the gradients of ``loss``, reduced over the ranks; Keras in graphs calls it."""
        gradients = super().get_gradients(loss, params)  # type: ignore[misc]
        return self._ddlt_reduce(gradients, params)

    def _compute_gradients(
        self, loss: Any, var_list: Any, grad_loss: Any = None, tape: Any = None
    ) -> Any:
        parent: Any = super()
        options = {} if tape is None else {"tape": tape}
        if hasattr(parent, "_compute_gradients"):
            pairs = parent._compute_gradients(loss, var_list, grad_loss, **options)
        else:  # Keras 2.11 and later
            pairs = parent.compute_gradients(loss, var_list, **options)
        return self._ddlt_reduce_pairs(pairs)

    def compute_gradients(self, loss: Any, var_list: Any, tape: Any = None) -> Any:
        """Return pairs of a gradient, reduced over the ranks, and its variable."""
        return self._compute_gradients(loss, var_list, None, tape)

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
    """A list of variables that is also callable, as in Keras 2 (horovod/_keras/__init__.py:270)."""

    def __call__(self) -> "_Variables":
        return self


class _Keras3Optimizer(_OptimizerMixin):
    """Mixin for the optimizers of Keras 3: reduces gradients in ``apply``."""

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
        gradients = self._ddlt_reduce(list(grads), variables)
        if self._ddlt_accumulation is None:
            return apply(gradients, trainable_variables)
        if not self.built:  # type: ignore[has-type]
            self.build(variables)  # type: ignore[attr-defined]
            self.built = True
        iterations = self._iterations  # type: ignore[attr-defined]

        def step() -> Any:
            apply(gradients, variables)
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
    """Let the optimizer reduce gradients over all ranks, and return it.

    optimizer: of tf.compat.v1.train, of Keras 2 or of Keras 3.  It keeps its state, its name and
        its place in checkpoints; only its class is derived.
    name: prefix of the names of its collectives; default: the optimizer's class.
    compression: Compression.none or fp16.
    sparse_as_dense: reduce tf.IndexedSlices as dense tensors.
    backward_passes_per_step: number of backward passes whose gradients each rank adds up before
        it reduces and applies them.
    op: Average (the default), Sum, Min, Max or Product.
    gradient_predivide_factor: divide by this factor before the sum, and by the number of ranks
        over this factor after it; only with op=Average.
    average_aggregated_gradients: divide accumulated gradients by ``backward_passes_per_step``.
    num_groups, groups: number of groups of adjacent gradients, or lists of variables; each group is
        one exchange.  Default: one group.
    process_set: the ranks that train together.
    scale_local_gradients: see ``register_local_var``; divide by the number of ranks.
    use_locking, device_dense, device_sparse: Horovod's, without effect.

    Raises ValueError for incompatible options or an optimizer that is distributed already, and
    TypeError if ``optimizer`` is not an optimizer.
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
    optimizer_class = type(optimizer)
    distributed_class = derive(optimizer_class)
    reducer = GradientReducer(name or optimizer_class.__name__, options)
    accumulation = None
    if backward_passes_per_step > 1:
        accumulation = Accumulation(
            backward_passes_per_step, average_aggregated_gradients, reducer.reduce
        )
    # Keras tracks attributes that are set; these are not part of its state.
    optimizer.__dict__.update(_ddlt_reducer=reducer, _ddlt_accumulation=accumulation)
    optimizer.__class__ = distributed_class
    return optimizer


def is_distributed(optimizer: Any) -> bool:
    """Tell whether an optimizer reduces gradients over the ranks."""
    return isinstance(optimizer, _OptimizerMixin)


def PartialDistributedOptimizer(
    optimizer: Any, *arguments: Any, local_layers: Any = None, **options: Any
) -> Any:
    """Return a ``DistributedOptimizer`` that does not reduce the gradients of local layers.

    local_layers: a layer or a list of layers.  Default: none.
    """
    distributed = DistributedOptimizer(optimizer, *arguments, **options)
    for variable in variables_of_layers(local_layers):
        distributed.register_local_var(variable)
    return distributed


def derive(optimizer_class: type) -> type:
    """Return a subclass with the same name and module that reduces gradients.

    Raises ValueError if the class reduces gradients already, and TypeError if it is not an
    optimizer class.
    """
    if issubclass(optimizer_class, _OptimizerMixin):
        raise ValueError(f"this {optimizer_class.__name__} is distributed already")
    names: Dict[str, Any] = {
        "__module__": optimizer_class.__module__,
        "__doc__": optimizer_class.__doc__,
    }
    if issubclass(optimizer_class, tf.compat.v1.train.Optimizer):
        base: type = _SessionOptimizer
    elif hasattr(optimizer_class, "_backend_apply_gradients"):
        base = _Keras3Optimizer
    elif hasattr(optimizer_class, "get_updates") or hasattr(optimizer_class, "apply_gradients"):
        base = _KerasOptimizer
    else:
        raise TypeError(
            f"expected an optimizer of TensorFlow or Keras, not {optimizer_class.__name__}"
        )
    return type(optimizer_class.__name__, (base, optimizer_class), names)
