"""What all ranks start from: tensors and nested state, broadcast from one rank."""

from typing import Any, Iterable, List, Mapping, NamedTuple, Tuple, Union

from distributed_dl_training import _collectives, _facts, _objects
from distributed_dl_training._core import Protocol
from distributed_dl_training._session import ProcessSet

Named = Union[Mapping[str, Any], Iterable[Any]]


class StateTensors(_collectives.Adapter, Protocol):
    """What a framework knows of the tensors in a state."""

    def is_tensor(self, value: Any) -> bool:
        """Tell whether ``value`` travels as a tensor; everything else does by pickle."""
        raise NotImplementedError

    def describe(self, tensor: Any) -> Any:
        """Return what another rank needs to make an equal one; it pickles."""
        raise NotImplementedError

    def empty(self, description: Any) -> Any:
        """Return a tensor as ``describe`` says, of any values."""
        raise NotImplementedError


class _Hole(NamedTuple):
    """Stands for a tensor in a structure that travels without its tensors."""

    description: Any


def broadcast_named(
    framework: StateTensors, params: Named, root_rank: int, process_set: ProcessSet
) -> None:
    """Replace tensors by the root's, in place; collective.

    params: by name, as pairs with their names, or tensors alone.  What is no tensor is left alone.

    Raises ValueError if ``params`` is neither, and as ``broadcast``.
    """
    pairs: List[Any] = list(params.items() if isinstance(params, Mapping) else params)
    if pairs and all(framework.is_tensor(each) for each in pairs):
        pairs = [(str(number), each) for number, each in enumerate(pairs)]
    if any(not isinstance(each, tuple) or len(each) != 2 for each in pairs):
        raise ValueError("params must be a state_dict, or pairs as of model.named_parameters()")
    tensors = [
        (f"parameter.{name}", tensor) for name, tensor in pairs if framework.is_tensor(tensor)
    ]
    _broadcast_all(framework, tensors, root_rank, process_set)


def broadcast_state(
    framework: StateTensors, state: Any, root_rank: int, process_set: ProcessSet
) -> Any:
    """Return the root's state: dicts, lists and tuples of tensors and what pickles; collective.

    state: the root's own, which it gets back; what the other ranks give is not looked at.

    Raises as ``broadcast``, and what pickle raises.
    """
    mine = _facts.rank() == root_rank
    tensors: List[Any] = []
    skeleton = _without_tensors(framework, state, tensors) if mine else None
    skeleton = _objects.broadcast(skeleton, root_rank, None, process_set)
    if not mine:
        state = _with_empty_tensors(framework, skeleton, tensors)
    _broadcast_all(framework, [(None, each) for each in tensors], root_rank, process_set)
    return state


def _broadcast_all(
    framework: StateTensors, tensors: List[Tuple[Any, Any]], root: int, process_set: ProcessSet
) -> None:
    handles = [
        _collectives.broadcast(framework, tensor, root, name, process_set, in_place=True)
        for name, tensor in tensors
    ]
    for handle in handles:
        handle.synchronize()


def _without_tensors(framework: StateTensors, value: Any, tensors: List[Any]) -> Any:
    """Return ``value`` with holes for its tensors, which are appended to ``tensors``."""
    if framework.is_tensor(value):
        tensors.append(value)
        return _Hole(framework.describe(value))
    if isinstance(value, dict):
        return {k: _without_tensors(framework, each, tensors) for k, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_without_tensors(framework, each, tensors) for each in value)
    return value


def _with_empty_tensors(framework: StateTensors, value: Any, tensors: List[Any]) -> Any:
    """Return ``value`` with new tensors in its holes, which are appended to ``tensors``."""
    if isinstance(value, _Hole):
        tensors.append(framework.empty(value.description))
        return tensors[-1]
    if isinstance(value, dict):
        return {k: _with_empty_tensors(framework, each, tensors) for k, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_with_empty_tensors(framework, each, tensors) for each in value)
    return value
