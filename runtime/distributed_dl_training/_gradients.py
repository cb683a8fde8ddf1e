"""Gradients that are reduced over all ranks as they become ready: what every framework shares.

A framework adds :class:`Parameters`, which knows its parameters and their gradients, and tells when
a gradient has been accumulated; ``_steps`` is what its optimizer does around a step.  Which
gradients travel together, where they lie, what becomes of those that never came and of parameters
that came late is decided here.
"""

import weakref
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from distributed_dl_training import _collectives, _session
from distributed_dl_training._arena import Arena, ArenaParameters
from distributed_dl_training._arrays import ARRAYS
from distributed_dl_training._core import Op, Protocol
from distributed_dl_training._session import ProcessSet


class Parameters(ArenaParameters, Protocol):
    """What a framework knows of its parameters; these are hashed by identity."""

    adapter: _collectives.Adapter

    def trains(self, parameter: Any) -> bool:
        """Tell whether it gets gradients now."""
        raise NotImplementedError

    def watch(self, parameter: Any, arrived: Callable[[Any], None]) -> Callable[[], None]:
        """Call ``arrived(parameter)`` whenever its gradient has been accumulated, until released.

        Returns the function that releases it.
        """
        raise NotImplementedError

    def sparse_dims(self, gradient: Any) -> int:
        """Return how many dimensions have indices, as only what is not zero is held; 0: dense."""
        raise NotImplementedError

    def zeros(self, parameter: Any, sparse_dims: int) -> Any:
        """Return a gradient of zeros."""
        raise NotImplementedError

    def to_dense(self, gradient: Any) -> Any:
        """Return a sparse gradient as a dense one."""
        raise NotImplementedError

    def to_sparse(self, gradient: Any, sparse_dims: int) -> Any:
        """Return a dense gradient as a sparse one."""
        raise NotImplementedError

    def reduce_sparse(self, gradient: Any, name: str, op: Op, process_set: ProcessSet) -> Any:
        """Start the reduction of a sparse gradient; return a handle."""
        raise NotImplementedError


class Options(NamedTuple):
    """How gradients are reduced; all ranks must have the same."""

    compression: Any
    passes: int  # backward passes that are added up on each rank first
    op: Op
    factors: Tuple[float, float]  # before and after the reduction
    sparse_as_dense: bool
    process_set: ProcessSet


class _Sent(NamedTuple):
    """A gradient under way.

    gradient: where the result belongs; None if it replaces the parameter's gradient.
    sparse_dims: of the sparse gradient that a dense result is turned into; 0: it stays dense.
    """

    handle: Any
    context: Any
    gradient: Optional[Any]
    sparse_dims: int = 0


class Gradients:
    """Sees to it that gradients are sent as soon as they are ready, and are there for the step.

    One class with many small methods: hooks, threads and the step change the same few tables.
    A parameter has one owner: who watches it last.  When the owner is freed, its hooks go with it.
    """

    def __init__(
        self,
        framework: Parameters,
        named: Sequence[Tuple[str, Any]],
        groups: Sequence[Sequence[Any]],
        options: Options,
    ) -> None:
        """Watch parameters; ``groups`` are those whose gradients are sent together.

        Raises ValueError if another owner's gradient of one of them is under way.
        """
        self.options = options
        self.synchronized = False
        self.should_synchronize = True
        self.names = {parameter: name for name, parameter in named}
        self._framework = framework
        self._prefix = _prefix(options.process_set)
        self._group_of = {each: tuple(group) for group in groups for each in group}
        self._sent: Dict[Any, _Sent] = {}
        self._left: Dict[Any, int] = {}  # backward passes until a gradient is ready
        self._sparse_dims: Dict[Any, int] = {}  # what the ranks have agreed on
        self._released: Dict[Any, str] = {}  # parameters that another owner has taken, by name
        self._hooks: Dict[Any, Callable[[], None]] = {}
        weakref.finalize(self, _release_all, self._hooks).atexit = False
        settings = _session.controller(options.process_set).settings
        longest = max(settings.fusion_threshold, 1 << 20)
        watched = [parameter for _, parameter in named if framework.trains(parameter)]
        self.arena = Arena(framework, watched, self._prefix + "arena", longest)
        for parameter in watched:
            self._watch(parameter)

    def add(self, parameters: Iterable[Any]) -> None:
        """Watch those that train and are not watched yet: added, or unfrozen, since the start.

        Their gradients lie outside the arena, whose places all ranks know.
        """
        for parameter in parameters:
            if parameter not in self.names:
                self.names[parameter] = f"added.{len(self.names)}"
            watched = parameter in self._left or parameter in self._released
            if not watched and self._framework.trains(parameter):
                self._watch(parameter)

    def pending(self) -> bool:
        """Tell whether gradients are under way."""
        return bool(self._sent)

    def synchronize(self) -> None:
        """Wait until the gradients of all parameters are reduced; collective.

        Raises the first error once none is under way any more: a program that catches it may
        change its gradients.  Raises RuntimeError if another owner has taken parameters.
        """
        if self._released:
            raise RuntimeError(
                f"{len(self._released)} parameters, {min(self._released.values())} among them, "
                "belong to an optimizer that was distributed later: drop this one, or wrap it again"
            )
        errors: List[Exception] = []
        try:
            self._agree_on_layouts()
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

    def arrived(self, parameter: Any) -> None:
        """Take note that a backward pass has added to the parameter's gradient."""
        if not self._left[parameter]:
            raise AssertionError(
                f"the gradient of {self.names[parameter]} came more than "
                f"{self.options.passes} times before step() or synchronize(); "
                "backward_passes_per_step says how often it may"
            )
        self._left[parameter] -= 1
        if not self._framework.sparse_dims(self._framework.gradient(parameter)):
            self.arena.attach(parameter)
        if self._left[parameter]:
            return
        group = self._group_of.get(parameter)
        if group is None:
            self._send(parameter)
        elif not any(self._left.get(each) for each in group):
            for each in group:
                self._send(each)

    def _watch(self, parameter: Any) -> None:
        _take_over(parameter, self)
        self._left[parameter] = self.options.passes
        own = weakref.ref(self)

        def arrived(which: Any) -> None:
            owner = own()
            if owner is not None:
                owner.arrived(which)

        self._hooks[parameter] = self._framework.watch(parameter, arrived)

    def release(self, parameter: Any) -> None:
        """Leave a parameter to another owner.  Raises ValueError while its gradient is sent."""
        if parameter in self._sent:
            raise ValueError(
                f"the gradient of {self.names[parameter]} is under way in an optimizer that was "
                "distributed before: call its step() or synchronize() first"
            )
        self._hooks.pop(parameter)()
        del self._left[parameter]
        self._released[parameter] = self.names[parameter]

    def _agree_on_layouts(self) -> None:
        """Find out which gradients are sparse on any rank, for ranks that have none of them yet.

        Collective, as long as there are parameters of which no rank has had a gradient.
        """
        unknown = [each for each in self._left if each not in self._sparse_dims]
        if not unknown:
            return
        framework = self._framework
        # Sums: those of ranks that have joined are zeros.
        counts = numpy.zeros((3, len(unknown)), dtype=numpy.int32)
        for at, parameter in enumerate(unknown):
            gradient = framework.gradient(parameter)
            if gradient is not None:
                dims = framework.sparse_dims(gradient)
                counts[:, at] = 1, dims > 0, dims
        handle = _collectives.allreduce(
            ARRAYS,
            [counts],
            self._prefix + "layouts",
            Op.SUM,
            (1.0, 1.0),
            self.options.process_set,
        )
        for parameter, (there, sparse, dims) in zip(unknown, handle.synchronize().T.tolist()):
            if there:
                self._sparse_dims[parameter] = dims // sparse if sparse else 0

    def _complete(self, parameter: Any) -> None:
        """Send a gradient that did not arrive as often as it should: zeros, if never."""
        framework = self._framework
        gradient = framework.gradient(parameter)
        dims = self._sparse_dims.get(parameter, 0)
        if not dims and (gradient is None or not framework.sparse_dims(gradient)):
            self.arena.attach(parameter)
        if framework.gradient(parameter) is None:
            framework.put_gradient(parameter, framework.zeros(parameter, dims))
        self._send(parameter)

    def _send(self, parameter: Any) -> None:
        framework, options = self._framework, self.options
        gradient = framework.gradient(parameter)
        name = self._prefix + self.names[parameter]
        dims = framework.sparse_dims(gradient)
        agreed = self._sparse_dims.get(parameter, dims)
        if dims and not agreed:
            framework.put_gradient(parameter, framework.to_dense(gradient))
            self.arena.attach(parameter)
            gradient = framework.gradient(parameter)
        elif agreed and not dims:
            gradient = framework.to_sparse(gradient, agreed)
        if agreed and not options.sparse_as_dense:
            handle = framework.reduce_sparse(gradient, name, options.op, options.process_set)
            self._sent[parameter] = _Sent(handle, None, None)
            return
        # Source: horovod/torch/optimizer.py:292 of 0.28.1: back to sparse before the update.
        dense = framework.to_dense(gradient) if agreed else gradient
        travels, context = options.compression.compress(dense)
        place = self.arena.place(parameter) if travels is gradient else None
        handle = _collectives.allreduce(
            framework.adapter,
            [travels],
            name,
            options.op,
            options.factors,
            options.process_set,
            in_place=True,
            place=place,
        )
        self._sent[parameter] = _Sent(handle, context, None if agreed else gradient, agreed)

    def _take(self, parameter: Any, sent: _Sent) -> None:
        """Put the result where the optimizer looks for it."""
        result = sent.handle.synchronize()
        if sent.gradient is None:
            if sent.sparse_dims:
                restored = self.options.compression.decompress(result, sent.context)
                result = self._framework.to_sparse(restored, sent.sparse_dims)
            self._framework.put_gradient(parameter, result)
        elif result is not sent.gradient:
            restored = self.options.compression.decompress(result, sent.context)
            self._framework.copy(sent.gradient, restored)


_Reference = Callable[[], Optional[Any]]
# Who watches a parameter, by its id: parameters need not be comparable.
_owners: Dict[int, Tuple[_Reference, _Reference]] = {}


def _take_over(parameter: Any, owner: Gradients) -> None:
    """Make ``owner`` the one that watches a parameter."""
    key = id(parameter)
    held = _owners.get(key)
    if held is not None and held[0]() is parameter:
        earlier = held[1]()
        if earlier is not None and earlier is not owner:
            earlier.release(parameter)

    def forget(reference: Any) -> None:
        if key in _owners and _owners[key][0] is reference:
            del _owners[key]

    _owners[key] = (weakref.ref(parameter, forget), weakref.ref(owner))


def _release_all(hooks: Dict[Any, Callable[[], None]]) -> None:
    for release in hooks.values():
        release()
    hooks.clear()


def _prefix(process_set: ProcessSet) -> str:
    """Return how the names of an optimizer's gradients begin: several may be under way at once."""
    group = _session.controller(process_set)
    group.optimizers += 1
    return "gradient." if group.optimizers == 1 else f"gradient.{group.optimizers}."


def name_parameters(
    parameters: Sequence[Any], named_parameters: Optional[Iterable[Any]]
) -> List[Tuple[str, Any]]:
    """Return an optimizer's parameters with their names, in the order of the names.

    Raises ValueError.
    """
    if named_parameters is None:
        return [(f"parameter.{number}", each) for number, each in enumerate(parameters)]
    named = list(named_parameters)
    if any(not isinstance(each, tuple) or len(each) != 2 for each in named):
        raise ValueError("named_parameters must be pairs, as of model.named_parameters()")
    names = [name for name, _ in named]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"named_parameters has these names twice: {', '.join(twice)}")
    wanted = set(parameters)
    found = {each for _, each in named}
    if not wanted <= found:
        lacking = len(wanted - found)
        raise ValueError(f"named_parameters lacks {lacking} of the optimizer's parameters")
    return [(name, each) for name, each in named if each in wanted]


def form_groups(
    parameters: Sequence[Any], count: int, groups: Any, trains: Callable[[Any], bool]
) -> List[List[Any]]:
    """Return which gradients are sent together.  Raises ValueError.

    count, groups: so many groups of neighbours, or lists of parameters.
    """
    if groups is not None and not isinstance(groups, int):
        made = [[each for each in group if trains(each)] for group in groups]
        members = [each for group in made for each in group]
        if len(set(members)) < len(members) or not set(members) <= set(parameters):
            raise ValueError("groups must hold parameters of the optimizer, each one once at most")
        return made
    count = groups if groups is not None else count
    if count < 0:
        raise ValueError("the number of groups must be at least 0")
    if not count:
        return []
    trained = [each for each in parameters if trains(each)]
    shares = _collectives.share(len(trained), count)
    ends = [sum(shares[: at + 1]) for at in range(count)]
    return [trained[end - share : end] for share, end in zip(shares, ends)]
