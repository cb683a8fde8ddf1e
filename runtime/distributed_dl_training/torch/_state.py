"""What all ranks start from: parameters and optimizer state, broadcast from one rank."""

from typing import Any, Iterable, List, Mapping, NamedTuple, Tuple, Union

import torch

from distributed_dl_training import _collectives
from distributed_dl_training._session import ProcessSet, global_process_set, rank
from distributed_dl_training.numpy import broadcast_object
from distributed_dl_training.torch._tensors import TENSORS


class _Hole(NamedTuple):
    """Stands for a tensor in a structure that travels without its tensors."""

    dtype: Any
    shape: Tuple[int, ...]
    device: str


def broadcast_parameters(
    params: Union[Mapping[str, Any], Iterable[Tuple[str, Any]]],
    root_rank: int = 0,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Replace tensors on every rank by the root's, in place.

    params: ``model.state_dict()``, ``model.named_parameters()`` or a list of tensors.  What is no
        tensor is left alone.
    root_rank: a rank of all, also with a process set.

    Raises ValueError if ``params`` is neither, and as ``broadcast``.
    """
    pairs: List[Any] = list(params.items() if isinstance(params, Mapping) else params)
    if pairs and all(isinstance(each, torch.Tensor) for each in pairs):
        pairs = [(str(number), each) for number, each in enumerate(pairs)]
    if any(not isinstance(each, tuple) or len(each) != 2 for each in pairs):
        raise ValueError("params must be a state_dict, or pairs as of model.named_parameters()")
    handles = [
        _collectives.broadcast(
            TENSORS, tensor, root_rank, f"parameter.{name}", process_set, in_place=True
        )
        for name, tensor in pairs
        if isinstance(tensor, torch.Tensor)
    ]
    for handle in handles:
        handle.synchronize()


def broadcast_optimizer_state(
    optimizer: Any,
    root_rank: int = 0,
    model: Any = None,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Give the optimizer on every rank the root's state and options, such as the learning rate.

    optimizer: of the same class and over equal parameters on all ranks; whether it has taken a
        step already may differ.  Tensors travel as such, everything else by pickle.
    root_rank: a rank of all, also with a process set.
    model: not needed; Horovod has it.

    Raises what ``load_state_dict`` raises if the parameters differ, and as ``broadcast``.
    """
    mine = rank() == root_rank
    tensors: List[Any] = []
    skeleton = _without_tensors(optimizer.state_dict(), tensors) if mine else None
    skeleton = broadcast_object(skeleton, root_rank, None, process_set)
    if not mine:
        skeleton = _with_empty_tensors(skeleton, tensors)
    handles = [
        _collectives.broadcast(TENSORS, tensor, root_rank, None, process_set, in_place=True)
        for tensor in tensors
    ]
    for handle in handles:
        handle.synchronize()
    if not mine:
        optimizer.load_state_dict(skeleton)


def _without_tensors(value: Any, tensors: List[Any]) -> Any:
    """Return ``value`` with holes for its tensors, which are appended to ``tensors``."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return _Hole(value.dtype, tuple(value.shape), str(value.device))
    if isinstance(value, dict):
        return {key: _without_tensors(each, tensors) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_without_tensors(each, tensors) for each in value)
    return value


def _with_empty_tensors(value: Any, tensors: List[Any]) -> Any:
    """Return ``value`` with new tensors in its holes, which are appended to ``tensors``."""
    if isinstance(value, _Hole):
        # Of the same kind of device; load_state_dict moves it to the parameter's own.
        device = value.device.split(":")[0]
        tensors.append(torch.empty(value.shape, dtype=value.dtype, device=device))
        return tensors[-1]
    if isinstance(value, dict):
        return {key: _with_empty_tensors(each, tensors) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_with_empty_tensors(each, tensors) for each in value)
    return value
