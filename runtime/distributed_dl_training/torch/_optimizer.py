"""DistributedOptimizer: an optimizer whose gradients are reduced over all ranks first."""

import warnings
from contextlib import contextmanager
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

from distributed_dl_training import _collectives, _session
from distributed_dl_training._core import Op
from distributed_dl_training._session import ProcessSet, global_process_set
from distributed_dl_training.torch._arena import Arena
from distributed_dl_training.torch._compression import Compression
from distributed_dl_training.torch._sparse import sparse_allreduce_async
from distributed_dl_training.torch._tensors import TENSORS


class _Options(NamedTuple):
    compression: Any
    passes: int
    op: Op
    factors: Tuple[float, float]
    sparse_as_dense: bool
    process_set: ProcessSet


class _Sent(NamedTuple):
    """A gradient under way; ``gradient`` is where the result belongs, nothing if it is sparse."""

    handle: Any
    context: Any
    gradient: Optional[Any]


class Gradients:
    """Sees to it that gradients are sent as soon as they are ready, and are there for the step."""

    def __init__(
        self,
        named: Sequence[Tuple[str, Any]],
        groups: Sequence[Sequence[Any]],
        options: _Options,
        prefix: str,
    ) -> None:
        """Watch parameters; ``groups`` are those whose gradients are sent together."""
        self.options = options
        self.synchronized = False
        self.should_synchronize = True
        self.names = {parameter: name for name, parameter in named}
        self._prefix = prefix
        self._group_of = {each: tuple(group) for group in groups for each in group}
        self._sent: Dict[Any, _Sent] = {}
        self._left: Dict[Any, int] = {}  # backward passes until a gradient is ready
        self._sparse: Dict[Any, Any] = {}  # an empty gradient for those that are sparse
        settings = _session.conductor(options.process_set).settings
        longest = max(settings.fusion_threshold, 1 << 20)
        watched = [parameter for _, parameter in named if parameter.requires_grad]
        self.arena = Arena(watched, prefix + "arena", longest)
        self.hooks: List[Any] = []
        for parameter in watched:
            self.watch(parameter)

    def watch(self, parameter: Any) -> None:
        """Call ``_arrived`` whenever the parameter's gradient has been accumulated."""
        self._left[parameter] = self.options.passes
        if hasattr(parameter, "register_post_accumulate_grad_hook"):  # torch 2.1 and later
            self.hooks.append(parameter.register_post_accumulate_grad_hook(self._arrived))
            return
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        node.register_hook(lambda *unused: self._arrived(parameter))
        self.hooks.append(node)  # it lives only as long as somebody holds it

    def add(self, parameters: Sequence[Any]) -> None:
        """Watch more parameters, outside the arena."""
        for parameter in parameters:
            if parameter not in self.names:
                self.names[parameter] = f"added.{len(self.names)}"
                if parameter.requires_grad:
                    self.watch(parameter)

    def pending(self) -> bool:
        """Tell whether gradients are under way."""
        return bool(self._sent)

    def synchronize(self) -> None:
        """Wait until the gradients of all parameters are reduced; collective.

        Raises the first error once none is under way any more: a program that catches it may
        change its gradients.
        """
        errors: List[Exception] = []
        try:
            for parameter in self._left:
                if parameter not in self._sent:
                    self._complete(parameter)
        except Exception as error:  # whatever it is, what has been sent is waited for
            errors.append(error)
        for parameter, sent in self._sent.items():
            try:
                self._take(parameter, sent)
            except Exception as error:  # the same
                errors.append(error)
        self._sent.clear()
        self._left = dict.fromkeys(self._left, self.options.passes)
        if errors:
            raise errors[0]
        self.synchronized = True

    def set_passes(self, passes: int) -> None:
        """Change how many backward passes make a step."""
        self.options = self.options._replace(passes=passes)
        self._left = dict.fromkeys(self._left, passes)

    def _arrived(self, parameter: Any) -> None:
        if not self._left[parameter]:
            raise AssertionError(
                f"the gradient of {self.names[parameter]} came more than "
                f"{self.options.passes} times before step() or synchronize(); "
                "backward_passes_per_step says how often it may"
            )
        self._left[parameter] -= 1
        if parameter.grad.layout == torch.strided:
            self.arena.attach(parameter)
        if self._left[parameter]:
            return
        group = self._group_of.get(parameter)
        if group is None:
            self._send(parameter)
        elif not any(self._left[each] for each in group):
            for each in group:
                self._send(each)

    def _complete(self, parameter: Any) -> None:
        """Send a gradient that did not arrive as often as it should: zeros, if never."""
        if parameter.grad is None and parameter in self._sparse:
            parameter.grad = self._sparse[parameter].clone()
        elif parameter.grad is None or parameter.grad.layout == torch.strided:
            if not self.arena.attach(parameter) and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        self._send(parameter)

    def _send(self, parameter: Any) -> None:
        options = self.options
        gradient = parameter.grad
        name = self._prefix + self.names[parameter]
        if gradient.layout != torch.strided and options.sparse_as_dense:
            parameter.grad = gradient = gradient.to_dense()
            self.arena.attach(parameter)
            gradient = parameter.grad
        if gradient.layout != torch.strided:
            if parameter not in self._sparse:
                self._sparse[parameter] = torch.zeros_like(gradient.coalesce())
            handle: Any = sparse_allreduce_async(gradient, name, options.op, options.process_set)
            self._sent[parameter] = _Sent(handle, None, None)
            return
        travels, context = options.compression.compress(gradient)
        place = self.arena.place(parameter) if travels is gradient else None
        handle = _collectives.allreduce(
            TENSORS,
            [travels],
            name,
            options.op,
            options.factors,
            options.process_set,
            in_place=True,
            place=place,
        )
        self._sent[parameter] = _Sent(handle, context, gradient)

    def _take(self, parameter: Any, sent: _Sent) -> None:
        """Put the result where the optimizer looks for it."""
        result = sent.handle.synchronize()
        if sent.gradient is None:
            parameter.grad = result
        elif result is not sent.gradient:
            restored = self.options.compression.decompress(result, sent.context)
            sent.gradient.copy_(restored)


class _Distributed:
    """What an optimizer's own class is given on top; ``_gradients`` is None for a single rank.

    ``_wrapped`` is the optimizer itself, which schedulers that were made before hold.
    """

    _gradients: Optional[Gradients]
    _wrapped: Any
    param_groups: List[Dict[str, Any]]

    def synchronize(self) -> None:
        """Wait until all gradients are reduced; the step that follows must not do it again.

        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with optimizer.skip_synchronize():
            optimizer.step()
        """
        if self._gradients is not None:
            self._gradients.synchronize()

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Let ``step()`` take the gradients as they are, after a call of ``synchronize()``."""
        gradients = self._gradients
        if gradients is None:
            yield
            return
        gradients.should_synchronize = False
        try:
            yield
        finally:
            gradients.should_synchronize = True

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Change ``backward_passes_per_step`` from the next step on."""
        if self._gradients is not None:
            self._gradients.set_passes(passes)

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Add parameters, whose gradients are reduced as well."""
        super().add_param_group(param_group)  # type: ignore[misc]
        if self._gradients is not None:
            self._gradients.add(self.param_groups[-1]["params"])

    def step(self, *arguments: Any, **options: Any) -> Any:
        """Reduce the gradients and let the optimizer take its step."""
        gradients = self._gradients
        if gradients is not None:
            if gradients.should_synchronize:
                if gradients.synchronized:
                    warnings.warn(
                        "step() reduces the gradients again after synchronize(): call it within "
                        "optimizer.skip_synchronize()",
                        stacklevel=2,
                    )
                gradients.synchronize()
            gradients.synchronized = False
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
        if self._gradients is not None and self._gradients.pending():
            raise AssertionError(
                "zero_grad() between backward() and step() or synchronize(): the gradients are "
                "being reduced"
            )
        return super().zero_grad(*arguments, **options)  # type: ignore[misc]


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
    op: Average (the default) or Sum; Min, Max and Product work as well.
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
    named = _named(optimizer, named_parameters)
    if gradient_predivide_factor != 1.0 and op is not Op.AVERAGE:
        raise ValueError("gradient_predivide_factor goes with op=Average only")
    if backward_passes_per_step < 1:
        raise ValueError("backward_passes_per_step must be at least 1")
    factors = (1.0 / gradient_predivide_factor, gradient_predivide_factor)
    options = _Options(
        compression, backward_passes_per_step, op, factors, sparse_as_dense, process_set
    )
    kind = type(optimizer)
    made_kind: Any = type(kind.__name__, (_Distributed, kind), {})
    made = made_kind.__new__(made_kind)
    made.__dict__.update(optimizer.__dict__)
    made.__dict__.pop("step", None)  # a scheduler's, which calls the wrapped optimizer's own
    made._wrapped = optimizer
    alone = process_set.size() == 1 or not process_set.included()
    made._gradients = None
    if not alone:
        together = _groups([one for _, one in named], num_groups, groups)
        made._gradients = Gradients(named, together, options, _prefix(process_set))
    return made


def _prefix(process_set: ProcessSet) -> str:
    """Return how the names of an optimizer's gradients begin: several may be under way at once."""
    group = _session.conductor(process_set)
    group.optimizers += 1
    return "gradient." if group.optimizers == 1 else f"gradient.{group.optimizers}."


def _named(optimizer: Any, named_parameters: Optional[Iterable[Any]]) -> List[Tuple[str, Any]]:
    """Return the optimizer's parameters with their names, in the order of the names.

    Raises ValueError.
    """
    mine = [each for group in optimizer.param_groups for each in group["params"]]
    if named_parameters is None:
        return [(f"parameter.{number}", each) for number, each in enumerate(mine)]
    named = list(named_parameters)
    if any(not isinstance(each, tuple) or len(each) != 2 for each in named):
        raise ValueError("named_parameters must be pairs, as of model.named_parameters()")
    names = [name for name, _ in named]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"named_parameters has these names twice: {', '.join(twice)}")
    wanted = set(mine)
    found = {each for _, each in named}
    if not wanted <= found:
        lacking = len(wanted - found)
        raise ValueError(f"named_parameters lacks {lacking} of the optimizer's parameters")
    return [(name, each) for name, each in named if each in wanted]


def _groups(parameters: Sequence[Any], count: int, groups: Any) -> List[List[Any]]:
    """Return which gradients are sent together.  Raises ValueError."""
    if groups is not None and not isinstance(groups, int):
        made = [[each for each in group if each.requires_grad] for group in groups]
        members = [each for group in made for each in group]
        if len(set(members)) < len(members) or not set(members) <= set(parameters):
            raise ValueError("groups must hold parameters of the optimizer, each one once at most")
        return made
    count = groups if groups is not None else count
    if count < 0:
        raise ValueError("the number of groups must be at least 0")
    if not count:
        return []
    trained = [each for each in parameters if each.requires_grad]
    shares = _collectives.share(len(trained), count)
    ends = [sum(shares[: at + 1]) for at in range(count)]
    return [trained[end - share : end] for share, end in zip(shares, ends)]
