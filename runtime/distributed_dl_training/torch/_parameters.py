"""Torch's parameters and gradients, as ``_gradients`` and ``_arena`` see them."""

from typing import Any, Callable, List, Optional

import numpy
import torch

from distributed_dl_training._arena import Layout, Memory
from distributed_dl_training._core import Op
from distributed_dl_training._device import DeviceArray, dtype_name, flat_tensor, numpy_dtype
from distributed_dl_training._memory import ON_DEVICE
from distributed_dl_training._session import ProcessSet
from distributed_dl_training.torch._sparse import UNCHECKED, sparse_allreduce_async
from distributed_dl_training.torch._tensors import TENSORS, stays_on_device


class TorchParameters:
    """See ``_gradients.Parameters``, which has so many methods."""

    adapter: Any = TENSORS

    def trains(self, parameter: Any) -> bool:
        return bool(parameter.requires_grad)

    def watch(self, parameter: Any, arrived: Callable[[Any], None]) -> Callable[[], None]:
        if hasattr(parameter, "register_post_accumulate_grad_hook"):  # torch 2.1 and later
            handle = parameter.register_post_accumulate_grad_hook(arrived)
            release: Callable[[], None] = handle.remove
            return release
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        handle = node.register_hook(lambda *unused: arrived(parameter))
        held: List[Any] = [node]  # it lives only as long as somebody holds it

        def let_go() -> None:
            handle.remove()
            held.clear()

        return let_go

    def gradient(self, parameter: Any) -> Optional[Any]:
        return parameter.grad

    def put_gradient(self, parameter: Any, gradient: Any) -> None:
        parameter.grad = gradient

    def copy(self, target: Any, source: Optional[Any]) -> None:
        if source is None:
            target.zero_()
        else:
            target.copy_(source)

    def sparse_dims(self, gradient: Any) -> int:
        return 0 if gradient.layout == torch.strided else int(gradient.sparse_dim())

    def zeros(self, parameter: Any, sparse_dims: int) -> Any:
        if not sparse_dims:
            return torch.zeros_like(parameter)
        # Without a dense one in between: embeddings may be large.
        shape, kind = parameter.shape, {"dtype": parameter.dtype, "device": parameter.device}
        indices = torch.empty((sparse_dims, 0), dtype=torch.int64, device=parameter.device)
        values = torch.empty((0, *shape[sparse_dims:]), **kind)
        return torch.sparse_coo_tensor(indices, values, shape, **UNCHECKED).coalesce()

    def to_dense(self, gradient: Any) -> Any:
        return gradient.to_dense()

    def to_sparse(self, gradient: Any, sparse_dims: int) -> Any:
        return gradient.to_sparse(sparse_dims)

    def reduce_sparse(self, gradient: Any, name: str, op: Op, process_set: ProcessSet) -> Any:
        return sparse_allreduce_async(gradient, name, op, process_set)

    def layout(self, parameter: Any) -> Optional[Layout]:
        """Not of parameters that are not contiguous (channels_last).

        Fused optimizers need gradients of the same strides.
        """
        if not parameter.is_contiguous():
            return None
        return Layout(
            (parameter.dtype, parameter.device),
            parameter.numel(),
            parameter.element_size(),
            tuple(parameter.shape),
            ON_DEVICE * parameter.is_cuda + dtype_name(parameter.dtype),
        )

    def allocate(self, parameter: Any, count: int) -> Memory:
        if parameter.device.type != "cpu":
            made = torch.empty(count, dtype=parameter.dtype, device=parameter.device)
            on_device: Any = DeviceArray(made)
            return Memory(made, on_device)
        # numpy asks the kernel for huge pages, torch does not: to reduce 102 MB between two
        # ranks took 60 ms in numpy's memory and 110 ms in torch's.
        flat = numpy.empty(count, dtype=numpy_dtype(parameter.dtype))
        return Memory(flat_tensor(flat), flat)

    def view(self, tensor: Any, parameter: Any) -> Any:
        return tensor.view(parameter.shape)

    def fits(self, gradient: Optional[Any], parameter: Any) -> bool:
        """Not if the model has changed its layout, or the engine reads only after a copy."""
        if not parameter.is_contiguous():
            return False
        if parameter.device.type != "cpu" and not stays_on_device(parameter):
            return False
        return gradient is None or (
            gradient.layout == torch.strided
            and gradient.dtype == parameter.dtype
            and gradient.device == parameter.device
        )


PARAMETERS = TorchParameters()
