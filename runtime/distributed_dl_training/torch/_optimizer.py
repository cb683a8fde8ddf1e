"""DistributedOptimizer: an optimizer whose gradients are reduced over all ranks first."""

from typing import Any, ContextManager, Dict, Iterable, Iterator, List, Optional, Tuple

from distributed_dl_training._core import Op
from distributed_dl_training._gradients import Options
from distributed_dl_training._session import ProcessSet, global_process_set
from distributed_dl_training._steps import Recipe, Steps, recipe
from distributed_dl_training.torch._compression import Compression
from distributed_dl_training.torch._parameters import PARAMETERS
from distributed_dl_training.torch._reductions import compressed, grouped_allreduce


class _Distributed:
    """What an optimizer's own class is given on top: many methods, as Horovod's has them.

    ``_wrapped`` is the optimizer itself, which schedulers that were made before hold.
    """

    _steps: Steps
    _wrapped: Any
    param_groups: List[Dict[str, Any]]

    # Horovod's attributes, which programs read.

    @property
    def _parameter_names(self) -> Dict[Any, str]:
        return {parameter: name for name, parameter in self._steps.recipe.named}

    @property
    def backward_passes_per_step(self) -> int:
        return self._steps.recipe.options.passes

    @property
    def op(self) -> Op:
        return self._steps.recipe.options.op

    @property
    def gradient_predivide_factor(self) -> float:
        return self._steps.recipe.options.factors[1]

    @property
    def sparse_as_dense(self) -> bool:
        return self._steps.recipe.options.sparse_as_dense

    @property
    def process_set(self) -> ProcessSet:
        return self._steps.recipe.options.process_set

    def synchronize(self) -> None:
        """Wait until all gradients are reduced; the step that follows must not do it again.

        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with optimizer.skip_synchronize():
            optimizer.step()
        """
        self._steps.synchronize(self._parameters())

    def skip_synchronize(self) -> ContextManager[None]:
        """Let ``step()`` take the gradients as they are, after a call of ``synchronize()``."""
        return self._steps.skip()

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Change ``backward_passes_per_step`` from the next step on."""
        self._steps.set_passes(passes)

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Add parameters, whose gradients are reduced as well."""
        super().add_param_group(param_group)  # type: ignore[misc]
        self._steps.add(self.param_groups[-1]["params"])

    def step(self, *arguments: Any, **options: Any) -> Any:
        """Reduce the gradients and let the optimizer take its step."""
        self._steps.before_step(self._parameters())
        # Torch's schedulers note on their optimizer that a step came before theirs, or they warn.
        self._wrapped._opt_called = True  # from 2.4 on
        self._wrapped._step_count = getattr(self._wrapped, "_step_count", 0) + 1
        return super().step(*arguments, **options)  # type: ignore[misc]

    # Torch would call step's hooks here too, besides in the class's own step, but only once a state
    # has been loaded.
    step.hooked = True  # type: ignore[attr-defined]

    def load_state_dict(self, state_dict: Any) -> None:
        """Load a state, also for the schedulers of the wrapped optimizer."""
        shared = self.param_groups
        super().load_state_dict(state_dict)  # type: ignore[misc]
        shared[:] = self.param_groups
        self.param_groups = shared

    def zero_grad(self, *arguments: Any, **options: Any) -> Any:
        """Reset the gradients.  Raises AssertionError while they are under way."""
        self._steps.refuse_reset()
        return super().zero_grad(*arguments, **options)  # type: ignore[misc]

    def _parameters(self) -> Iterator[Any]:
        return (each for group in self.param_groups for each in group["params"])

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the wrapped class, its state and how it was wrapped: this class has no name."""
        state = super().__getstate__()
        return _unpickle, (type(self).__bases__[1], state, self._steps.recipe)


class _DistributedAdasum(_Distributed):
    """An optimizer whose steps, and not gradients, are combined by Adasum, as in Horovod.

    Horovod takes the step of each parameter during backward; here all come with ``step``.
    """

    def synchronize(self) -> None:
        """Do nothing: there is nothing to reduce before the step."""

    def skip_synchronize(self) -> ContextManager[None]:
        """Raise AssertionError: a step that is not combined leaves ranks with other weights."""
        raise AssertionError("skip_synchronize() goes with gradients, and not with op=Adasum")

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Note how many backward passes come before a step."""
        options = self._steps.recipe.options._replace(passes=passes)
        self._steps.recipe = self._steps.recipe._replace(options=options)

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Add parameters, whose steps are combined as well."""
        super(_Distributed, self).add_param_group(param_group)  # type: ignore[misc]

    def step(self, closure: Any = None) -> Any:
        """Let the optimizer take its step, and combine what that changes; collective."""
        loss = None if closure is None else closure()
        options = self._steps.recipe.options
        if options.process_set.size() == 1 or not options.process_set.included():
            super(_Distributed, self).step()  # type: ignore[misc]
            return loss
        values = [each.detach() for each in self._parameters() if each.requires_grad]
        starts = [value.clone() for value in values]
        super(_Distributed, self).step()  # type: ignore[misc]
        pairs = [
            compressed(options.compression, value.sub_(start))
            for value, start in zip(values, starts)
        ]
        changes = grouped_allreduce(
            [change for change, _ in pairs],
            name="adasum",
            op=Op.ADASUM,
            process_set=options.process_set,
        )
        for value, start, change, (_, context) in zip(values, starts, changes, pairs):
            value.copy_(start.add_(options.compression.decompress(change, context)))
        return loss

    step.hooked = True  # type: ignore[attr-defined]

    def zero_grad(self, *arguments: Any, **options: Any) -> Any:
        """Reset the gradients, of which none are under way."""
        return super(_Distributed, self).zero_grad(*arguments, **options)  # type: ignore[misc]


def DistributedOptimizer(
    optimizer: Any,
    named_parameters: Optional[Iterable[Tuple[str, Any]]] = None,
    compression: Any = Compression.none,
    backward_passes_per_step: int = 1,
    op: Op = Op.AVERAGE,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return ``optimizer`` with gradients that are reduced over all ranks before each step.

    It is of a subclass of the optimizer's own class and shares its state and parameter groups, so
    that checkpoints work, and schedulers whether they are made before or after.  Gradients are
    sent during backward as they become ready.

    optimizer: any torch.optim.Optimizer.
    named_parameters: ``model.named_parameters()``; the names tell gradients apart and stand in
        messages.  Without them parameters are numbered.
    compression: Compression.none, fp16 or bf16.
    backward_passes_per_step: gradients of so many backward passes are added up on each rank before
        they are reduced.
    op: Average (the default) or Sum; Min, Max and Product work as well.  Adasum takes the step
        first, and combines what it changes.
    gradient_predivide_factor: of the division by the number of ranks this factor is done before
        the sum, the rest after it; only with op=Average.
    num_groups, groups: gradients that are sent together, once all of them are ready: so many
        groups of neighbours, or lists of parameters.
    sparse_as_dense: reduce sparse gradients as dense ones.
    process_set: the ranks that train together.

    A parameter that gets no gradient on this rank takes part with zeros.

    Raises ValueError for parameters that are not named, or not uniquely, and for options that do
    not go together.
    """
    options = Options(
        compression,
        backward_passes_per_step,
        op,
        (1.0 / gradient_predivide_factor, gradient_predivide_factor),
        sparse_as_dense,
        process_set,
    )
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    made_from = recipe(PARAMETERS, parameters, named_parameters, options, num_groups, groups)
    made = _distribute(optimizer, made_from)
    if op is not Op.ADASUM:
        made._steps.open()
    return made


def step_alone(optimizer: Any) -> None:
    """Let an optimizer, distributed or not, take a step with this rank's gradients as they are."""
    if isinstance(optimizer, _Distributed):
        super(_Distributed, optimizer).step()  # type: ignore[misc]
    else:
        optimizer.step()


def _distribute(optimizer: Any, made_from: Recipe) -> Any:
    """Return an optimizer of a subclass of the optimizer's own, which has not joined others yet."""
    kind = type(optimizer)
    adasum = made_from.options.op is Op.ADASUM
    mixin = _DistributedAdasum if adasum else _Distributed
    made_kind: Any = type(kind.__name__, (mixin, kind), {})
    made = made_kind.__new__(made_kind)
    made.__dict__.update(optimizer.__dict__)
    made.__dict__.pop("step", None)  # a scheduler's, which calls the wrapped optimizer's own
    made._wrapped = optimizer
    made._steps = Steps(made_from)
    return made


def _unpickle(kind: Any, state: Any, made_from: Recipe) -> Any:
    """Return a distributed optimizer again, which joins the other ranks at its first step."""
    optimizer = kind.__new__(kind)
    optimizer.__setstate__(state)
    return _distribute(optimizer, made_from)
