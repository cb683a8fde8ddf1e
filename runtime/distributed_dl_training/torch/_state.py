"""What all ranks start from: parameters and optimizer state, broadcast from one rank."""

from typing import Any, Iterable, Mapping, NamedTuple, Tuple, Union

import torch

from distributed_dl_training import _state
from distributed_dl_training._facts import rank
from distributed_dl_training._session import ProcessSet, global_process_set
from distributed_dl_training.torch._tensors import Tensors


class _Description(NamedTuple):
    dtype: Any
    shape: Tuple[int, ...]
    device: str


class _StateTensors(Tensors):
    """Torch's tensors in a state; see ``_state.StateTensors``."""

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def describe(self, tensor: Any) -> _Description:
        return _Description(tensor.dtype, tuple(tensor.shape), str(tensor.device))

    def empty(self, description: _Description) -> Any:
        # Of the same kind of device; load_state_dict moves it to the parameter's own.
        device = description.device.split(":")[0]
        return torch.empty(description.shape, dtype=description.dtype, device=device)


_STATE = _StateTensors()


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
    _state.broadcast_named(_STATE, params, root_rank, process_set)


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
    mine = optimizer.state_dict() if rank() == root_rank else None
    state = _state.broadcast_state(_STATE, mine, root_rank, process_set)
    if rank() != root_rank:
        optimizer.load_state_dict(state)
