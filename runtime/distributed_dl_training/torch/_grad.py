"""Collectives that gradients flow through."""

from typing import Any, Callable, List, Sequence

import torch

Function = Callable[[List[Any]], List[Any]]
# Takes gradients, and the shapes of the tensors whose gradients it returns.
Backward = Callable[[List[Any], List[Any]], List[Any]]


class _Linear(torch.autograd.Function):
    """A linear function of tensors, given together with what turns gradients back."""

    @staticmethod
    def forward(ctx: Any, function: Function, backward: Backward, *tensors: Any) -> Any:
        ctx.turn_back = backward
        ctx.shapes = [tensor.shape for tensor in tensors]
        # Integers in a group have no gradient, on any rank.
        ctx.places = [
            at for at, each in enumerate(tensors) if each.is_floating_point() or each.is_complex()
        ]
        return tuple(function(list(tensors)))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        turned: List[Any] = [None] * len(ctx.shapes)
        shapes = [ctx.shapes[at] for at in ctx.places]
        back = ctx.turn_back([gradients[at] for at in ctx.places], shapes)
        for at, gradient in zip(ctx.places, back):
            turned[at] = gradient
        return (None, None, *turned)


def differentiable(tensors: Sequence[Any], function: Function, backward: Backward) -> List[Any]:
    """Return ``function(tensors)``; ``backward`` turns its gradients into those of the tensors.

    Backward runs on every rank that has asked for gradients, and is collective.
    """
    wanted = [isinstance(each, torch.Tensor) and each.requires_grad for each in tensors]
    dense = all(getattr(each, "layout", torch.strided) == torch.strided for each in tensors)
    if any(wanted) and dense and torch.is_grad_enabled():
        return list(_Linear.apply(function, backward, *tensors))
    return function(list(tensors))
