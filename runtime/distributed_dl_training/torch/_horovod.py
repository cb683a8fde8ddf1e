"""The compatibility layer for PyTorch: what ``horovod.torch`` does otherwise than our own API."""

from typing import Any, Set

import torch

from distributed_dl_training import _horovod
from distributed_dl_training.torch._optimizer import step_alone
from distributed_dl_training.torch._state import broadcast_optimizer_state as broadcast_state


def broadcast_optimizer_state(optimizer: Any, root_rank: int, model: Any = None) -> None:
    """Give the optimizer on every rank the root's state and options; collective.

    One without a state takes a step with gradients of zeros first, as in Horovod: Adam counts it,
    and weight decay acts (horovod/torch/functions.py:104-125 of 0.28.1).
    model: tells which parameters have sparse gradients.
    """
    if not isinstance(optimizer, torch.optim.LBFGS) and not optimizer.state_dict()["state"]:
        sparse = _sparse_parameters(model)
        for group in optimizer.param_groups:
            for each in group["params"]:
                if each.requires_grad:
                    zeros = torch.zeros_like(each)
                    rows = isinstance(optimizer, torch.optim.SparseAdam) or (
                        isinstance(optimizer, torch.optim.SGD) and id(each) in sparse
                    )
                    each.grad = zeros.to_sparse() if rows else zeros
        step_alone(optimizer)
    broadcast_state(optimizer, root_rank, model)


def _sparse_parameters(model: Any) -> Set[int]:
    """Return the ids of a model's parameters whose gradients are sparse."""
    found: Set[int] = set()
    for module in model.modules() if model is not None else ():
        if isinstance(module, torch.nn.Embedding) and module.sparse:
            found.update(id(each) for each in module.parameters())
    return found


NAMES = dict(_horovod.NAMES, broadcast_optimizer_state=broadcast_optimizer_state)
