"""Collectives that gradients flow through."""

from typing import Any, Callable, Optional

import torch

Function = Callable[[Any], Any]


class _Linear(torch.autograd.Function):
    """A linear function of one tensor, given together with its transpose."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, function: Function, transpose: Function) -> Any:
        ctx.transpose = transpose
        return function(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return ctx.transpose(gradient), None, None


def differentiable(tensor: Any, function: Function, transpose: Function) -> Any:
    """Return ``function(tensor)``; ``transpose`` turns its gradient into the tensor's."""
    wanted = isinstance(tensor, torch.Tensor) and tensor.requires_grad
    if wanted and torch.is_grad_enabled() and tensor.layout == torch.strided:
        return _Linear.apply(tensor, function, transpose)
    return function(tensor)


def of_gradient(name: Optional[str]) -> Optional[str]:
    """Return the name under which the gradient of ``name`` travels."""
    return None if name is None else f"{name}.gradient"
